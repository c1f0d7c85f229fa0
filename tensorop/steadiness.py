"""Under a board model: variants that are close to each other, counted under its alternatives and over its constants.

The search minimises the best fit. Of variants that are close to each other there, the dispatch takes the one whose
worst alternative is best; constants that alone would change its choice are noted in the journal, for the report.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tensorop import finalists, probing, search
from tensorop.build import harness
from tensorop.model.problem import Problem
from tensorop.model.trial import Outcome
from tensorop.model.winner import Winners
from tensorop.runners.protocol import Entry, Library
from tensorop.runners.session import Guest
from tensorop.search import Ground
from tensorop.target import Assumed, Run
from tensorop.trial import WARMED, measured_call
from tensorop.tuner.dispatch import Row
from tensorop.tuner.robust import overturned, standing

NOTE = "constants"
CLOSE = 1.03  # times the best cost at the best fit: what the alternatives choose among
SHARE = 0.1  # of the budget


@dataclass(frozen=True)
class Contest:
    """Close variants on one problem at a VLEN (bits).

    cycles: by variant: at the best fit, then with each constant at its low and at its high end
    under: by variant: under each alternative of the model
    """

    vlen: int
    problem: str
    variants: tuple[int, ...]
    cycles: tuple[tuple[float, ...], ...]
    under: tuple[tuple[float, ...], ...] = ()

    @property
    def given_up(self) -> float:
        """The share of the cost at the best fit that the chosen one gives up for its worst alternative."""
        return 1 - min(of_one[0] for of_one in self.cycles) / self.cycles[self.chosen][0]

    @property
    def chosen(self) -> int:
        """The place, among the contenders, of the one to take."""
        costs = standing(self.cycles, self.under)
        return costs.index(min(costs))


def steadied(ground: Ground, library: Path, given: Winners) -> Winners:
    """The same variants, the close ones told apart by the model's alternatives; what was counted is noted.

    library: the staged one, which holds exactly these variants.
    """
    if len(given.all) < 2:
        return given
    known = probing.known(ground, given)
    noted = _noted(ground, given)
    if noted is None:
        of_search = {
            p.label for p in (*search.problems(ground, given.dtype), *search.large_problems(ground, given.dtype))
        }
        own = {vlen: [pair for pair in pairs if pair[0].label in of_search] for vlen, pairs in known.items()}
        noted = _counted(ground, library, given, own)
        data = [
            {
                "vlen": c.vlen,
                "problem": c.problem,
                "variants": c.variants,
                "cycles": c.cycles,
                "under": c.under,
                "chosen": c.chosen,
                "given_up": c.given_up,
            }
            for c in noted
        ]
        names, others = _assumed(ground).constants, _assumed(ground).alternatives
        told = {"dtype": given.dtype, "variants": probing.identity(given), "constants": names, "contests": data}
        told["alternatives"] = others
        ground.journal.note(NOTE, told)
    by_place = {(contest.vlen, contest.problem): contest for contest in noted}
    weighed = {
        vlen: [(problem, _weighed(row, by_place.get((vlen, problem.label)))) for problem, row in pairs]
        for vlen, pairs in known.items()
    }
    return finalists.chosen(ground, given.dtype, given.variants, weighed, judged=True, direct=given.direct)


def summary(ground: Ground, dtype: str) -> str:
    """A line on what was noted of a dtype: how many choices no constant changes, and which change the others."""
    notes = [data for name, data in ground.journal.history.notes if name == NOTE and data["dtype"] == dtype]
    contests = notes[-1]["contests"] if notes else []
    changed = [overturned(contest["cycles"], notes[-1]["constants"], contest["chosen"]) for contest in contests]
    names = sorted({name for found in changed for name in found})
    steady = sum(not found for found in changed)
    by = f"; others change by {', '.join(names)}" if names else ""
    said = f"{dtype}: of {len(contests)} close choices no assumed constant changes {steady}{by}"
    dearer = [contest["given_up"] for contest in contests if contest["given_up"] > 0]
    if not dearer or not notes[-1]["alternatives"]:
        return said
    more = f"costs up to {max(dearer):.1%} more at the best fit"
    return f"{said}; in {len(dearer)} the one taken, whose worst alternative is best, {more}"


def _assumed(ground: Ground) -> Assumed:
    assert ground.target.assumed is not None
    return ground.target.assumed


def _weighed(row: Row, contest: Contest | None) -> Row:
    """The row with its contenders in the order they are to be taken in, none beyond CLOSE times the least cost."""
    if contest is None:
        return row
    costs, least = standing(contest.cycles, contest.under), min(row.costs)
    moved = {
        number: least * min(CLOSE, cost / min(costs)) for number, cost in zip(contest.variants, costs, strict=True)
    }
    return replace(row, costs=tuple(moved.get(number, cost) for number, cost in enumerate(row.costs)))


def _noted(ground: Ground, given: Winners) -> list[Contest] | None:
    """What an earlier process counted of the same variants: the same journal must rebuild the same library."""
    for name, data in reversed(ground.journal.history.notes):
        same = (
            name == NOTE and data["dtype"] == given.dtype and data.get("alternatives") == _assumed(ground).alternatives
        )
        if same and data["variants"] == probing.identity(given):
            return [_contest(found) for found in data["contests"]]
    return None


def _contest(data: Mapping[str, Any]) -> Contest:
    cycles, under = (tuple(map(tuple, data[part])) for part in ("cycles", "under"))
    return Contest(data["vlen"], data["problem"], tuple(data["variants"]), cycles, under)


def _counted(
    ground: Ground, library: Path, given: Winners, known: Mapping[int, list[tuple[Problem, Row]]]
) -> list[Contest]:
    """The closest contests first, while the budget's share lasts; a contender that cannot be counted is left out."""
    limit = ground.share(SHARE).seconds
    until = None if limit is None else time.monotonic() + limit
    program = harness.of_operator(ground.target.platform, ground.operator).path
    place = Library(ground.target.runner.place(library), "tensorop", given.dtype)
    guest = Guest(libraries=(place,), cpu=ground.target.runner.processor)
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
        if len(told) < 2:
            return None
        cycles, under = zip(*told.values(), strict=True)
        return Contest(vlen, problem.label, tuple(told), cycles, under)

    with ThreadPoolExecutor(max(1, ground.job.jobs)) as pool:
        return [
            contest for contest in pool.map(count, sorted(wanted, key=lambda item: item[:2])) if contest is not None
        ]


def _cycles(
    ground: Ground, program: Path, guest: Guest, problem: Problem, vlen: int, number: int
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """One variant's cycles at the best fit and with each constant at either end, and under each alternative."""
    counted = ground.target.ranges(
        Run(program, vlen, guest),
        measured_call(ground.operator, problem, ground.seed, 0),
        Entry(0, (ground.operator.reference.variant_flag, number)),
        int(float(ground.operator.reference.work(problem)) <= WARMED),
    )
    return (
        None if isinstance(counted, Outcome) else (counted.choices or (counted.value,), tuple(counted.under.values()))
    )
