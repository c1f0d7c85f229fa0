"""A bandit over the values of each tunable: Thompson sampling, as if tunables did not depend on each other."""

from __future__ import annotations

import math

import numpy as np

from tensorop.model.point import Point
from tensorop.space import Space
from tensorop.space.strategy import FAILURE, IndexedTuner

DESCRIPTION = "Thompson sampling of each tunable's values by the logarithm of the costs they had, each by itself"
INITIAL = 10  # random points before the first choice


class Tuner(IndexedTuner):
    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed)
        self._worst = 0.0
        self._sums = [
            np.zeros((2, len(values))) for _, values in space.dimensions
        ]  # trials, and their costs' logarithms

    def tell(self, point: Point, cost: float | None) -> None:
        fresh = self.space.index(point) not in self.costs
        super().tell(point, cost)
        self._worst = max(self._worst, cost or 0.0)
        for sums, number in zip(self._sums, self.space.coordinates(self.space.index(point)), strict=True):
            sums[:, number] += (
                fresh,
                fresh * math.log(cost if cost is not None else (self._worst or 1.0) * FAILURE),
            )

    def next(self) -> int:
        rng = self.rng
        if len(self.costs) < INITIAL:
            return int(rng.choice(self.untried.nonzero()[0]))
        total, logs = self._sums[0].sum(axis=1)
        wanted = []
        for trials, sums in self._sums:
            # a value's mean, drawn towards that of all as if it had been tried once more
            means = (sums + logs / total) / (trials + 1)
            drawn = [mean + rng.gauss(0, 0.5) / math.sqrt(n + 1) for mean, n in zip(means, trials, strict=True)]
            wanted.append(float(np.argmin(drawn)))
        return self.nearest(np.array(wanted))
