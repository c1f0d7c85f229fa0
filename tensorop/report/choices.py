"""The dispatch's choice for each problem: variant, template and cost."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop.dispatch import evidence, robust
from tensorop.dispatch.tree import decide
from tensorop.measure.statistics import geomean
from tensorop.model.kernel import Variant
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Stage
from tensorop.model.winner import DtypeRecord, Tree, VariantRecord, trees_of
from tensorop.space import problems
from tensorop.store.history import History
from tensorop.store.records import words


@dataclass(frozen=True)
class _Cost:
    variant: Variant
    cost: float


class JudgedVariant(VariantRecord):
    judged: int  # passed trials of the packaged code
    file: str  # its C, relative to share/tensorop; "" if it is not there


@dataclass(frozen=True)
class ServedProblem:
    """A measured problem of the search."""

    problem: str
    variant: int  # the dispatch's choice
    template: str
    cost: float | None  # of the chosen variant or its specialisation; None if not measured on this problem
    cost_by_template: Mapping[str, float]  # the lowest of each template
    best_template: str


@dataclass(frozen=True)
class Won:
    """The problems that a template serves, and its gain there over the best variant of any other template.

    A gain is a ratio of costs on the same problem, minus 1. Gains are None if no other template was tried.
    """

    template: str
    served: int  # problems
    share: float  # of all problems
    rivals: int  # problems on which another template was tried
    by: float | None  # the geometric mean of the gains
    least: float | None
    most: float | None


@dataclass(frozen=True)
class Choices:
    """The choices of one dtype and tree."""

    dtype: str
    vlen: int | None  # None if the library has one tree
    regret: float | None  # a share, by cross-validation
    variants: Sequence[JudgedVariant]
    problems: Sequence[ServedProblem]
    won: Sequence[Won]


@dataclass(frozen=True)
class CloseChoice:
    """A choice between variants with costs within 3 %, repeated over the ranges of a model's assumed constants."""

    problem: str
    vlen: int
    variants: int
    given_up: float  # the share by which the chosen one costs more at the best fit
    changed: Mapping[str, float]  # each constant that alone changes the choice, with the other variant's gain


@dataclass(frozen=True)
class CloseChoices:
    dtype: str
    rows: Sequence[CloseChoice]


def choices(operator: Operator, dtypes: Mapping[str, DtypeRecord], history: History, share: Path) -> list[Choices]:
    """The choices of an operator's dtypes and trees.

    dtypes: the operator's part of the manifest; share: the folder share/tensorop of the product
    """
    shapes = [operator.shapes.of(text) for text in words(history.facts, "shapes")]
    passed = Counter(f.text for f in history.replay() if isinstance(f, Finished) and f.outcome.ok)
    out = []
    for dtype, winners in dtypes.items():
        files = _files(operator, dtype, winners, share)
        variants = [_judged(one, passed, file) for one, file in zip(winners["variants"], files, strict=True)]
        trials = [
            finished
            for stage in (Stage.BLOCKING, Stage.FINALISTS, Stage.SINGLE_VLEN, Stage.SMALLEST)
            for finished in history.ended((stage, dtype, 0))
            if finished.outcome.ok
        ]
        asked = [problems.of(operator, dtype, s, layout) for s in shapes for layout in range(len(operator.layouts))]
        for tree in trees_of(winners):
            costs = _costs(trials, tree.vlen) | _inside(operator, dtype, history, trials, tree.vlen)
            chosen = ((problem, variant_of(operator, problem, tree, winners)) for problem in asked)
            rows = [_served(problem, number, variants[number], costs) for problem, number in chosen]
            served = [row for row in rows if row is not None]
            out.append(Choices(dtype, tree.vlen or None, tree.regret, variants, served, won(served)))
    return out


def _files(operator: Operator, dtype: str, winners: DtypeRecord, share: Path) -> list[str]:
    """The C file that defines each variant, relative to `share`; "" for a variant without one."""
    units = {path: path.read_text() for path in sorted((share / "src").rglob(f"*_{dtype}_*.c"))}
    found = []
    for number, variant in enumerate(winners["variants"]):
        symbol = re.compile(rf"\btensorop_{operator.name}_{dtype}_variant_{number}\b")
        of_template = (path for path in units if f"_{dtype}_{variant['template']}_" in path.name)
        file = next((path for path in of_template if symbol.search(units[path])), None)
        found.append("" if file is None else file.relative_to(share).as_posix())
    return found


def _judged(variant: VariantRecord, trials: Mapping[str, int], file: str) -> JudgedVariant:
    """A variant with its file and its passed trials. trials: counts of passed trials, by the id of their text."""
    text = variant.get("text", "")
    texts = {text, *variant.get("specialisation_texts", {}).values()} - {""}
    return {**variant, "text": text, "judged": sum(trials[one] for one in texts), "file": file}


def won(rows: Sequence[ServedProblem]) -> list[Won]:
    """An entry for each template; the one that serves most problems is first."""
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
    """The close choices of each dtype, from the journal's notes `constants`."""
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
    """The number of the variant that serves a problem: the direct one, else the tree's choice.

    winners: the dtype's part of the manifest
    """
    direct = winners.get("direct")
    if direct is not None and operator.reference.work(problem) <= direct["most_flops"]:
        return int(direct["variant"])
    return decide(tree.root, problems.features(operator, problem))


def _costs(trials: Sequence[Finished], vlen: int) -> dict[str, list[_Cost]]:
    """The costs of trials at a VLEN, by problem."""
    found: dict[str, list[_Cost]] = defaultdict(list)
    for finished in trials:
        if finished.trial.variant.kernel.vlen in (0, vlen):
            for label, samples in finished.score.per_problem.items():
                found[label].append(_Cost(finished.trial.variant, samples.at(vlen)))
    return found


def _inside(
    operator: Operator, dtype: str, history: History, trials: Sequence[Finished], vlen: int
) -> dict[str, list[_Cost]]:
    """The costs inside the library at a VLEN, by problem. They compare better than those of trials."""
    known = {finished.trial.variant.id: finished.trial.variant for finished in trials}
    found: dict[str, list[_Cost]] = defaultdict(list)
    for name, data in history.notes:
        if name != evidence.NOTE or data["dtype"] != dtype:
            continue
        variants = [known.get(variant["id"]) for variant in data["variants"]]
        for row in data["rows"]:
            label = operator.reference.problem(dtype, row["dims"], row["options"]).label
            each = zip(variants, row["costs"], strict=True) if vlen in (0, row["vlen"]) else ()
            found[label] += [_Cost(variant, cost) for variant, cost in each if variant and cost is not None]
    return {label: costs for label, costs in found.items() if costs}


def _served(
    problem: Problem, number: int, variant: VariantRecord, costs: Mapping[str, Sequence[_Cost]]
) -> ServedProblem | None:
    """A problem's costs; None if it was not measured."""
    by_template: dict[str, float] = {}
    own = math.inf
    for one in costs.get(problem.label, ()):
        template = one.variant.template.name
        by_template[template] = min(one.cost, by_template.get(template, one.cost))
        if template == variant["template"] and dict(one.variant.point) == variant["point"]:
            own = min(own, one.cost)
    if not by_template:
        return None
    best = min(by_template, key=by_template.__getitem__)
    return ServedProblem(
        problem.label, number, variant["template"], own if math.isfinite(own) else None, by_template, best
    )
