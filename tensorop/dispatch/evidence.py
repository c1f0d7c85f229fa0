"""Collects the measurements of a library's candidate variants, by VLEN and problem.

They come from the trials of the search and from probes inside the library. Both are in the journal, so the same journal
gives the same library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tensorop.dispatch import choice
from tensorop.dispatch.choice import Also, Candidates, CostRow, CostsByVlen
from tensorop.measure.samples import objective
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.trial import Finished, Kind, Outcome, Stage
from tensorop.model.winner import Leaf, Tree, Winners
from tensorop.search.task import Task
from tensorop.space.problems import of, proxy
from tensorop.trial import selection

NOTE = "dispatch"  # journal note: costs of variants inside the library
FIRST_LAYOUT = 2.0  # weight of the reported layout; each other layout has 1
FAULTS = frozenset({Kind.WRONG, Kind.GUARD, Kind.CRASH, Kind.ILLEGAL, Kind.IMPOSSIBLE})  # of a variant


@dataclass(eq=False)  # not frozen: Python sets attributes of an exception on its way
class RefusedVariant(Exception):
    """A variant that passed its trials and failed inside the library. number: the library's number of the variant."""

    dtype: str
    number: int
    outcome: Outcome


def by_trials(task: Task, kernels: Mapping[str, Kernel]) -> Winners:
    """The few variants that are best together, with trees fitted to their trials alone.

    If the search stopped before any blocking was tried, this is the best micro-kernel with default blocking.
    """
    ended = task.tried(kernels)
    vlens, operator, budgets = task.target.vlens, task.operator, task.target.budgets
    costs = {name: selection.by_vlen(f, vlens) for name, f in ended.items()}
    wanted = task.job.shapes_of(task.dtype)
    shapes = wanted + tuple(proxy(operator, task.dtype, shape, budgets) for shape in wanted)
    weights = {(of(operator, task.dtype, shape).label, vlen): FIRST_LAYOUT for shape in shapes for vlen in vlens}
    weights |= {(label, vlen): FIRST_LAYOUT * own for label, own in task.weights.items() for vlen in vlens}
    if task.target.side_by_side:
        first = selection.of_each_class(costs, task.classes, weights=weights)
        names = selection.choose(costs, weights, first=first)
    else:  # they are measured on all problems inside their library
        every = list(ended.values())
        names = selection.finalists(every, task.expected_costs(every), weights, selection.FEW, task.classes)
    carried = [ended[name] for name in names]
    if not carried:
        return Winners(task.dtype, (Variant(next(iter(kernels.values()))),), (Tree(Leaf(0)),))
    variants = tuple(finished.trial.variant for finished in carried)
    return unjudged(task, variants, {vlen: of_trials(task, carried, vlen) for vlen in vlens})


def unjudged(task: Task, variants: tuple[Variant, ...], known: CostsByVlen) -> Winners:
    """These variants with trees of measured problems alone, for a library that is not delivered."""
    return choice.winners(Candidates(task.operator, task.target.platform, task.dtype, variants), known, judged=False)


def of_trials(task: Task, of_variants: Sequence[Finished], vlen: int) -> list[CostRow]:
    """One row for each problem that a trial measured at a VLEN."""
    found = []
    for problem in (*task.problems, *task.final_problems):
        samples = [trial.score.per_problem.get(problem.label) for trial in of_variants]
        if any(samples):
            found.append(CostRow(problem, tuple(None if s is None else objective(s, vlen) for s in samples)))
    return found


def specialised(task: Task, finished: Finished, vlen: int) -> Finished | None:
    """The variant's trial with the costs of its specialisation for `vlen` where that was measured.

    None if no specialisation passed.
    """
    wanted = finished.trial.variant.at(vlen).id
    found = [one for one in task.passed(Stage.SINGLE_VLEN) if one.trial.variant.id == wanted]
    return finished.with_figures(found[-1]) if found else None


def others(task: Task, variants: tuple[Variant, ...], vlen: int) -> list[Also]:
    """All other blockings that the search measured."""
    mine = {variant.id for variant in variants}
    by_label = {p.label: p for p in (*task.problems, *task.final_problems)}
    found = []
    for name, finished in task.tried(task.shortlist).items():
        costs = {by_label[p]: objective(s, vlen) for p, s in finished.score.per_problem.items() if p in by_label}
        if costs and name not in mine:
            found.append(Also(finished.trial.variant, tuple(costs), tuple(costs.values())))
    return found


@dataclass(frozen=True)
class Batch:
    """Measurements inside one library of exactly these variants."""

    costs: CostsByVlen
    seconds: float
    done: bool = False  # no further batch is due
    asked: int = 0  # random shapes outside the suites


def batches(task: Task, given: Winners) -> list[Batch]:
    """The measurements that the journal holds, by this process or an earlier one."""
    found = []
    for data in notes(task, given):
        costs: dict[int, list[CostRow]] = {}
        for row in data["rows"]:
            problem = task.operator.reference.problem(given.dtype, row["dims"], row["options"])
            of_row = tuple(None if cost is None else float(cost) for cost in row["costs"])
            costs.setdefault(row["vlen"], []).append(CostRow(problem, of_row))
        found.append(Batch(costs, data["seconds"], data["done"], data.get("asked", 0)))
    return found


def keep(task: Task, given: Winners, batch: Batch) -> None:
    """Writes a batch into the journal."""
    rows = [
        {"vlen": vlen, "dims": row.problem.sizes, "options": dict(row.problem.options), "costs": list(row.costs)}
        for vlen, of_vlen in batch.costs.items()
        for row in of_vlen
    ]
    note(task, given, NOTE, rows=rows, seconds=round(batch.seconds, 3), done=batch.done, asked=batch.asked)


def load_costs(task: Task, given: Winners, measured: Sequence[Batch] | None = None) -> CostsByVlen:
    """The rows for fitting, by VLEN.

    Simulated costs of trials and probes are used together. With a clock, only costs that were measured side by side are
    comparable; where there are any, the trials' are left out.

    measured: the measurements inside the library; by default those of the journal
    """
    kept = batches(task, given) if measured is None else measured
    noted = {vlen: [row for batch in kept for row in batch.costs.get(vlen, ())] for vlen in task.target.vlens}
    if not task.target.side_by_side and any(noted.values()):
        return noted
    return {vlen: [*_of_winners(task, given, vlen), *noted[vlen]] for vlen in noted}


def _of_winners(task: Task, given: Winners, vlen: int) -> list[CostRow]:
    plain = task.tried(task.shortlist)
    if any(variant.id not in plain for variant in given.variants):
        return []
    specialisations = {v.id: specialised(task, plain[v.id], vlen) for v in given.variants if vlen in v.specialisations}
    rows = of_trials(task, [specialisations.get(v.id) or plain[v.id] for v in given.variants], vlen)
    return rows if given.direct is None else [replace(row, costs=(*row.costs, None)) for row in rows]


def _of(given: Winners) -> dict[str, object]:
    """The fields of a journal note that identify the measured variants."""
    variants = [{"id": variant.id, "specialisations": list(variant.specialisations)} for variant in given.all]
    return {"dtype": given.dtype, "variants": variants}


def note(task: Task, given: Winners, name: str, **data: object) -> None:
    """Writes a note about these variants into the journal."""
    task.journal.note(name, _of(given) | data)


def notes(task: Task, given: Winners, name: str = NOTE) -> Iterator[Mapping[str, Any]]:
    """The journal's notes about exactly these variants."""
    of = _of(given)
    for noted, data in task.journal.history.notes:
        if noted == name and {key: data[key] for key in of} == of:
            yield data
