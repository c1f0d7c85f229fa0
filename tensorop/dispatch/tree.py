"""The dispatch tree: from a shape's features to a variant, grown on costs.

A regression tree in the manner of CART (Breiman et al. 1984), whose loss at a leaf is not a class error but the
logarithm of the cost lost by sending all its problems to one variant. Where CART takes the split that is best by
itself, the few best are each followed to the end of their greedy trees, and the one that ends best is taken: what
tells two problems apart is often seen only two splits down. Of thousands of problems, whose costs a model knows, one
split is followed: the one that is best when to the loss is added how much the variants' losses still differ from row to
row on either side, as in a regression tree of several outputs. The loss alone is blind where no single split changes
which variant is best: on one board's models it gave away 10 % where this gives away 1 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.model.winner import Leaf, Split
from tensorop.space import problems

DEPTH = 6
GAIN = 0.01  # a split must save this much, summed over its problems, in natural logarithm of cost
DEEP = 16  # of a tree that many problems tell apart
MOST_LOST = 0.7  # natural logarithm: by how much a variant is too dear does not matter beyond
FOLLOWED = 6  # splits of a node that are followed to the end
SAME = 1e-9  # losses nearer than this are equal
AT_ONCE = 4096  # rows and features whose splits are looked at together: what lies in a cache

Node = Leaf | Split


@dataclass(frozen=True)
class TreeRow:
    """A problem: what the dispatch sees of it, and each variant's cost."""

    features: Mapping[str, int]
    costs: tuple[float, ...]


def grow(rows: Sequence[TreeRow], depth: int = DEPTH) -> Node:
    """The tree for these rows, at least one; thresholds lie between measured values, on a logarithmic scale."""
    losses = np.array([[math.log(cost / min(row.costs)) for cost in row.costs] for row in rows])
    names = sorted(rows[0].features)
    columns = {name: np.array([row.features[name] for row in rows]) for name in names}
    given = _Measured(losses, columns)
    return given.grow(given.whole, depth, FOLLOWED)[0]


def distil(
    losses: NDArray[np.float64], columns: Mapping[str, NDArray[Any]], depth: int = DEEP, gain: float = GAIN
) -> Node:
    """The tree of many problems. losses: problems x variants, the logarithm of cost over the problem's best, times the
    problem's weight; columns: each feature's values; gain: what a split must save."""
    ordered = {name: columns[name] for name in sorted(columns)}
    given = _Measured(losses, ordered, gain, np.minimum(losses, MOST_LOST))
    return given.grow(given.whole, depth, 1)[0]


@dataclass(frozen=True)
class _Part:
    """Some of the rows: their numbers, and the same by each feature's values (features x rows)."""

    rows: NDArray[np.intp]
    ordered: NDArray[np.intp]

    def cut(self, low: NDArray[np.bool_]) -> tuple[_Part, _Part]:
        """Those of all rows that are low, and the others."""
        count = len(self.ordered)
        return tuple(  # type: ignore[return-value]
            _Part(self.rows[side[self.rows]], self.ordered[side[self.ordered]].reshape(count, -1))
            for side in (low, ~low)
        )


