"""Bayesian optimisation: a Gaussian process on the logarithm of the cost, and expected improvement over legal points.

The first points are centres of clusters among the points that fill registers and caches best. A requested point counts
as if its cost were the process's own mean: it makes its surroundings certain, and moves no prediction.

The scales of the process are fitted again after each tenth more trials, from the scales before. A request depends on
the seed and the costs alone, so a resumed search proposes the same points.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from tensorop.model.point import Point
from tensorop.space import Space
from tensorop.space.features import features, fullness
from tensorop.space.strategy import IndexedTuner

DESCRIPTION = "Gaussian process on the logarithm of the cost, expected improvement over the legal points left"
DESIGN = 16  # points to propose while the model has too few costs
INITIAL = 6  # of these points with a cost: the model is used
ROUNDS = 10  # of moving the centres of clusters
CANDIDATES = 4000  # legal points that the model ranks at each ask, beside the neighbours of the best three
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
        self._design = _design(self._features, fullness(space), seed)

    def tell(self, point: Point, cost: float | None) -> None:
        super().tell(point, cost)
        if len(self.costs) >= self._due and self.varied:
            self._due = len(self.costs) + max(1, len(self.costs) // 10)
            chosen, costs = self._known()
            with threadpool_limits(1):
                self._scales = _fitted(self._features[chosen], costs, self._scales)

    def next(self) -> int:
        waiting = [index for index in self._design if self.untried[index]]
        if waiting and sum(index in self.costs for index in self._design) < INITIAL:
            return waiting[0]
        pool = np.flatnonzero(self.untried)
        if len(pool) > CANDIDATES:
            best = map(self.space.at, self.ranked()[:3])
            near = {self.space.index(point) for good in best for point in self.space.neighbours(good)}
            drawn = np.random.default_rng(self.rng.randrange(2**32)).choice(pool, CANDIDATES, replace=False)
            pool = np.union1d(drawn, [index for index in near if self.untried[index]]).astype(np.int64)
        if not self.varied:
            return int(self.rng.choice(pool.tolist()))
        with threadpool_limits(1):
            return int(pool[int(np.argmax(self._improvement(pool)))])

    def _known(self) -> tuple[list[int], Array]:
        """The points that the model is fitted to, and the logarithms of their costs, of mean 0 and deviation 1."""
        known = self.remembered(MEMORY)
        logs = np.array(list(known.values()))
        logs = np.minimum(logs, 2 * np.median(logs) - logs.min())  # how slow the slow ones are teaches nothing
        return list(known), (logs - logs.mean()) / (logs.std() or 1.0)

    def _improvement(self, pool: NDArray[np.int64]) -> Array:
        """The expected improvement of each point of the pool, in deviations."""
        chosen, costs = self._known()
        rows, count = self._features[[*chosen, *self.pending]], len(chosen)
        factor = np.linalg.cholesky(_covariance(rows, rows, self._scales) + _noise(self._scales) * np.eye(len(rows)))
        explained = solve_triangular(
            factor, _covariance(rows, self._features[pool], self._scales), lower=True, check_finite=False
        )
        # a pending point has no cost, so it is part of the deviation but not of the mean
        mean = solve_triangular(factor[:count, :count], costs, lower=True) @ explained[:count]
        deviation = np.sqrt(np.maximum(math.exp(self._scales[0]) - (explained**2).sum(axis=0), 1e-12))
        better = (costs.min() - mean) / deviation
        density = np.exp(-(better**2) / 2) / math.sqrt(2 * math.pi)
        found: Array = deviation * (better * ndtr(better) + density)
        # if all are 0, the nearest to an improvement
        return found if found.max() > 0 else better


def _design(rows: Array, full: Array, seed: int) -> list[int]:
    """Points nearest to the centres of clusters (k-means) in the fuller half, in random order."""
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(np.flatnonzero(full >= np.median(full)))[:CANDIDATES]
    centres = rows[drawn[:DESIGN]]
    for _ in range(ROUNDS):
        nearest = cdist(centres, rows[drawn]).argmin(axis=0)
        centres = np.array([rows[drawn[nearest == each]].mean(axis=0) for each in np.unique(nearest)])
    return list(dict.fromkeys(drawn[cdist(centres, rows[drawn]).argmin(axis=1)].tolist()))


def _noise(scales: Array) -> float:
    return math.exp(scales[-1]) + 1e-8


def _covariance(one: Array, other: Array, scales: Array) -> Array:
    """Matern's, of smoothness 5/2."""
    a, b = one / np.exp(scales[1:-1]), other / np.exp(scales[1:-1])
    far: Array = ROOT5 * cdist(a, b)
    falls = np.exp(-far)
    falls *= math.exp(scales[0])
    falls *= 1 + far * (1 + far / 3)
    return falls


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
