"""What each variant would cost on problems nobody measured: a sum of terms, and what that leaves unexplained.

A variant's cost is a sum of terms with coefficients that are not negative (Lawson and Hanson's NNLS), fitted to the
logarithm of measured costs by reweighting. Coefficients are drawn towards those of all variants of one micro-kernel
together, and theirs towards those of its family, so that few samples suffice. How far to trust the sum says a Gaussian
process (Rasmussen and Williams 2006, eq. 2.25 and 2.26), conditioned on what the sum leaves unexplained. Two problems
are alike where their coordinates are near (Matern kernel with nu = 3/2) and where the same terms make up their cost:
a coefficient that is off by a share is off in both (their section 2.7, with the shares as basis functions).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

REWEIGHTED = 4  # times
TOWARDS = 1.0  # how strongly coefficients are drawn to those of the pool, against one sample's weight of 1
FAR = 5.0  # octaves over which a deviation from the terms carries
ALIKE = 4.0  # variance of a coefficient's deviation over that of neighbours' own
NOISE = 0.2  # share of the deviations' variance that neighbours do not share
BLOCK = 2048  # problems whose costs are predicted at once
LEAST_SPREAD = 0.03  # natural logarithm: what the model is never surer than

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class CostSamples:
    """What was measured of one variant: terms of each problem, its coordinates (octaves), its cost."""

    terms: Matrix
    places: Matrix
    costs: Matrix


@dataclass(frozen=True)
class PoolKey:
    """Which samples help each other. kernel, family: names of the micro-kernel and of its family."""

    kernel: Hashable
    family: Hashable


@dataclass(frozen=True)
class Fitted:
    """A variant's model: coefficients by term, and the process over what they leave.

    places, shares: of the samples, their coordinates and what each term makes up of their cost
    """

    weights: Matrix
    places: Matrix
    shares: Matrix
    solved: Matrix
    inverse: Matrix
    spread: float

    def mean(self, terms: Matrix) -> Matrix:
        """The natural logarithm of the sum of terms of each problem."""
        found: Matrix = np.log(np.maximum(terms @ self.weights, 1.0))
        return found

    def predict(self, terms: Matrix, near: Matrix) -> tuple[Matrix, Matrix]:
        """(natural logarithm of the cost, its standard deviation) of each problem, with what those alike are off.

        near: problems x samples, how alike their coordinates are
        """
        mean = self.mean(terms)
        if not len(self.places):
            return mean, np.full(len(mean), 1.0)
        shares = _shares(terms, self.weights)
        near = near + ALIKE * (shares @ self.shares.T)
        known = np.sum((near @ self.inverse) * near, axis=1)
        unknown = 1.0 + ALIKE * np.sum(shares**2, axis=1) + NOISE - known
        return mean + near @ self.solved, self.spread * np.sqrt(np.maximum(unknown, NOISE))


def predict(models: Sequence[Fitted], terms: Sequence[Matrix], places: Matrix) -> tuple[Matrix, Matrix]:
    """Problems x models: natural logarithms of costs, and their standard deviations. terms: by model, of each problem;
    places: the problems' coordinates."""
    means, spreads = np.empty((len(places), len(models))), np.empty((len(places), len(models)))
    sample_places = np.concatenate([model.places for model in models])
    # most places are those of all models
    apart, of_sample = np.unique(sample_places, axis=0, return_inverse=True)
    columns = np.split(of_sample.reshape(-1), np.cumsum([len(model.places) for model in models])[:-1])
    with threadpool_limits(1):
        for begin in range(0, len(places), BLOCK):
            rows = slice(begin, begin + BLOCK)
            near = _kernel(places[rows], apart)
            for number, (model, of_model, mine) in enumerate(zip(models, terms, columns, strict=True)):
                means[rows, number], spreads[rows, number] = model.predict(of_model[rows], near[:, mine])
    return means, spreads


