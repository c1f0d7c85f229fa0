"""The few variants that do best together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

LEAST, MOST = 4, 12  # variants that a library may carry
# a further variant must take this share off the geometric mean: each is measured on every probe, and one that hardly
# differs from another is chosen by error
WORTH = 0.003

P = TypeVar("P", str, tuple[str, int])  # a problem, or one at a VLEN (bits)


def choose(
    costs: Mapping[str, Mapping[P, float]],
    weights: Mapping[P, float] | None = None,
    *,
    least: int = LEAST,
    most: int = MOST,
) -> list[str]:
    """Greedy forward selection: each next variant is the one that lowers the geomean of the best cost most.

    A problem that a candidate did not run is one it cannot serve. At least `least` are kept when there
    are that many, so that the dispatch has something to choose from; ties go to the earlier candidate.

    weights: of problems in the mean, 1 where nothing is said.
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
