"""Predicts each variant's cost on unmeasured problems: a sum of cost terms plus a Gaussian process over its residuals.

The coefficients of the terms are not negative (NNLS, Lawson and Hanson). They are fitted to the logarithm of measured
costs by reweighting. Coefficients are pulled towards a fit of all variants of the same micro-kernel, and those towards
a fit of the micro-kernel's family; so few samples suffice. The Gaussian process (Rasmussen and Williams 2006, eq. 2.25
and 2.26) predicts the residual and its uncertainty. Two problems are similar if their coordinates are close (Matern
kernel, nu = 3/2) or if the same terms dominate their costs (section 2.7 there, with the shares as basis functions).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

REWEIGHTED = 4  # iterations of the reweighting
TOWARDS = 1.0  # pull of the pool's coefficients, relative to one sample
FAR = 5.0  # length scale of the Matern kernel, in octaves
ALIKE = 4.0  # variance of the shares' kernel, relative to the Matern kernel's
NOISE = 0.2  # noise variance, relative to the Matern kernel's
BLOCK = 512  # problems predicted at once, to stay in a cache
LEAST_SPREAD = 0.03  # least standard deviation, natural logarithm of cost

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class CostSamples:
    """Measurements of one variant: terms (samples x terms), coordinates in octaves (samples x features), costs."""

    terms: Matrix
    places: Matrix
    costs: Matrix


@dataclass(frozen=True)
class PoolKey:
    """Pools that a variant's coefficients are pulled towards: its micro-kernel's, and its family's (the template)."""

    kernel: Hashable
    family: Hashable


@dataclass(frozen=True)
class Fitted:
    """A variant's model: coefficients by term, and the Gaussian process over the residuals.

    places, shares: the samples' coordinates, and the share of each term in their costs
    whitening: lower triangle W, K^-1 = W^T W for the samples' covariance K; solved: K^-1 residuals
    """

    weights: Matrix
    places: Matrix
    shares: Matrix
    solved: Matrix
    whitening: Matrix
    spread: float

    def predict(self, terms: Matrix, near: Matrix) -> tuple[Matrix, Matrix]:
        """Natural logarithm of the cost and its standard deviation, for each problem.

        near: Matern kernel of coordinates, samples x problems; overwritten
        """
        from scipy.linalg.blas import dtrmm  # importing it takes a third of a command's start-up time

        mean, shares = np.log(np.maximum(terms @ self.weights, 1.0)), _shares(terms, self.weights)
        if not len(self.places):
            return mean, np.full(len(mean), 1.0)
        near += (ALIKE * self.shares) @ shares.T
        mean += self.solved @ near
        known = dtrmm(1.0, self.whitening, near.T, side=1, lower=1, trans_a=1, overwrite_b=1)  # near^T W^T
        unknown = 1.0 + ALIKE * np.sum(shares**2, axis=1) + NOISE - np.einsum("ij,ij->i", known, known)
        return mean, self.spread * np.sqrt(np.maximum(unknown, NOISE))


def predict(models: Sequence[Fitted], terms: Sequence[Matrix], places: Matrix) -> tuple[Matrix, Matrix]:
    """Natural logarithms of cost and their standard deviations, both problems x models.

    terms: one matrix a model, problems x terms; places: the problems' coordinates
    """
    means, spreads = np.empty((len(places), len(models))), np.empty((len(places), len(models)))
    sample_places = np.concatenate([model.places for model in models])
    # models share most samples' coordinates: compute the kernel once for each
    apart, of_sample = np.unique(sample_places, axis=0, return_inverse=True)
    columns = np.split(of_sample.reshape(-1), np.cumsum([len(model.places) for model in models])[:-1])
    with threadpool_limits(1):
        for begin in range(0, len(places), BLOCK):
            rows = slice(begin, begin + BLOCK)
            near = _kernel(apart, places[rows])
            for number, (model, of_model, mine) in enumerate(zip(models, terms, columns, strict=True)):
                means[rows, number], spreads[rows, number] = model.predict(of_model[rows], near[mine])
    return means, spreads


def fit(
    samples: Sequence[CostSamples], pools: Sequence[PoolKey], more: Sequence[tuple[CostSamples, PoolKey]] = ()
) -> list[Fitted]:
    """One model for each of `samples`. pools: the pool of each; more: samples that only the pools are fitted to."""
    everyone = [*zip(samples, pools, strict=True), *more]
    with threadpool_limits(1):  # sums in one order give the same bits on every machine
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
    from scipy.linalg import cho_factor, cho_solve
    from scipy.linalg.lapack import dtrtri

    count = samples.terms.shape[1]
    if not len(samples.costs):
        places, shares = np.zeros((0, samples.places.shape[1])), np.zeros((0, count))
        weighed = np.zeros(count) if prior is None else prior
        return Fitted(weighed, places, shares, np.zeros(0), np.zeros((0, 0)), 1.0)
    found = weights(samples.terms, samples.costs, prior)
    left = np.log(samples.costs) - np.log(np.maximum(samples.terms @ found, 1.0))
    shares = _shares(samples.terms, found)
    noisy = _kernel(samples.places, samples.places) + ALIKE * (shares @ shares.T) + NOISE * np.eye(len(left))
    root, _ = cho_factor(noisy, lower=True)
    solved, (whitening, _) = cho_solve((root, True), left), dtrtri(root, lower=1)
    spread = math.sqrt(max(float(left @ solved) / len(left), LEAST_SPREAD**2))
    return Fitted(found, samples.places, shares, solved, whitening, spread)


def weights(terms: Matrix, costs: Matrix, prior: Matrix | None = None) -> Matrix:
    """Non-negative coefficients of the terms, fitted to the logarithm of the costs.

    terms: samples x terms. A term that is 0 in all samples keeps its coefficient of `prior`, or gets 0.
    """
    from scipy.optimize import nnls  # importing it takes a third of a command's start-up time

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
        # with these weights the squared residual equals the squared logarithm
        importance = np.clip(np.where(off == 1.0, 1.0, np.log(share) / off), 0.3, 4.0)
    out = np.zeros(terms.shape[1]) if prior is None else prior.copy()
    out[there] = found / size[there]
    return out


def _shares(terms: Matrix, coefficients: Matrix) -> Matrix:
    """Share of each term in the sum, problems x terms."""
    parts = terms * coefficients
    found: Matrix = parts / np.maximum(parts.sum(axis=1, keepdims=True), 1.0)
    return found


def _kernel(one: Matrix, other: Matrix) -> Matrix:
    squares = np.sum(one**2, axis=1)[:, None] + np.sum(other**2, axis=1)[None, :] - 2.0 * (one @ other.T)
    distance = np.sqrt(np.maximum(squares, 0.0)) * (math.sqrt(3.0) / FAR)
    found: Matrix = (1.0 + distance) * np.exp(-distance)
    return found
