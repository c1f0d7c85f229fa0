"""The last stage: the variants a library will carry, measured against each other on every problem, and the dispatch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tensorop.build import harness
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Outcome
from tensorop.model.winner import Leaf, Tree, Variant, Winners
from tensorop.runners.protocol import Entry, Library
from tensorop.runners.session import Guest
from tensorop.search import Ground, variants
from tensorop.target import at_vlen, combine
from tensorop.trial import Candidate, measured_call
from tensorop.tuner import dispatch
from tensorop.tuner.dispatch import Row

NOTE = "finalists"  # in the journal: the variants' times inside the library
BEYOND = (2, 4, 8)  # times the sides of the largest problem measured
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
    rows = {}
    for vlen in ground.target.vlens:
        known = [(p, row) for p in problems if (row := _trial_row(ground, p, trials, vlen)) is not None]
        rows[vlen] = [row for _, row in known] + _beyond(ground, known)
    return grown(dtype, tuple(variant for variant, _ in found), rows)


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
    whole = {ground.target.vlens[0]: rows + _beyond(ground, known)}  # what a clock measures has one VLEN
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

    Variants that no problem is sent to at any VLEN are dropped, and the trees renumbered by growing them again.
    """
    first = {vlen: dispatch.grow(of_vlen) for vlen, of_vlen in rows.items()}
    used = sorted({dispatch.decide(first[vlen], row.features) for vlen, of_vlen in rows.items() for row in of_vlen})
    trees = []
    for vlen, of_vlen in sorted(rows.items()):
        kept = [Row(row.features, tuple(row.costs[v] for v in used)) for row in of_vlen]
        root = dispatch.grow(kept)
        regret = dispatch.regret(root, rows_against(of_vlen, kept))
        trees.append(Tree(root, regret, vlen if len(rows) > 1 else 0))
    return Winners(dtype, tuple(found[v] for v in used), tuple(trees))


def rows_against(rows: list[Row], kept: list[Row]) -> list[Row]:
    """The kept variants' costs beside the best of all that were measured, so that regret counts what was dropped."""
    return [Row(k.features, (*k.costs, min(r.costs))) for r, k in zip(rows, kept, strict=True)]


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
    known = [None if s is None else at_vlen(s, vlen) for s in samples]
    tried = [cost for cost in known if cost is not None]
    if not tried:
        return None
    return _row(ground, problem, tuple(UNTRIED * max(tried) if cost is None else cost for cost in known))
