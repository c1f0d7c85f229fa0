"""Bayesian optimisation: a Gaussian process on the logarithm of the cost over the legal points, expected improvement
over all that are left.

The process's scales are fitted anew when a tenth more trials are there, from those it had before. What is asked depends
on the seed and on the costs so far alone, so a search that was killed and is given its journal goes on as if nothing
had happened: the scales are fitted as costs come, whoever asked.
"""

from __future__ import annotations

import math
import random

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from tensorop.model.point import Point
from tensorop.space import Space
from tensorop.space.features import features
from tensorop.space.strategy import IndexedTuner

DESCRIPTION = "Gaussian process on the logarithm of the cost, expected improvement over the legal points left"
INITIAL = 6  # random points before the model is used
CANDIDATES = 6000  # legal points that the model ranks at each ask, beside the neighbours of the best three
MEMORY = 200  # trials that the model is fitted to: the best half of it and the newest half
# priors of the logarithms: the process's variance, its length in each feature, its noise
PRIOR = (0.0, 0.3, -6.0)
SPREAD = (1.5, 1.0, 1.5)
BOUNDS = ((-4.0, 5.0), (-3.0, 4.0), (-11.0, 0.0))
ROOT5 = math.sqrt(5)

Array = NDArray[np.float64]


class Tuner(IndexedTuner):
    """Ask and tell. Costs are positive, lower is better, None marks a failed trial."""

    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed)
        self._features = features(space)
        self._scales = np.array([PRIOR[0], *[PRIOR[1]] * self._features.shape[1], PRIOR[2]])
        self._due = INITIAL
        self._first = [space.index(point) for point in space.sample(random.Random(seed), INITIAL)]

    def tell(self, point: Point, cost: float | None) -> None:
        super().tell(point, cost)
        if len(self.costs) >= self._due and self.varied:
            self._due = len(self.costs) + max(1, len(self.costs) // 10)
            chosen, costs = self._known({})
            with threadpool_limits(1):
                self._scales = _fitted(self._features[chosen], costs, self._scales)

    def next(self) -> int:
        waiting = [index for index in self._first if self.untried[index]]
        if waiting:
            return waiting[0]
        pool = np.flatnonzero(self.untried)
        if len(pool) > CANDIDATES:
            best = map(self.space.at, self.ranked()[:3])
            near = {self.space.index(point) for good in best for point in self.space.neighbours(good)}
            drawn = self.rng.sample(pool.tolist(), CANDIDATES)
            pool = np.array(sorted({*drawn, *(index for index in near if self.untried[index])}))
        if not self.varied:
            return int(self.rng.choice(pool.tolist()))
        with threadpool_limits(1):
            return int(pool[int(np.argmax(self._improvement(pool)))])

    def _known(self, pending: dict[int, None]) -> tuple[list[int], Array]:
        """Numbers of the points that the model is of, and the logarithms of their costs, of mean 0 and deviation 1."""
        known = self.remembered(MEMORY, pending)
        logs = np.array(list(known.values()))
        logs = np.minimum(logs, 2 * np.median(logs) - logs.min())  # how bad the bad ones are says nothing of the good
        return list(known), (logs - logs.mean()) / (logs.std() or 1.0)

    def _improvement(self, pool: NDArray[np.int64]) -> Array:
        """Expected, of each point of the pool, in deviations."""
        chosen, costs = self._known(self.pending)
        rows = self._features[chosen]
        factor = np.linalg.cholesky(_covariance(rows, rows, self._scales) + _noise(self._scales) * np.eye(len(rows)))
        across = _covariance(self._features[pool], rows, self._scales)
        mean = across @ cho_solve((factor, True), costs)
        explained = (solve_triangular(factor, across.T, lower=True) ** 2).sum(axis=0)
        deviation = np.sqrt(np.maximum(math.exp(self._scales[0]) - explained, 1e-12))
        better = (costs.min() - mean) / deviation
        density = np.exp(-(better**2) / 2) / math.sqrt(2 * math.pi)
        found: Array = deviation * (better * ndtr(better) + density)
        # far from any improvement all are 0: then the nearest to one
        return found if found.max() > 0 else better


def _noise(scales: Array) -> float:
    return math.exp(scales[-1]) + 1e-8


def _covariance(one: Array, other: Array, scales: Array) -> Array:
    """Matern's, of smoothness 5/2."""
    a, b = one / np.exp(scales[1:-1]), other / np.exp(scales[1:-1])
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None] - 2 * a @ b.T
    far = ROOT5 * np.sqrt(np.maximum(squares, 0.0))
    found: Array = math.exp(scales[0]) * (1 + far + far**2 / 3) * np.exp(-far)
    return found


def _fitted(rows: Array, costs: Array, scales: Array) -> Array:
    """The scales that the costs are most likely with, and the prior."""
    lengths = len(scales) - 2
    middle, wide = (np.array([each[0], *[each[1]] * lengths, each[2]]) for each in (PRIOR, SPREAD))
    bounds = [BOUNDS[0], *[BOUNDS[1]] * lengths, BOUNDS[2]]

    def unlikely(at: Array) -> tuple[float, Array]:
        """Minus the logarithm, and its slope."""
        scaled = rows / np.exp(at[1:-1])
        squares = (scaled**2).sum(axis=1)
        far = ROOT5 * np.sqrt(np.maximum(squares[:, None] + squares[None] - 2 * scaled @ scaled.T, 0.0))
        falls = math.exp(at[0]) * np.exp(-far)
        covariance = (1 + far + far**2 / 3) * falls
        try:
            factor = np.linalg.cholesky(covariance + _noise(at) * np.eye(len(rows)))
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(at)
        inverse = cho_solve((factor, True), np.eye(len(rows)))
        weights = inverse @ costs
        pull = np.outer(weights, weights) - inverse
        steep = pull * (5 / 3 * (1 + far) * falls)
        slope = np.empty_like(at)
        slope[0] = -(pull * covariance).sum() / 2
        slope[1:-1] = -(steep.sum(axis=1) @ scaled**2 - (scaled * (steep @ scaled)).sum(axis=0))
        slope[-1] = -np.trace(pull) * math.exp(at[-1]) / 2
        beyond = (at - middle) / wide
        value = costs @ weights / 2 + np.log(np.diag(factor)).sum() + (beyond**2).sum() / 2
        return float(value), slope + beyond / wide

    found: Array = minimize(unlikely, scales, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 20}).x
    return found
