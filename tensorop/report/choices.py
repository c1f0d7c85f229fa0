"""What the library's dispatch chooses for each problem, which draft that is, and what the choice costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorop import problems
from tensorop.model.operator import Operator
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Stage
from tensorop.store.history import History


def choices(
    operator: Operator, manifest: Mapping[str, Any], history: History, finalists: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """For each dtype: its variants, its regret (a share), and for each problem the variant and draft chosen, the regret
    there and the best cost of each draft.

    Regrets are of the last measurement there is: side by side in the library (`finalists`, the journal's notes), else
    the trials'.
    """
    shapes = [tuple(int(side) for side in str(text).split("x")) for text in history.facts.get("shapes", ())]
    out = []
    for dtype, winners in manifest["dtypes"].items():
        variants = winners["variants"]
        side_by_side = next((note for note in reversed(finalists) if note["dtype"] == dtype), None)
        trials = [f for f in history.ended((Stage.BLOCKING, dtype, 0)) if f.outcome.ok]
        rows = []
        for shape in shapes:
            for layout in range(len(operator.layouts)):
                problem = problems.of(operator, dtype, shape, layout)
                rows += _row(operator, problem, winners, trials, side_by_side)
        out.append({"dtype": dtype, "regret": winners["regret"], "variants": variants, "problems": rows})
    return out


def decide(node: Mapping[str, Any], features: Mapping[str, int]) -> int:
    """The variant a manifest's tree sends these features to."""
    while "variant" not in node:
        node = node["low"] if features[node["feature"]] <= node["threshold"] else node["high"]
    return int(node["variant"])


def _row(
    operator: Operator,
    problem: Problem,
    winners: Mapping[str, Any],
    trials: Sequence[Finished],
    side_by_side: Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    """Empty for a problem nobody measured."""
    by_draft: dict[str, float] = {}
    costs: list[float | None] = [None] * len(winners["variants"])
    for finished in trials:
        samples = finished.score.per_problem.get(problem.label)
        if samples is None:
            continue
        draft = draft_of(finished)
        by_draft[draft] = min(samples.value, by_draft.get(draft, samples.value))
        for number, variant in enumerate(winners["variants"]):
            if variant["draft"] == draft and _is_at(finished, Point.of(variant["point"])):
                costs[number] = samples.value
    if not by_draft:
        return []
    features = operator.reference.features(problem)
    for row in (side_by_side or {}).get("rows", ()):
        if row["features"] == dict(features) and len(row["costs"]) == len(costs):
            costs = list(row["costs"])
    chosen = decide(winners["tree"], features)
    known = [cost for cost in costs if cost is not None]
    mine = costs[chosen]
    return [
        {
            "problem": problem.label,
            "variant": chosen,
            "draft": winners["variants"][chosen]["draft"],
            "regret": None if mine is None else mine / min(known) - 1,
            "cost_by_draft": by_draft,
            "best_draft": min(by_draft, key=by_draft.__getitem__),
        }
    ]


def draft_of(finished: Finished) -> str:
    """A second-stage trial's arm is `draft name=value ...`: a draft at the point its micro-kernel was chosen at."""
    return finished.trial.draft.partition(" ")[0]


def _is_at(finished: Finished, point: Point) -> bool:
    micro = dict(word.split("=", 1) for word in finished.trial.draft.split()[1:])
    whole = {**micro, **{name: str(value) for name, value in finished.trial.point.items()}}
    return whole == {name: str(value) for name, value in point.items()}
