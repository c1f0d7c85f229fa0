"""What the library's dispatch chooses for each problem, which template that is, and what the choice costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorop.dispatch import robust
from tensorop.dispatch.tree import decide
from tensorop.measure.statistics import geomean
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Stage
from tensorop.model.winner import DtypeRecord, Tree, VariantRecord, trees_of
from tensorop.space import problems
from tensorop.store.history import History
from tensorop.store.records import words


class JudgedVariant(VariantRecord):
    judged: int  # trials that passed and were made of what was packaged


@dataclass(frozen=True)
class ServedProblem:
    """A problem of the search that was measured."""

    problem: str
    variant: int  # that the dispatch chooses
    template: str
    cost: float | None  # of the variant chosen, itself or specialised; None where it was not measured on this problem
    cost_by_template: Mapping[str, float]  # the best of each
    best_template: str


@dataclass(frozen=True)
class Won:
    """What a template serves, and by how much it is better there than the best variant of another template that was
    tried on the same problem: ratios of costs, less 1; None where no other was tried."""

    template: str
    served: int  # problems
    share: float  # of all
    rivals: int  # problems on which another was tried
    by: float | None  # geometric mean
    least: float | None
    most: float | None


@dataclass(frozen=True)
class Choices:
    """Those of one dtype and tree."""

    dtype: str
    vlen: int | None  # None where the library has one tree
    regret: float | None  # a share, on shapes left out
    variants: Sequence[JudgedVariant]
    problems: Sequence[ServedProblem]
    won: Sequence[Won]


@dataclass(frozen=True)
class CloseChoice:
    """Variants that are within 3 % of each other, counted over the ranges of a model's assumed constants."""

    problem: str
    vlen: int
    variants: int
    given_up: float  # the share by which the one chosen is dearer at the best fit
    changed: Mapping[str, float]  # constants that alone change the choice: the share that another would gain


@dataclass(frozen=True)
class CloseChoices:
    dtype: str
    rows: Sequence[CloseChoice]


def choices(operator: Operator, dtypes: Mapping[str, DtypeRecord], history: History) -> list[Choices]:
    """dtypes: as the manifest has them of an operator."""
    shapes = [operator.shapes.of(text) for text in words(history.facts, "shapes")]
    passed = Counter(f.text for f in history.replay() if isinstance(f, Finished) and f.outcome.ok)
    out = []
    for dtype, winners in dtypes.items():
        variants = [_judged(variant, passed) for variant in winners["variants"]]
        trials = [
            finished
            for stage in (Stage.BLOCKING, Stage.SINGLE_VLEN, Stage.SMALLEST)
            for finished in history.ended((stage, dtype, 0))
            if finished.outcome.ok
        ]
        asked = [problems.of(operator, dtype, s, layout) for s in shapes for layout in range(len(operator.layouts))]
        for tree in trees_of(winners):
            chosen = ((problem, variant_of(operator, problem, tree, winners)) for problem in asked)
            rows = [_served(problem, number, variants[number], tree.vlen, trials) for problem, number in chosen]
            served = [row for row in rows if row is not None]
            out.append(Choices(dtype, tree.vlen or None, tree.regret, variants, served, won(served)))
    return out


def _judged(variant: VariantRecord, trials: Mapping[str, int]) -> JudgedVariant:
    """trials: that passed, by the id of their text."""
    text = variant.get("text", "")
    texts = {text, *variant.get("specialisation_texts", {}).values()} - {""}
    return {**variant, "text": text, "judged": sum(trials[one] for one in texts)}


def won(rows: Sequence[ServedProblem]) -> list[Won]:
    """By template, the one that serves most first."""
    out = []
    for template in dict.fromkeys(row.template for row in rows):
        mine = [row for row in rows if row.template == template]
        gains = []
        for row in mine:
            others = [cost for name, cost in row.cost_by_template.items() if name != template]
            if others and row.cost:
                gains.append(min(others) / row.cost - 1)
        out.append(
            Won(
                template=template,
                served=len(mine),
                share=len(mine) / len(rows),
                rivals=len(gains),
                by=geomean(1 + gain for gain in gains) - 1 if gains else None,
                least=min(gains, default=None),
                most=max(gains, default=None),
            )
        )
    return sorted(out, key=lambda entry: -entry.served)


def close_choices(notes: Sequence[Mapping[str, Any]]) -> list[CloseChoices]:
    """Of each dtype, from the journal's notes `constants`."""
    latest = {note["dtype"]: note for note in notes}
    out = []
    for dtype, note in latest.items():
        rows = [
            CloseChoice(
                problem=contest["problem"],
                vlen=contest["vlen"],
                variants=len(contest["variants"]),
                given_up=contest.get("given_up", 0.0),
                changed=robust.overturned(contest["cycles"], note["constants"], contest["chosen"]),
            )
            for contest in note["contests"]
        ]
        out.append(CloseChoices(dtype, rows))
    return out


def variant_of(operator: Operator, problem: Problem, tree: Tree, winners: DtypeRecord) -> int:
    """The number of the variant that serves a problem: the direct one, else what the tree says. winners: a dtype as the
    manifest has it."""
    direct = winners.get("direct")
    if direct is not None and operator.reference.work(problem) <= direct["most_flops"]:
        return int(direct["variant"])
    return decide(tree.root, problems.features(operator, problem))


def _served(
    problem: Problem, number: int, variant: VariantRecord, vlen: int, trials: Sequence[Finished]
) -> ServedProblem | None:
    """None for a problem nobody measured."""
    by_template: dict[str, float] = {}
    own = math.inf
    for finished in trials:
        samples = finished.score.per_problem.get(problem.label)
        if samples is None or finished.trial.variant.kernel.vlen not in (0, vlen):
            continue
        template, cost = finished.trial.variant.template.name, samples.at(vlen)
        by_template[template] = min(cost, by_template.get(template, cost))
        if template == variant["template"] and dict(finished.trial.variant.point) == variant["point"]:
            own = min(own, cost)
    if not by_template:
        return None
    best = min(by_template, key=by_template.__getitem__)
    return ServedProblem(
        problem.label, number, variant["template"], own if math.isfinite(own) else None, by_template, best
    )
