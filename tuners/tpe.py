"""Optuna's tree-structured Parzen estimator as a plug-in: it wishes for any point, the nearest legal one is tried."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorop.model.point import Point
from tensorop.space import Space
from tensorop.space.strategy import FAILURE, IndexedTuner

DESCRIPTION = "Optuna's TPE over the tunables, taken to the nearest legal point left (needs the extra `tuners`)"
INITIAL = 10  # random points before the first estimate


class Tuner(IndexedTuner):
    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed)
        try:
            import optuna
        except ImportError as error:
            raise ImportError(f"{error}; install the extra `tuners` (docs/how-to/install.md)") from error
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna = optuna
        self._study = optuna.create_study()
        self._study.ask()
        self._ranges: dict[str, Any] = {
            name: optuna.distributions.CategoricalDistribution(range(len(values)))
            if any(isinstance(value, str) for value in values)
            else optuna.distributions.IntDistribution(0, len(values) - 1)
            for name, values in space.dimensions
        }

    def tell(self, point: Point, cost: float | None) -> None:
        super().tell(point, cost)
        row = map(int, self.space.coordinates(self.space.index(point)))
        worst = max((known for known in self.costs.values() if known is not None), default=1.0)
        value = FAILURE * worst if cost is None else cost
        params = dict(zip(self._ranges, row, strict=True))
        self._study.add_trial(self._optuna.trial.create_trial(params=params, distributions=self._ranges, value=value))

    def next(self) -> int:
        seed = self.rng.randrange(2**32)  # of each ask its own: a search that goes on has no earlier asks
        sampler = self._optuna.samplers.TPESampler(seed=seed, n_startup_trials=INITIAL, multivariate=True)
        # asked of the sampler itself, for the one open trial: others of the study would stay in it
        asked = self._study.get_trials(deepcopy=False)[0]
        varied = {name: values for name, values in self._ranges.items() if not values.single()}
        proposal = sampler.sample_relative(self._study, asked, varied) if len(self.costs) >= INITIAL else {}
        if not proposal:
            return int(self.rng.choice(self.untried.nonzero()[0]))
        return self.nearest(np.array([float(proposal.get(name, 0)) for name in self._ranges]))