@dataclass(frozen=True)
class _Measured:
    """losses: rows x variants, the logarithm of cost over the row's best; columns: a feature's value of each row;
    alike: figures, rows x any, that should differ little between the rows on one side of a split."""

    losses: NDArray[np.float64]
    columns: Mapping[str, NDArray[Any]]  # integers of any size
    gain: float = GAIN
    alike: NDArray[np.float64] | None = None

    @cached_property
    def ranks(self) -> NDArray[np.intp]:
        """Features x rows: the place of a row's value among the feature's values."""
        return np.stack([np.unique(column, return_inverse=True)[1].reshape(-1) for column in self.columns.values()])

    @cached_property
    def turned(self) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """`losses` and `alike`, with the rows last."""
        alike = None if self.alike is None else np.ascontiguousarray(self.alike.T)
        return np.ascontiguousarray(self.losses.T), alike

    @property
    def whole(self) -> _Part:
        return _Part(np.arange(len(self.losses)), np.argsort(self.ranks, axis=1, kind="stable"))

    def grow(self, part: _Part, depth: int, followed: int) -> tuple[Node, float]:
        """The tree of these rows and its loss."""
        sums = self.losses[part.rows].sum(axis=0)
        variant = int(sums.argmin())
        leaf, loss = Leaf(variant), float(sums[variant])
        best: tuple[float, str, int] | None = None
        # nothing to gain, nothing to look for
        splits = self._splits(part, followed) if depth > 0 and loss > self.gain else []
        if followed == 1 and splits:
            best = splits[0]
        for _, feature, threshold in splits[:followed] if followed > 1 else ():
            total = sum(self.grow(side, depth - 1, 1)[1] for side in self._cut(part, feature, threshold))
            if best is None or total < best[0] - SAME:
                best = total, feature, threshold
        if best is None:
            return leaf, loss
        _, feature, threshold = best
        (low, low_loss), (high, high_loss) = (
            self.grow(side, depth - 1, followed) for side in self._cut(part, feature, threshold)
        )
        gained = loss - low_loss - high_loss > self.gain
        return (Split(feature, threshold, low, high), low_loss + high_loss) if gained else (leaf, loss)

    def _cut(self, part: _Part, feature: str, threshold: int) -> tuple[_Part, _Part]:
        return part.cut((self.columns[feature] <= threshold).astype(bool))

    def _splits(self, part: _Part, wanted: int) -> list[tuple[float, str, int]]:
        """(loss with a leaf on each side and what is not alike there, feature, threshold), the least first; equal ones
        as features are named. wanted: how many of them, of each feature at most."""
        at_once = max(1, AT_ONCE // len(part.rows))  # features
        starts = range(0, len(part.ordered), at_once)
        rounded = np.concatenate([self._rounded(part.ordered[i : i + at_once], i) for i in starts])
        if wanted == 1:
            chosen = [divmod(int(rounded.argmin()), rounded.shape[1])] if rounded.size else []
        else:
            chosen = [(f, int(i)) for f, of in enumerate(rounded) for i in np.argsort(of, kind="stable")[:wanted]]
        names = list(self.columns)
        found = []
        for f, i in chosen:
            if math.isfinite(rounded[f, i]):
                low, high = (int(self.columns[names[f]][row]) for row in part.ordered[f, i : i + 2])
                found.append((float(rounded[f, i]), names[f], _between(low, high)))
        return sorted(found, key=lambda split: split[0])

    def _rounded(self, ordered: NDArray[np.intp], first: int) -> NDArray[np.float64]:
        """Features x splits: the loss with a leaf on each side and what is not alike there, in units of SAME; without
        end between equal values. first: the number of the first of these features."""
        losses, alike = self.turned
        below = np.take(losses, ordered, axis=1)
        np.cumsum(below, axis=-1, out=below)
        found: NDArray[np.float64] = below.min(axis=0)
        above = np.subtract(below[..., -1:].copy(), below, out=below)
        found += above.min(axis=0)
        if alike is not None:
            found += _differing(np.take(alike, ordered, axis=1))
        values = np.take_along_axis(self.ranks[first : first + len(ordered)], ordered, axis=1)
        split = np.round(found[:, :-1] / SAME)
        split[values[:, 1:] <= values[:, :-1]] = np.inf
        return split


def decide(tree: Node, features: Mapping[str, int]) -> int:
    """The variant the tree sends a problem to."""
    while isinstance(tree, Split):
        tree = tree.low if problems.feature(tree.feature, features) <= tree.threshold else tree.high
    return tree.variant


def _differing(figures: NDArray[np.float64]) -> NDArray[np.float64]:
    """The squares of the deviations from their means of the rows up to each and of the rows after it, but for a sum
    that is the same everywhere; with no row after it, as with no split. figures: any x features x rows."""
    count = figures.shape[-1]
    below = np.cumsum(figures, axis=-1)
    above = below[..., -1:] - below
    low = np.arange(1, count + 1)
    for sums, rows in ((below, low), (above, np.maximum(count - low, 1))):  # in place: it is most of a tree's work
        np.multiply(sums, sums, out=sums)
        np.divide(sums, rows, out=sums)
    below += above
    found: NDArray[np.float64] = below.sum(axis=0)
    return np.negative(found, out=found)


def _between(low: int, high: int) -> int:
    if low <= 0:
        return (low + high) // 2
    return min(max(math.isqrt(low * high), low), high - 1)
