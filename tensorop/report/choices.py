"""What the library's dispatch chooses for each problem, which template that is, and what the choice costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tensorop.dispatch import robust
from tensorop.measure.statistics import geomean
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Stage
from tensorop.space import problems
from tensorop.store.history import History


def choices(operator: Operator, held: Mapping[str, Any], history: History) -> list[dict[str, Any]]:
    """For each dtype, and each VLEN where the dispatch has a tree for each: the variants, the tree's regret on shapes
    left out (a share), and for each problem of the search the variant and template chosen, its cost and the best
    cost of each template.

    held: what the manifest says of the operator; vlen: None where there is one tree; of a variant, text: the id of what
    was packaged, judged: how many trials that passed were made of that very text.
    """
    shapes = [operator.shapes.of(str(text)) for text in history.facts.get("shapes", ())]
    out = []
    for dtype, winners in held["dtypes"].items():
        judged = Counter(f.text for f in history.replay() if isinstance(f, Finished) and f.outcome.ok)
        variants = [
            {**v, "text": v.get("text", ""), "judged": sum(judged[text] for text in _texts(v))}
            for v in winners["variants"]
        ]
        ended = [
            f for stage in (Stage.BLOCKING, Stage.SINGLE_VLEN, Stage.SMALLEST) for f in history.ended((stage, dtype, 0))
        ]
        trials = [f for f in ended if f.outcome.ok]
        asked = [problems.of(operator, dtype, s, layout) for s in shapes for layout in range(len(operator.layouts))]
        for vlen, dispatch in trees(winners):
            direct = winners.get("direct")
            told = [
                _row(operator, problem, variants, variant_of(operator, problem, dispatch, direct), vlen or 0, trials)
                for problem in asked
            ]
            rows = [row for row in told if row is not None]
            told_of = {"dtype": dtype, "vlen": vlen, "regret": dispatch["regret"], "variants": variants}
            out.append({**told_of, "problems": rows, "won": _won(rows)})
    return out


def _won(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What each template serves: problems, their share, and by how much its chosen variants are better there than the
    best variant of another template that was tried on the same problem: the geometric mean, the least and the most of
    the costs' ratios, less 1 (None where no other was tried)."""
    out = []
    for template in dict.fromkeys(row["template"] for row in rows):
        mine = [row for row in rows if row["template"] == template]
        gains = []
        for row in mine:
            others = [cost for name, cost in row["cost_by_template"].items() if name != template]
            if others and row["cost"]:
                gains.append(min(others) / row["cost"] - 1)
        mean = geomean(1 + gain for gain in gains) - 1 if gains else None
        ends = {"least": min(gains, default=None), "most": max(gains, default=None)}
        share = len(mine) / len(rows)
        out.append(
            {"template": template, "served": len(mine), "share": share, "rivals": len(gains), "by": mean, **ends}
        )
    return sorted(out, key=lambda entry: -int(entry["served"]))


def _texts(variant: Mapping[str, Any]) -> set[str]:
    """The ids of the texts a variant is made of, those of its specialisations included."""
    specialisations = variant.get("specialisation_texts", {})
    return {str(text) for text in (variant.get("text"), *specialisations.values()) if text}


def constants(told: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each dtype the close choices that were counted over the model's ranges, each with the constants that alone
    would change it and the share another variant would gain. told: the journal's notes `constants`."""
    latest = {note["dtype"]: note for note in told}
    return [
        {
            "dtype": dtype,
            "rows": [
                {
                    "problem": contest["problem"],
                    "vlen": contest["vlen"],
                    "variants": len(contest["variants"]),
                    "given_up": contest.get("given_up", 0.0),
                    "changed": robust.overturned(contest["cycles"], note["constants"], contest["chosen"]),
                }
                for contest in note["contests"]
            ],
        }
        for dtype, note in latest.items()
    ]


def trees(winners: Mapping[str, Any]) -> list[tuple[int | None, Mapping[str, Any]]]:
    """(VLEN, what holds `tree` and `regret`) of a dtype in a manifest; one without VLEN where there is one tree."""
    if "by_vlen" not in winners:
        return [(None, winners)]
    return sorted((int(vlen), of_vlen) for vlen, of_vlen in winners["by_vlen"].items())


def decide(node: Mapping[str, Any], features: Mapping[str, int]) -> int:
    """The variant a manifest's tree sends these features to."""
    while "variant" not in node:
        node = node["low"] if problems.feature(node["feature"], features) <= node["threshold"] else node["high"]
    return int(node["variant"])


def variant_of(
    operator: Operator, problem: Problem, dispatch: Mapping[str, Any], direct: Mapping[str, Any] | None
) -> int:
    """The number of the variant that serves a problem: the direct one, else what the tree says."""
    if direct is not None and operator.reference.work(problem) <= direct["most_flops"]:
        return int(direct["variant"])
    return decide(dispatch["tree"], problems.features(operator, problem))


def _row(
    operator: Operator,
    problem: Problem,
    variants: Sequence[Mapping[str, Any]],
    chosen: int,
    vlen: int,
    trials: Sequence[Finished],
) -> dict[str, Any] | None:
    """None for a problem nobody measured."""
    by_template: dict[str, float] = {}
    own = math.inf  # the cost of what was chosen, itself or specialised
    for finished in trials:
        samples = finished.score.per_problem.get(problem.label)
        if samples is None or finished.trial.variant.kernel.vlen not in (0, vlen):
            continue
        template, cost = finished.trial.variant.template.name, samples.at(vlen)
        by_template[template] = min(cost, by_template.get(template, cost))
        if template == variants[chosen]["template"] and dict(finished.trial.variant.point) == variants[chosen]["point"]:
            own = min(own, cost)
    if not by_template:
        return None
    return {
        "problem": problem.label,
        "variant": chosen,
        "template": variants[chosen]["template"],
        "cost": own if math.isfinite(own) else None,
        "cost_by_template": by_template,
        "best_template": min(by_template, key=by_template.__getitem__),
    }
