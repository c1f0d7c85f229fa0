"""CMA-ES as a plug-in: it draws value numbers, and the nearest legal point is tried in their place.

A generation consists of legal points with their costs, requested or not. So the distribution depends on the costs
alone, and a resumed search draws the same.
"""

from __future__ import annotations

import numpy as np

from tensorop.model.point import Point
from tensorop.space import Space
from tensorop.space.strategy import FAILURE, IndexedTuner

DESCRIPTION = "CMA-ES over the tunables, taken to the nearest legal point left (needs the extra `tuners`)"
SIGMA = 1 / 6  # of the first distribution, as a share of each dimension's length


class Tuner(IndexedTuner):
    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed)
        try:
            from cmaes import CMA
        except ImportError as error:
            raise ImportError(f"{error}; install the extra `tuners` (docs/how-to/install.md)") from error
        self._lengths = np.array([max(1, len(values) - 1) for _, values in space.dimensions], dtype=float)
        count = len(self._lengths)
        self._cma = CMA(np.full(count, 0.5), SIGMA, np.array([[0.0, 1.0]] * count), seed=seed % 2**32)
        self._generation: list[tuple[np.ndarray, float]] = []

    def tell(self, point: Point, cost: float | None) -> None:
        super().tell(point, cost)
        worst = max((known for known in self.costs.values() if known is not None), default=1.0)
        row = np.array(self.space.coordinates(self.space.index(point))) / self._lengths
        self._generation.append((row, FAILURE * worst if cost is None else cost))
        if len(self._generation) == self._cma.population_size:
            self._cma.tell(self._generation)
            self._generation = []

    def next(self) -> int:
        self._cma.reseed_rng(self.rng.randrange(2**32))
        return self.nearest(self._cma.ask() * self._lengths)
