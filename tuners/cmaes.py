"""Optuna's CMA-ES as a plug-in: its steps are over the tunables' value numbers, the nearest legal point is tried."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tensorop.model.point import Point
from tensorop.space import Space
from tensorop.space.strategy import FAILURE, IndexedTuner

DESCRIPTION = "Optuna's CMA-ES over the tunables, taken to the nearest legal point left (needs the extra `tuners`)"


class Tuner(IndexedTuner):
    """A proposal is answered by the cost of the point that was tried in its place. A cost without a proposal changes
    nothing: only its own proposals move the distribution."""

    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed)
        try:
            import cmaes  # noqa: F401  # what Optuna's sampler runs on
            import optuna
        except ImportError as error:
            raise ImportError(f"{error}; install the extra `tuners` (docs/how-to/install.md)") from error
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        self._study = optuna.create_study(sampler=optuna.samplers.CmaEsSampler(seed=seed % 2**32))
        self._ranges: dict[str, Any] = {
            name: optuna.distributions.FloatDistribution(0, max(1, len(values) - 1))
            for name, values in space.dimensions
        }
        self._proposals: dict[int, Any] = {}  # by the point taken for it

    def tell(self, point: Point, cost: float | None) -> None:
        index = self.space.index(point)
        if index not in self._proposals and self.untried[index]:
            self._propose()  # an earlier process asked for this one
        super().tell(point, cost)
        proposal = self._proposals.pop(index, None)
        if proposal is not None:
            worst = max((known for known in self.costs.values() if known is not None), default=1.0)
            self._study.tell(proposal, FAILURE * worst if cost is None else cost)

    def next(self) -> int:
        open_ = [index for index in self._proposals if self.untried[index]]
        return open_[0] if open_ else self._propose()

    def _propose(self) -> int:
        proposal = self._study.ask(self._ranges)
        index = self.nearest(np.array([proposal.params[name] for name in self._ranges]))
        self._proposals[index] = proposal
        return index
