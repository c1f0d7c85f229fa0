"""The last stage: the variants a library will carry, measured against each other on every problem, and the dispatch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tensorop import forms
from tensorop.build import harness
from tensorop.measure import statistics
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Outcome
from tensorop.model.winner import Leaf, Tree, Variant, Winners
from tensorop.problems import apart, of, stand_in
from tensorop.runners.protocol import Entry, Library
from tensorop.runners.session import Guest
from tensorop.search import Ground, variants
from tensorop.target import combine, merit
from tensorop.trial import Candidate, measured_call
from tensorop.tuner import dispatch
from tensorop.tuner.dispatch import Row

NOTE = "finalists"  # in the journal: the variants' times inside the library
BEYOND = (2, 4, 8)  # times the sides of the largest problem measured
LESS = 0.005  # a form for one VLEN must take this share off what its variant serves there, for it is a second kernel
UNTRIED = 4.0  # times the worst cost known: what a variant is taken to cost on a problem it was not tried on


def winners(ground: Ground, dtype: str, kernels: Mapping[str, Candidate], problems: tuple[Problem, ...]) -> Winners:
    """One dtype's variants, with a tree for each VLEN grown on the trials that found them.

    Where the search was stopped before any blocking was tried, the best micro-kernel with the platform's defaults.
    """
    found = variants(ground, dtype, kernels)
    if not found:
        first = next(iter(kernels.values()))
        return Winners(dtype, (Variant(first.draft, first.point),), (Tree(Leaf(0)),))
    trials = [finished for _, finished in found]
    rows = {vlen: _rows(ground, problems, trials, vlen) for vlen in ground.target.vlens}
    return grown(dtype, tuple(variant for variant, _ in found), rows)


def with_forms(
    ground: Ground, given: Winners, kernels: Mapping[str, Candidate], problems: tuple[Problem, ...]
) -> Winners:
    """The same variants with those of their forms for single VLENs (the trials of `forms.search`) that win."""
    found = [pair for pair in variants(ground, given.dtype, kernels) if pair[0] in given.variants]
    trials = [finished for _, finished in found]
    rows: dict[int, list[Row]] = {}
    kept: dict[int, list[int]] = {}
    for vlen in ground.target.vlens:
        tried = [forms.trial(ground, given.dtype, variant, vlen) for variant, _ in found]
        for_any = _rows(ground, problems, trials, vlen)
        kept[vlen] = gaining(for_any, _rows(ground, problems, over(trials, tried), vlen))
        taken = [form if number in kept[vlen] else None for number, form in enumerate(tried)]
        rows[vlen] = _rows(ground, problems, over(trials, taken), vlen)
    written = [
        replace(variant, forms=tuple(vlen for vlen in kept if number in kept[vlen]))
        for number, (variant, _) in enumerate(found)
    ]
    return grown(given.dtype, tuple(written), rows) if found else given


def gaining(for_any: Sequence[Row], in_form: Sequence[Row]) -> list[int]:
    """Variants whose forms pay: their problems, where all forms are to be had, cost less by them. Rows are of the same
    problems, with the costs of the variants and of their forms (the variant's where there is none)."""
    tree = dispatch.grow(in_form)
    sent: dict[int, list[float]] = {}
    for before, row in zip(for_any, in_form, strict=True):
        number = dispatch.decide(tree, row.features)
        sent.setdefault(number, []).append(row.costs[number] / before.costs[number])
    return sorted(number for number, ratios in sent.items() if statistics.geomean(ratios) < 1 - LESS)


def over(trials: Sequence[Finished], tried: Sequence[Finished | None]) -> list[Finished]:
    """The trials with the forms' figures in place of theirs; problems a form was not tried on keep the variant's."""
    return [
        trial
        if form is None
        else replace(
            trial, score=replace(trial.score, per_problem={**trial.score.per_problem, **form.score.per_problem})
        )
        for trial, form in zip(trials, tried, strict=True)
    ]


def remeasured(ground: Ground, library: Path, given: Winners, problems: tuple[Problem, ...]) -> Winners:
    """The same variants, timed side by side inside the library itself; the tree is grown anew on these figures.

    Under a model the trials' figures are exact already, so nothing is measured again. A problem that could not be
    measured keeps no vote.
    """
    if ground.target.side_by_side or len(given.variants) < 2:
        return given
    identity = [f"{variant.draft.digest} {variant.point}" for variant in given.variants]
    known = _noted(ground, given.dtype, identity, problems)
    if known is None:
        known = _timed(ground, library, given, problems)
        ground.journal.note(
            NOTE,
            {
                "dtype": given.dtype,
                "variants": identity,
                "problems": [problem.label for problem, _ in known],
                "rows": [{"features": dict(row.features), "costs": list(row.costs)} for _, row in known],
            },
        )
    rows = [row for _, row in known]
    whole = {ground.target.vlens[0]: rows + unmeasured(ground, known)}  # what a clock measures has one VLEN
    return grown(given.dtype, given.variants, whole) if rows else given


def _noted(
    ground: Ground, dtype: str, identity: list[str], problems: tuple[Problem, ...]
) -> list[tuple[Problem, Row]] | None:
    """What an earlier process timed of the same variants: the same journal must rebuild the same library."""
    by_label = {problem.label: problem for problem in problems}
    for name, data in reversed(ground.journal.history.notes):
        if name == NOTE and data["dtype"] == dtype and data.get("variants") == identity:
            rows = zip(data["problems"], data["rows"], strict=True)
            return [
                (by_label[label], Row(row["features"], tuple(row["costs"]))) for label, row in rows if label in by_label
            ]
    return None


def _timed(ground: Ground, library: Path, given: Winners, problems: tuple[Problem, ...]) -> list[tuple[Problem, Row]]:
    program = harness.dynamic_program(ground.target.platform.arch, ground.operator.folder / "adapter.c")
    known: list[tuple[Problem, Row]] = []
    for problem in problems:
        costs = _side_by_side(ground, program.path, library, given, problem)
        if not isinstance(costs, Outcome):
            known.append((problem, _row(ground, problem, costs)))
    return known


def _side_by_side(
    ground: Ground, program: Path, library: Path, given: Winners, problem: Problem
) -> tuple[float, ...] | Outcome:
    slot = int(ground.operator.reference.VARIANT_FLAG)
    entries = [Entry(0, (slot, number)) for number in range(len(given.variants))]
    placed = Library(ground.target.runner.place(library), "tensorop", given.dtype)
    guest = Guest(libraries=(placed,), cpu=ground.target.cpu, sandbox=False)
    cost = ground.target.cost(
        program,
        lambda vlen: measured_call(ground.operator, problem, ground.seed, 0),
        entries,
        guest=lambda vlen: guest,
        tolerate=True,
    )
    return cost if isinstance(cost, Outcome) else tuple(combine(by_vlen).value for by_vlen in cost)


def grown(dtype: str, found: tuple[Variant, ...], rows: Mapping[int, list[Row]]) -> Winners:
    """A tree for each VLEN, over the same variants. rows: by VLEN, what each of `found` costs there.

    Variants that no problem is sent to at any VLEN are dropped, and the trees renumbered by growing them again; so are
    forms for a VLEN where none is.
    """
    used_at = {}
    for vlen, of_vlen in rows.items():
        tree = dispatch.grow(of_vlen)
        used_at[vlen] = {dispatch.decide(tree, row.features) for row in of_vlen}
    used = sorted(set().union(*used_at.values()))
    kept_variants = [
        replace(found[v], forms=tuple(vlen for vlen in found[v].forms if v in used_at[vlen])) for v in used
    ]
    trees = []
    for vlen, of_vlen in sorted(rows.items()):
        kept = [Row(row.features, tuple(row.costs[v] for v in used)) for row in of_vlen]
        root = dispatch.grow(kept)
        regret = dispatch.regret(root, rows_against(of_vlen, kept))
        trees.append(Tree(root, regret, vlen if len(rows) > 1 else 0))
    return Winners(dtype, tuple(kept_variants), tuple(trees))


def rows_against(rows: list[Row], kept: list[Row]) -> list[Row]:
    """The kept variants' costs beside the best of all that were measured, so that regret counts what was dropped."""
    return [Row(k.features, (*k.costs, min(r.costs))) for r, k in zip(rows, kept, strict=True)]


def _rows(ground: Ground, problems: tuple[Problem, ...], trials: list[Finished], vlen: int) -> list[Row]:
    """A row for each problem that a trial knows, and those for what nobody measured."""
    known = known_rows(ground, problems, trials, vlen)
    return [row for _, row in known] + unmeasured(ground, known)


def known_rows(
    ground: Ground, problems: tuple[Problem, ...], trials: list[Finished], vlen: int
) -> list[tuple[Problem, Row]]:
    """Each problem that a trial knows, with what it costs in each of them at a VLEN."""
    return [(p, row) for p in problems if (row := _trial_row(ground, p, trials, vlen)) is not None]


def unmeasured(ground: Ground, known: list[tuple[Problem, Row]]) -> list[Row]:
    """Rows of the job's shapes that nobody measured, with the costs of what is nearest to them or to the smaller ones
    that stand in for them; and of what lies beyond."""
    sides = [(tuple(int(side) for side in problem.dims.values()), problem, row) for problem, row in known]
    first = [(s, row) for s, p, row in sides if p.options == of(ground.operator, p.dtype, s).options]
    measured = {shape for shape, _ in first}
    rows = []
    for shape in ground.job.shapes:
        if first and shape not in measured:
            dtype = known[0][0].dtype
            small = stand_in(ground.operator, dtype, shape, ground.target.unit)
            _, nearest = min(first, key=lambda pair: apart(pair[0], small))
            rows.append(_row(ground, of(ground.operator, dtype, shape), nearest.costs))
    return rows + _beyond(ground, known)


def _beyond(ground: Ground, known: list[tuple[Problem, Row]]) -> list[Row]:
    """What nobody measured is taken to be like the largest problem that was: without such rows, the dispatch would
    send every large product where its one long and narrow sample went."""
    if not known:
        return []
    problem, row = max(known, key=lambda pair: float(ground.operator.reference.work(pair[0])))
    sides = [{name: int(side) * scale for name, side in problem.dims.items()} for scale in BEYOND]
    larger = [Problem.of(problem.operator, problem.dtype, dims, problem.options) for dims in sides]
    return [Row(ground.operator.reference.features(p), row.costs) for p in larger]


def _row(ground: Ground, problem: Problem, costs: tuple[float, ...]) -> Row:
    return Row(ground.operator.reference.features(problem), costs)


def _trial_row(ground: Ground, problem: Problem, trials: list[Finished], vlen: int) -> Row | None:
    """What the trials say of a problem at a VLEN; a variant that was not tried on it must not be sent it."""
    samples = [trial.score.per_problem.get(problem.label) for trial in trials]
    known = [None if s is None else merit(s, vlen) for s in samples]
    tried = [cost for cost in known if cost is not None]
    if not tried:
        return None
    return _row(ground, problem, tuple(UNTRIED * max(tried) if cost is None else cost for cost in known))
