"""Which few variants a library carries, of all that were measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

LEAST = 4
MOST = 8
WORTH = 0.002  # a further variant must take this share off the geometric mean

Costs = Mapping[str, Mapping[str, float]]  # candidate -> problem -> cost


def choose(costs: Costs, *, least: int = LEAST, most: int = MOST, worth: float = WORTH) -> list[str]:
    """Greedy forward selection: each next variant is the one that lowers the geomean of the best cost most.

    Candidates that did not run every problem are passed over unless none did. At least `least` are kept when there
    are that many, so that the dispatch has something to choose from; ties go to the earlier candidate.
    """
    problems = sorted({problem for row in costs.values() for problem in row})
    whole = [name for name, row in costs.items() if all(problem in row for problem in problems)]
    left = whole or list(costs)
    chosen: list[str] = []
    best = dict.fromkeys(problems, math.inf)
    while left and len(chosen) < most:
        scored = [
            (_mean({p: min(best[p], costs[c].get(p, math.inf)) for p in problems}), i) for i, c in enumerate(left)
        ]
        score, index = min(scored)
        if len(chosen) >= least and score > _mean(best) + math.log1p(-worth):
            break
        name = left.pop(index)
        chosen.append(name)
        best = {p: min(best[p], costs[name].get(p, math.inf)) for p in problems}
    return chosen


def regret(costs: Sequence[float], chosen: int) -> float:
    """How much more than the best the chosen one costs, as a share."""
    return costs[chosen] / min(costs) - 1


def _mean(costs: Mapping[str, float]) -> float:
    return sum(math.log(c) if math.isfinite(c) else 1e6 for c in costs.values()) / max(len(costs), 1)
