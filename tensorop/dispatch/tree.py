"""The dispatch tree: from a shape's features to a variant, grown on costs.

It is a tree in the manner of CART (Breiman et al. 1984). The loss of a leaf is the logarithm of the cost that is lost
by sending all its problems to one variant.

- Few problems: CART takes the split with the least loss. Here the few best splits are each followed to the end of their
  greedy trees, since a difference between two problems is often visible only two splits down.
- Thousands of problems (costs predicted by models): one split is followed. Its criterion adds the variance of the
  variants' losses on either side, as in a regression tree with several outputs. The loss alone cannot guide the search
  where no single split changes the best variant.
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
GAIN = 0.01  # least gain of a split: sum over its problems, natural logarithm of cost
DEEP = 16  # deepest tree of thousands of problems
MOST_LOST = 0.7  # losses above this count as this; natural logarithm
FOLLOWED = 6  # splits of a node that are followed to the end (few problems)
SAME = 1e-9  # losses nearer than this are equal
AT_ONCE = 4096  # rows x features whose splits are evaluated together, to stay in a cache

Node = Leaf | Split


@dataclass(frozen=True)
class TreeRow:
    """A problem's dispatch features and each variant's cost."""

    features: Mapping[str, int]
    costs: tuple[float, ...]


def grow(rows: Sequence[TreeRow], depth: int = DEPTH) -> Node:
    """The tree for at least one row. Thresholds lie between measured values, on a logarithmic scale."""
    losses = np.array([[math.log(cost / min(row.costs)) for cost in row.costs] for row in rows])
    names = sorted(rows[0].features)
    columns = {name: np.array([row.features[name] for row in rows]) for name in names}
    given = _Measured(losses, columns)
    return given.grow(given.whole, depth, FOLLOWED)[0]


def distil(
    losses: NDArray[np.float64], columns: Mapping[str, NDArray[Any]], depth: int = DEEP, gain: float = GAIN
) -> Node:
    """The tree of thousands of problems.

    losses: problems x variants, log(cost / best cost) times the problem's weight; columns: each feature's values
    gain: least gain of a split
    """
    ordered = {name: columns[name] for name in sorted(columns)}
    given = _Measured(losses, ordered, gain, np.minimum(losses, MOST_LOST))
    return given.grow(given.whole, depth, 1)[0]


@dataclass(frozen=True)
class _Part:
    """A subset of the rows: their numbers, and the numbers sorted by each feature (features x rows)."""

    rows: NDArray[np.intp]
    ordered: NDArray[np.intp]

    def cut(self, low: NDArray[np.bool_]) -> tuple[_Part, _Part]:
        """The rows for which `low` is True, and the others."""
        count = len(self.ordered)
        return tuple(  # type: ignore[return-value]
            _Part(self.rows[side[self.rows]], self.ordered[side[self.ordered]].reshape(count, -1))
            for side in (low, ~low)
        )


@dataclass(frozen=True)
class _Measured:
    """Rows that a tree is grown on.

    losses: rows x variants, log(cost / best cost); columns: each feature's values
    alike: rows x any: values whose variance on either side of a split is added to the loss
    """

    losses: NDArray[np.float64]
    columns: Mapping[str, NDArray[Any]]  # integers of any size
    gain: float = GAIN
    alike: NDArray[np.float64] | None = None

    @cached_property
    def ranks(self) -> NDArray[np.intp]:
        """Features x rows: rank of a row's value among the feature's values."""
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
        """The tree of these rows, and its loss."""
        sums = self.losses[part.rows].sum(axis=0)
        variant = int(sums.argmin())
        leaf, loss = Leaf(variant), float(sums[variant])
        best: tuple[float, str, int] | None = None
        # no split can gain enough
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
        """The best splits as (loss plus variance, feature, threshold), the least first; ties go by the features' order.

        wanted: most splits in all, and of each feature
        """
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
        """Features x splits: loss plus variance in units of SAME; infinite between equal values.

        first: number of the first of these features
        """
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
    """For each split: squared deviations from both sides' means, up to a constant. figures: any x features x rows."""
    below, low = np.cumsum(figures, axis=-1), np.arange(1.0, figures.shape[-1] + 1)
    whole = below[..., -1]
    squares: NDArray[np.float64] = np.einsum("vfr,vfr->fr", below, below)
    other = squares - 2 * np.einsum("vf,vfr->fr", whole, below) + (whole**2).sum(axis=0)[:, None]
    found: NDArray[np.float64] = -(squares / low) - other / np.maximum(len(low) - low, 1.0)
    return found


def _between(low: int, high: int) -> int:
    if low <= 0:
        return (low + high) // 2
    return min(max(math.isqrt(low * high), low), high - 1)
