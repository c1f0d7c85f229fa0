"""Selects the few variants that are best together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from tensorop.measure.samples import objective
from tensorop.model.trial import Finished

LEAST, MOST = 4, 12  # variants in a library
FINALISTS = 10  # variants that are measured on all problems under a model
FEW = 6  # on a clock, where they are measured side by side
# Least gain in geometric mean of a further variant. Each one is measured on every probe, and near equals are confused.
WORTH = 0.003

# Times the least expected cost. At 1.5, some problems of recorded searches lost their best finalist.
WITHIN = 1.75
CLOSE = 1.01  # a class has its best where a chosen variant costs at most so many times as much

P = TypeVar("P", str, tuple[str, int])  # a problem, or one at a VLEN (bits)


def choose(
    costs: Mapping[str, Mapping[P, float]],
    weights: Mapping[P, float] | None = None,
    *,
    first: Sequence[str] = (),
    least: int = LEAST,
    most: int = MOST,
) -> list[str]:
    """Greedy forward selection: each next variant lowers the geometric mean of the best costs most.

    A candidate cannot serve a problem that it did not run. At least `least` variants are kept, so that the dispatch
    has a choice; ties go to the earlier candidate.

    weights: weight of a problem in the mean; by default 1; first: candidates that are chosen before the others
    """
    weights = weights or {}
    problems = sorted({problem for row in costs.values() for problem in row})
    left = [name for name in costs if name not in first]
    chosen = list(first)
    best = {p: min((costs[name].get(p, math.inf) for name in chosen), default=math.inf) for p in problems}
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
    return total / (sum(weights.get(p, 1.0) for p in costs) or 1.0)


def finalists(
    tried: Sequence[Finished],
    costs: Mapping[str, Mapping[tuple[str, int], float]],
    weights: Mapping[tuple[str, int], float] | None = None,
    count: int = FINALISTS,
    classes: Mapping[str, str] | None = None,
) -> list[str]:
    """The variants to measure on all problems, by their ids: the best of each template, the best of each class of
    problems, then those that do best together. Templates come first, since some are made for problems that trials leave
    out.

    tried: trials on some of the problems; costs: of each, by its id, on a problem at a VLEN; weights: as for `choose`
    count: so many, if not more are the best of a template or a class; classes: of problems, by their labels
    """
    best_of: dict[str, str] = {}
    for one in sorted(tried, key=lambda f: math.inf if f.score.cost is None else f.score.cost):
        best_of.setdefault(one.trial.variant.template.name, one.trial.variant.id)
    first = of_each_class(costs, classes or {}, list(best_of.values()), weights)
    return choose(costs, weights, first=first, least=count, most=count)


def of_each_class(
    costs: Mapping[str, Mapping[tuple[str, int], float]],
    classes: Mapping[str, str],
    first: Sequence[str] = (),
    weights: Mapping[tuple[str, int], float] | None = None,
) -> list[str]:
    """`first`, then the best variant of each class at each VLEN where no chosen one costs at most CLOSE times as much.

    As for `finalists`. A variant without a cost on some problem of a class is not the best there.
    """
    chosen = list(first)
    at = {place for of_variant in costs.values() for place in of_variant}
    groups: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for label, vlen in sorted(at):
        if label in classes:
            groups.setdefault((classes[label], vlen), []).append((label, vlen))
    for places in groups.values():
        means = {
            name: _mean({place: of_variant[place] for place in places}, weights or {})
            for name, of_variant in costs.items()
            if of_variant.keys() >= {*places}
        }
        if means and min(means.values()) + math.log(CLOSE) < min(means.get(name, math.inf) for name in chosen or [""]):
            chosen.append(min(means, key=means.__getitem__))
    return chosen


def worthwhile(expected: Mapping[str, Mapping[tuple[str, int], float]]) -> dict[str, tuple[str, ...]]:
    """The problems on which to measure each finalist but the first, by their labels: those where its expected cost is
    within WITHIN of the least at a VLEN, or else relatively lowest. The first one is measured on all.

    expected: costs of each, by its id, on a problem at a VLEN; without any, all are measured on all
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, costs in [*expected.items()][1:]:
        ratios = {at: cost / min(other[at] for other in expected.values()) for at, cost in costs.items()}
        most = max(WITHIN, min(ratios.values(), default=WITHIN))
        found[name] = tuple(dict.fromkeys(problem for (problem, _), ratio in ratios.items() if ratio <= most))
    return found


def by_vlen(finished: Finished, vlens: Sequence[int]) -> dict[tuple[str, int], float]:
    """The costs of a trial, by problem and VLEN (bits)."""
    return {(p, v): objective(s, v) for p, s in finished.score.per_problem.items() for v in vlens}
