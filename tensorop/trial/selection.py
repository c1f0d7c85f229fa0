"""Selects the few variants that are best together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

LEAST, MOST = 4, 12  # variants in a library
# Least gain in geometric mean of a further variant. Each one is measured on every probe, and near equals are confused.
WORTH = 0.003

P = TypeVar("P", str, tuple[str, int])  # a problem, or one at a VLEN (bits)


def choose(
    costs: Mapping[str, Mapping[P, float]],
    weights: Mapping[P, float] | None = None,
    *,
    least: int = LEAST,
    most: int = MOST,
) -> list[str]:
    """Greedy forward selection: each next variant lowers the geometric mean of the best costs most.

    A candidate cannot serve a problem that it did not run. At least `least` variants are kept, so that the dispatch
    has a choice; ties go to the earlier candidate.

    weights: weight of a problem in the mean; by default 1
    """
    weights = weights or {}
    problems = sorted({problem for row in costs.values() for problem in row})
    left = list(costs)
    chosen: list[str] = []
    best = dict.fromkeys(problems, math.inf)
    while left and len(chosen) < most:
        scored = [
            (_mean({p: min(best[p], costs[c].get(p, math.inf)) for p in problems}, weights), i)
            for i, c in enumerate(left)
        ]
        score, index = min(scored)
        if len(chosen) >= least and score > _mean(best, weights) + math.log1p(-WORTH):
            break
        name = left.pop(index)
        chosen.append(name)
        best = {p: min(best[p], costs[name].get(p, math.inf)) for p in problems}
    return chosen


def _mean(costs: Mapping[P, float], weights: Mapping[P, float]) -> float:
    total = sum(weights.get(p, 1.0) * (math.log(c) if math.isfinite(c) else 1e6) for p, c in costs.items())
    return total / max(sum(weights.get(p, 1.0) for p in costs), 1.0)
