"""The dispatch tree: from a shape's features to a variant, grown on measurements.

A regression tree in the manner of CART (Breiman et al. 1984), whose loss at a leaf is not a class error but the
logarithm of the cost lost by sending all its problems to one variant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorop.model.winner import Leaf, Split

DEPTH = 6
GAIN = 0.01  # a split must save this much, summed over its problems, in natural logarithm of cost

Node = Leaf | Split


@dataclass(frozen=True)
class Row:
    """A measured problem: what the dispatch sees of it, and each variant's cost."""

    features: Mapping[str, int]
    costs: tuple[float, ...]


def grow(rows: Sequence[Row], depth: int = DEPTH) -> Node:
    """The tree for these rows, at least one; thresholds lie between measured values, on a logarithmic scale."""
    variant, loss = _leaf(rows)
    best: tuple[float, str, int] | None = None
    if depth > 0 and len(rows) > 1:
        for feature in sorted(rows[0].features):
            values = sorted({row.features[feature] for row in rows})
            for low, high in itertools.pairwise(values):
                threshold = _between(low, high)
                left = [row for row in rows if row.features[feature] <= threshold]
                right = [row for row in rows if row.features[feature] > threshold]
                total = _leaf(left)[1] + _leaf(right)[1]
                if best is None or total < best[0] - 1e-12:
                    best = (total, feature, threshold)
    if best is None:
        return Leaf(variant)
    _, feature, threshold = best
    low_tree = grow([row for row in rows if row.features[feature] <= threshold], depth - 1)
    high_tree = grow([row for row in rows if row.features[feature] > threshold], depth - 1)
    split = Split(feature, threshold, low_tree, high_tree)
    return split if loss - _loss(split, rows) > GAIN else Leaf(variant)


def decide(tree: Node, features: Mapping[str, int]) -> int:
    """The variant the tree sends a problem to."""
    while isinstance(tree, Split):
        tree = tree.low if features[tree.feature] <= tree.threshold else tree.high
    return tree.variant


def regret(tree: Node, rows: Sequence[Row]) -> float:
    """Geometric mean over the rows of (chosen cost / best cost), minus one."""
    return math.expm1(_loss(tree, rows) / max(len(rows), 1))


def _loss(tree: Node, rows: Sequence[Row]) -> float:
    return sum(math.log(row.costs[decide(tree, row.features)] / min(row.costs)) for row in rows)


def _leaf(rows: Sequence[Row]) -> tuple[int, float]:
    losses = [sum(math.log(row.costs[v] / min(row.costs)) for row in rows) for v in range(len(rows[0].costs))]
    variant = min(range(len(losses)), key=losses.__getitem__)
    return variant, losses[variant]


def _between(low: int, high: int) -> int:
    if low <= 0:
        return (low + high) // 2
    return min(max(math.isqrt(low * high), low), high - 1)
