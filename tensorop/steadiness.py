"""Under a board model: variants that are close to each other, counted over the range of every assumed constant.

Where one is ahead at the best fit and another on the whole, the dispatch takes the latter; constants that alone would
change its choice are noted in the journal, for the report.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop import finalists, forms, search
from tensorop.build import harness
from tensorop.measure import modelled, statistics
from tensorop.model.problem import Problem
from tensorop.model.trial import Outcome
from tensorop.model.winner import Winners
from tensorop.runners.protocol import Entry, Library
from tensorop.runners.qemu import Qemu
from tensorop.runners.session import Guest
from tensorop.search import Ground
from tensorop.trial import WARMED, measured_call
from tensorop.tuner.dispatch import Row
from tensorop.tuner.robust import mean_costs, overturned

NOTE = "constants"
CLOSE = 1.1  # times the best cost at the best fit: what other constants may bring to the front
SHARE = 0.1  # of the budget


@dataclass(frozen=True)
class Contest:
    """Close variants on one problem at a VLEN (bits).

    cycles: by variant: at the best fit, then with each constant at its low and at its high end
    """

    vlen: int
    problem: str
    variants: tuple[int, ...]
    cycles: tuple[tuple[float, ...], ...]


def steadied(ground: Ground, library: Path, given: Winners) -> Winners:
    """The same variants with trees grown on costs over the model's whole ranges; what was counted is noted.

    library: the staged one, which holds exactly these variants.
    """
    if len(given.variants) < 2:
        return given
    known = _known(ground, given)
    noted = _noted(ground, given)
    rows_at = {(vlen, problem.label): row for vlen, pairs in known.items() for problem, row in pairs}
    if noted is None:
        noted = _counted(ground, library, given, known)
        data = [
            {
                "vlen": c.vlen,
                "problem": c.problem,
                "variants": c.variants,
                "cycles": c.cycles,
                "chosen": _chosen(_weighed(rows_at[c.vlen, c.problem], c), c),
            }
            for c in noted
        ]
        names = list(_model_unknowns(ground))
        told = {"dtype": given.dtype, "variants": _identity(given), "constants": names, "contests": data}
        ground.journal.note(NOTE, told)
    by_place = {(contest.vlen, contest.problem): contest for contest in noted}
    rows = {}
    for vlen, pairs in known.items():
        weighed = [(problem, _weighed(row, by_place.get((vlen, problem.label)))) for problem, row in pairs]
        rows[vlen] = [row for _, row in weighed] + finalists.unmeasured(ground, weighed)
    return finalists.grown(given.dtype, given.variants, rows)


def summary(ground: Ground, dtype: str) -> str:
    """A line on what was noted of a dtype: how many choices no constant changes, and which change the others."""
    notes = [data for name, data in ground.journal.history.notes if name == NOTE and data["dtype"] == dtype]
    contests = notes[-1]["contests"] if notes else []
    changed = [overturned(contest["cycles"], notes[-1]["constants"], contest["chosen"]) for contest in contests]
    names = sorted({name for found in changed for name in found})
    steady = sum(not found for found in changed)
    by = f"; others change by {', '.join(names)}" if names else ""
    return f"{dtype}: of {len(contests)} close choices no assumed constant changes {steady}{by}"


def _model_unknowns(ground: Ground) -> Mapping[str, Sequence[str]]:
    assert ground.target.model is not None
    return ground.target.model.unknowns()


def _identity(given: Winners) -> list[str]:
    return [f"{v.draft.digest} {v.point} {' '.join(map(str, v.forms))}" for v in given.variants]


def _known(ground: Ground, given: Winners) -> dict[int, list[tuple[Problem, Row]]]:
    """By VLEN what the trials say of each problem, a cost a variant."""
    kernels = search.kernels(ground, given.dtype)
    found = search.variants(ground, given.dtype, kernels)
    plain = {(variant.draft.digest, variant.point): finished for variant, finished in found}
    trials = [plain[variant.draft.digest, variant.point] for variant in given.variants]
    problems = (*search.problems(ground, given.dtype), *search.large_problems(ground, given.dtype))
    known = {}
    for vlen in ground.target.vlens:
        written = [
            forms.trial(ground, given.dtype, variant, vlen) if vlen in variant.forms else None
            for variant in given.variants
        ]
        known[vlen] = finalists.known_rows(ground, problems, finalists.over(trials, written), vlen)
    return known


def _weighed(row: Row, contest: Contest | None) -> Row:
    """The row with every contender's cost moved from the best fit to the mean of all choices, the others' as much."""
    if contest is None:
        return row
    means = mean_costs(contest.cycles)
    moved = {n: mean / c[0] for n, mean, c in zip(contest.variants, means, contest.cycles, strict=True)}
    usual = statistics.geomean(moved.values())
    return Row(row.features, tuple(cost * moved.get(number, usual) for number, cost in enumerate(row.costs)))


def _chosen(row: Row, contest: Contest) -> int:
    """Which of the contenders, by its place among them, costs least."""
    return min(range(len(contest.variants)), key=lambda place: row.costs[contest.variants[place]])


def _noted(ground: Ground, given: Winners) -> list[Contest] | None:
    """What an earlier process counted of the same variants: the same journal must rebuild the same library."""
    for name, data in reversed(ground.journal.history.notes):
        if name == NOTE and data["dtype"] == given.dtype and data["variants"] == _identity(given):
            return [_contest(found) for found in data["contests"]]
    return None


def _contest(data: Mapping[str, Any]) -> Contest:
    return Contest(data["vlen"], data["problem"], tuple(data["variants"]), tuple(map(tuple, data["cycles"])))


def _counted(
    ground: Ground, library: Path, given: Winners, known: Mapping[int, list[tuple[Problem, Row]]]
) -> list[Contest]:
    """The closest contests first, while the budget's share lasts; a contender that cannot be counted is left out."""
    limit = ground.share(SHARE).seconds
    until = None if limit is None else time.monotonic() + limit
    program = harness.dynamic_program(ground.target.platform.arch, ground.operator.folder / "adapter.c").path
    place = Library(ground.target.runner.place(library), "tensorop", given.dtype)
    guest = Guest(libraries=(place,), cpu=ground.target.cpu, sandbox=False)
    wanted: list[tuple[float, int, int, Problem, list[int]]] = []
    for vlen, pairs in known.items():
        for problem, row in pairs:
            close = [n for n, cost in enumerate(row.costs) if cost <= CLOSE * min(row.costs)]
            if len(close) > 1:
                gap = sorted(row.costs)[1] / min(row.costs)
                wanted.append((gap, len(wanted), vlen, problem, close))

    def count(item: tuple[float, int, int, Problem, list[int]]) -> Contest | None:
        _, _, vlen, problem, close = item
        if until is not None and time.monotonic() > until:
            return None
        counted = {number: _cycles(ground, program, guest, problem, vlen, number) for number in close}
        told = {number: cycles for number, cycles in counted.items() if cycles is not None}
        return Contest(vlen, problem.label, tuple(told), tuple(told.values())) if len(told) > 1 else None

    with ThreadPoolExecutor(max(1, ground.job.jobs)) as pool:
        return [
            contest for contest in pool.map(count, sorted(wanted, key=lambda item: item[:2])) if contest is not None
        ]


def _cycles(
    ground: Ground, program: Path, guest: Guest, problem: Problem, vlen: int, number: int
) -> tuple[float, ...] | None:
    """One variant's cycles at the best fit and with each constant at either end."""
    assert isinstance(ground.target.runner, Qemu)
    assert ground.target.model is not None
    counted = modelled.count_entries(
        ground.target.runner,
        program,
        measured_call(ground.operator, problem, ground.seed, 0),
        [Entry(0, (int(ground.operator.reference.VARIANT_FLAG), number))],
        model=ground.target.model,
        vlen=vlen,
        scenarios="sensitivity",
        guest=guest,
        warm=int(float(ground.operator.reference.work(problem)) <= WARMED),
    )
    if isinstance(counted, Outcome):
        return None
    choices = [name for name in counted[0].counters if name.startswith("scenario.")]
    return tuple(counted[0].counters[name] for name in sorted(choices, key=lambda name: int(name.split(".")[1])))