def fit(
    samples: Sequence[CostSamples], pools: Sequence[PoolKey], more: Sequence[tuple[CostSamples, PoolKey]] = ()
) -> list[Fitted]:
    """A model for each of `samples`. pools: of each of them; more: samples that only the pools learn from."""
    everyone = [*zip(samples, pools, strict=True), *more]
    with threadpool_limits(1):  # the same sums in the same order, whatever the machine does
        families = _pooled([(s, pool.family) for s, pool in everyone], {})
        above = {pool.kernel: families[pool.family] for _, pool in everyone if pool.family in families}
        kernels = _pooled([(s, pool.kernel) for s, pool in everyone], above)
        return [_fitted(s, kernels.get(pool.kernel)) for s, pool in zip(samples, pools, strict=True)]


def _pooled(
    samples: Sequence[tuple[CostSamples, Hashable]], priors: Mapping[Hashable, Matrix]
) -> dict[Hashable, Matrix]:
    groups: dict[Hashable, list[CostSamples]] = {}
    for one, name in samples:
        if len(one.costs):
            groups.setdefault(name, []).append(one)
    return {
        name: weights(
            np.concatenate([s.terms for s in group]), np.concatenate([s.costs for s in group]), priors.get(name)
        )
        for name, group in groups.items()
    }


def _fitted(samples: CostSamples, prior: Matrix | None) -> Fitted:
    count = samples.terms.shape[1]
    if not len(samples.costs):
        places, shares = np.zeros((0, samples.places.shape[1])), np.zeros((0, count))
        weighed = np.zeros(count) if prior is None else prior
        return Fitted(weighed, places, shares, np.zeros(0), np.zeros((0, 0)), 1.0)
    found = weights(samples.terms, samples.costs, prior)
    left = np.log(samples.costs) - np.log(np.maximum(samples.terms @ found, 1.0))
    shares = _shares(samples.terms, found)
    noisy = _kernel(samples.places, samples.places) + ALIKE * (shares @ shares.T) + NOISE * np.eye(len(left))
    inverse = np.asarray(np.linalg.inv(noisy), dtype=np.float64)
    spread = math.sqrt(max(float(left @ inverse @ left) / len(left), LEAST_SPREAD**2))
    return Fitted(found, samples.places, shares, inverse @ left, inverse, spread)


def weights(terms: Matrix, costs: Matrix, prior: Matrix | None = None) -> Matrix:
    """Coefficients, not negative, of terms whose sum is near the costs on a logarithmic scale.

    terms: samples x terms. A term that no sample has keeps its coefficient of `prior`, or has none.
    """
    from scipy.optimize import nnls  # a third of what any command takes to start

    scaled = terms / costs[:, None]
    size = np.sqrt(np.mean(scaled**2, axis=0))
    there = size > 0
    scaled = scaled[:, there] / size[there]
    towards = np.zeros(there.sum()) if prior is None else prior[there] * size[there]
    pull = 0.0 if prior is None else TOWARDS * math.sqrt(len(costs))
    rows = np.vstack([scaled, pull * np.eye(len(towards))]) if pull else scaled
    importance = np.ones(len(costs))
    found = towards
    for _ in range(REWEIGHTED):
        wanted = np.concatenate([importance, pull * towards]) if pull else importance
        weighed = np.vstack([scaled * importance[:, None], rows[len(costs) :]])
        found, _ = nnls(weighed, wanted, maxiter=50 * len(towards))
        share = np.maximum(scaled @ found, 1e-9)
        off = np.where(np.abs(share - 1) < 1e-6, 1.0, share - 1)
        # squares of these are squares of the logarithm
        importance = np.clip(np.where(off == 1.0, 1.0, np.log(share) / off), 0.3, 4.0)
    out = np.zeros(terms.shape[1]) if prior is None else prior.copy()
    out[there] = found / size[there]
    return out


def _shares(terms: Matrix, coefficients: Matrix) -> Matrix:
    """Problems x terms: the share of each term in the sum."""
    parts = terms * coefficients
    found: Matrix = parts / np.maximum(parts.sum(axis=1, keepdims=True), 1.0)
    return found


def _kernel(one: Matrix, other: Matrix) -> Matrix:
    squares = np.sum(one**2, axis=1)[:, None] + np.sum(other**2, axis=1)[None, :] - 2.0 * (one @ other.T)
    distance = np.sqrt(np.maximum(squares, 0.0)) * (math.sqrt(3.0) / FAR)
    found: Matrix = (1.0 + distance) * np.exp(-distance)
    return found
