"""Bayesian optimisation: scikit-optimize's Gaussian process over generated legal points.

scikit-optimize samples its own candidates, by rejection where a space has constraints, and asks points twice. Here
its candidates are legal points not asked so far, so neither can happen. The optimizer is built anew for every ask
from what was told: what is asked depends on the seed and on the told history alone, never on earlier asks, so a
search that was killed and told its journal goes on as if nothing had happened.
"""

from __future__ import annotations

import random
import warnings

import numpy as np
from numpy.typing import NDArray
from skopt import Optimizer
from skopt.learning import GaussianProcessRegressor
from skopt.learning.gaussian_process.kernels import ConstantKernel, Matern
from skopt.space import Real
from skopt.space import Space as Box
from threadpoolctl import threadpool_limits

from tensorop.space import Space
from tensorop.space.strategy import IndexedTuner

DESCRIPTION = "scikit-optimize's Gaussian process over the ranks of the tunables' values, expected improvement"
INITIAL = 8  # points spread over the space before the model is used
CANDIDATES = 1500  # legal points that the model ranks at each ask
MEMORY = 120  # trials that the model is fitted to: the best half of it and the newest half


class _Candidates(Box):  # type: ignore[misc]
    """A box whose random samples are a given pool, so that scikit-optimize ranks exactly that."""

    def __init__(self, dimensions: list[Real], pool: NDArray[np.float64]) -> None:
        super().__init__(dimensions)
        self._pool: list[list[float]] = pool.tolist()

    def rvs(self, n_samples: int = 1, random_state: object = None) -> list[list[float]]:
        return self._pool


class Tuner(IndexedTuner):
    """Ask and tell. Costs are positive, lower is better, None marks a failed trial."""

    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed)
        self._encoded = _encode(space)
        self._design = _spread(self._encoded, INITIAL, random.Random(seed))

    def next(self) -> int:
        for index in self._design:
            if self.untried[index]:
                return index
        pool = self._pool()
        if len(pool) == 1 or not self.varied:
            return pool[0]
        return self._model_choice(pool)

    def _pool(self) -> list[int]:
        """Points left: all, or the neighbours of the best three and a random rest."""
        left, rng = np.flatnonzero(self.untried).tolist(), self.rng
        if len(left) <= CANDIDATES:
            rng.shuffle(left)
            return left
        good = sorted((cost, index) for index, cost in self.costs.items() if cost is not None)[:3]
        near = {self.space.index(p) for _, index in good for p in self.space.neighbours(self.space.at(index))}
        near = {index for index in near if self.untried[index]}
        rest = [index for index in rng.sample(left, CANDIDATES) if index not in near]
        return sorted(near) + rest[: CANDIDATES - len(near)]

    def _model_choice(self, pool: list[int]) -> int:
        known = self.remembered(MEMORY, self.pending)
        rows = self._encoded[pool]
        try:
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                chosen = _ask(self._encoded[list(known)], list(known.values()), rows, self.seed)
        except (np.linalg.LinAlgError, ValueError):
            return pool[0]  # a covariance without a factor says nothing; the pool is shuffled
        return pool[int(np.argmin(((rows - chosen) ** 2).sum(axis=1)))]


def _ask(x: NDArray[np.float64], y: list[float], pool: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """The row of the pool with the highest expected improvement, one fit of scikit-optimize's process."""
    width = x.shape[1]
    kernel = ConstantKernel(1.0, (0.01, 1000.0)) * Matern(np.ones(width), [(0.05, 20.0)] * width, nu=2.5)
    process = GaussianProcessRegressor(
        kernel=kernel, normalize_y=True, noise="gaussian", n_restarts_optimizer=0, random_state=seed % 2**32
    )
    box = [Real(0.0, 1.0) for _ in range(width)]
    optimizer = Optimizer(
        box,
        base_estimator=process,
        n_initial_points=0,
        acq_func="EI",
        acq_func_kwargs={"xi": 0.005},
        acq_optimizer="sampling",
        acq_optimizer_kwargs={"n_points": len(pool)},
        random_state=seed % 2**32,
    )
    optimizer.space = _Candidates(optimizer.space.dimensions, pool)
    optimizer.tell(x.tolist(), y)
    return np.asarray(optimizer.ask(), dtype=np.float64)


def _encode(space: Space) -> NDArray[np.float64]:
    """Legal points as rows in [0, 1]: the rank among a tunable's values, one column a word for words."""
    columns: list[NDArray[np.float64]] = []
    ranks = np.array([space.coordinates(i) for i in range(space.size)], dtype=np.float64)
    for axis, (_, values) in enumerate(space.dimensions):
        if any(isinstance(value, str) for value in values):
            columns += [(ranks[:, axis] == word).astype(np.float64) for word in range(len(values))]
        else:
            columns.append(ranks[:, axis] / max(1, len(values) - 1))
    # tunables with one value carry nothing; a space of a single point keeps one column
    varying = [column for column in columns if np.ptp(column) > 0]
    return np.stack(varying or [np.zeros(space.size)], axis=1)


def _spread(rows: NDArray[np.float64], count: int, rng: random.Random) -> list[int]:
    """Indices of `count` rows, each the farthest from those before it among a random sample."""
    sample = rng.sample(range(len(rows)), min(len(rows), 1000))
    chosen = sample[:1]
    distance = np.full(len(sample), np.inf)
    while len(chosen) < min(count, len(sample)):
        distance = np.minimum(distance, ((rows[sample] - rows[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(sample[int(np.argmax(distance))])
    return chosen
