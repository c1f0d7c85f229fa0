"""The last stage: variants measured against each other inside the library, on shapes that no suite names.

Random ones first, by all variants: they show what choosing costs where nobody looked. Then those on which the models of
the variants disagree, by the variants that may be best there. On a clock before both every problem of the search, side
by side. What was measured goes to the journal, batch by batch, and from there into the choice: the same journal gives
the same library.
"""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tensorop import choice, finalists, forms, search
from tensorop import direct as smallest
from tensorop.build import harness
from tensorop.choice import Measured, Subject
from tensorop.finalists import FAULTS, Refused
from tensorop.model.call import Call
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.model.winner import Winners
from tensorop.problems import features
from tensorop.roof import Roof
from tensorop.runners.protocol import Entry, Library
from tensorop.runners.session import Guest
from tensorop.search import PROBE_SHARE, Ground
from tensorop.target import Run, merit
from tensorop.trial import WARMED, measured_call
from tensorop.tuner.budget import Budget
from tensorop.tuner.costmodel import Matrix
from tensorop.tuner.dispatch import Row
from tensorop.verify.answers import Answers

NOTE = "dispatch"  # in the journal: the variants' costs inside the library
BATCH = 24  # shapes between two fits
RANDOM = 6  # of them random, but for the first batch, where all are
DRAWN, LONGEST = 150, 2048  # shapes in each layout, of which the most telling are measured; their longest side
CHEAP = 0.05  # of that work: what a shape costs anyhow
APART = 0.7  # octaves between the shapes of a batch
THROWN = 32  # times the models' errors are drawn to see what a choice may cost
CHANCE = 2  # of these a variant must be the best in to be measured

FAILS = FAULTS | {Kind.TIMEOUT}  # twice, for a machine can be busy
UNMEASURED = "unmeasured"  # the journal's notes of variants that have no figure
MESSAGE = 300

Known = dict[int, list[tuple[Problem, Row]]]  # by VLEN


@dataclass(frozen=True)
class Probe:
    """A problem, and the numbers of the variants that are measured on it: all where none is named."""

    problem: Problem
    variants: tuple[int, ...] = ()


def compare(ground: Ground, library: Path, given: Winners) -> None:
    """All variants side by side on every problem of the search and on the small ones that are left to the choice, for
    targets that say little of it one by one."""
    if len(given.all) > 1 and not list(_notes(ground, given)):
        small = [p for p in smallest.problems(ground, given.dtype) if choice.chosen_for(ground.operator, p)]
        tried = dict.fromkeys([*search.problems(ground, given.dtype), *small])
        rows = _Bench(ground, library, given).rows([Probe(problem) for problem in tried])
        _write(ground, given, rows, 0.0, done=False)


def settled(ground: Ground, library: Path, given: Winners, interrupted: bool = False) -> Winners:
    """The same variants with trees by all that was measured, and the regret of these on shapes left out.

    library: the staged one, which holds exactly these variants; interrupted: measure nothing more.
    """
    if len(given.all) < 2:
        return given
    if not interrupted:
        _probe(ground, library, given)
    # under a model the choice is made once more, by its whole ranges (`steadiness`)
    judged = interrupted or ground.target.assumed is None
    return finalists.chosen(ground, given.dtype, given.variants, known(ground, given), judged, given.direct)


def known(ground: Ground, given: Winners) -> Known:
    """By VLEN what is known of each problem: of a model the trials' figures and the probes', of a clock only what was
    measured side by side, where it was."""
    noted = _noted(ground, given)
    if not ground.target.side_by_side and any(noted.values()):
        return noted
    return {vlen: [*_of_trials(ground, given, vlen), *noted.get(vlen, ())] for vlen in ground.target.configurations}


def _of_trials(ground: Ground, given: Winners, vlen: int) -> list[tuple[Problem, Row]]:
    kernels = search.kernels(ground, given.dtype)
    plain = {finished.trial.variant.id: finished for finished in search.tried(ground, given.dtype, kernels)}
    if any(variant.id not in plain for variant in given.variants):
        return []
    trials = [plain[variant.id] for variant in given.variants]
    written = [
        forms.trial(ground, given.dtype, variant, vlen) if vlen in variant.forms else None for variant in given.variants
    ]
    problems = (*search.problems(ground, given.dtype), *search.large_problems(ground, given.dtype))
    rows = finalists.known_rows(ground, problems, finalists.over(trials, written), vlen)
    if given.direct is None:
        return rows
    return [(problem, replace(row, costs=(*row.costs, math.inf))) for problem, row in rows]


def identity(given: Winners) -> list[dict[str, Any]]:
    """What a note is of."""
    return [{"id": variant.id, "forms": list(variant.forms)} for variant in given.all]


def _notes(ground: Ground, given: Winners) -> Iterator[Mapping[str, Any]]:
    for name, data in ground.journal.history.notes:
        if name == NOTE and data["dtype"] == given.dtype and data["variants"] == identity(given):
            yield data


def _noted(ground: Ground, given: Winners) -> Known:
    found: Known = {vlen: [] for vlen in ground.target.configurations}
    for data in _notes(ground, given):
        for row in data["rows"]:
            problem = ground.operator.reference.problem(given.dtype, row["dims"], row["options"])
            costs = tuple(math.inf if cost is None else float(cost) for cost in row["costs"])
            found[row["vlen"]].append((problem, Row(features(ground.operator, problem), costs)))
    return found


def _probe(ground: Ground, library: Path, given: Winners) -> None:
    """Batches until the share of the budget is used, one at least; what an earlier process measured counts."""
    notes = list(_notes(ground, given))
    if notes and notes[-1]["done"]:
        return
    bench = _Bench(ground, library, given)
    spent = sum(data["seconds"] for data in notes)
    budget = ground.share(PROBE_SHARE)
    done = False
    while not done:
        number = len(list(_notes(ground, given)))
        begun = time.monotonic()
        wanted = _wanted(ground, given, number, _size(ground, given, budget))
        rows = bench.rows(wanted)
        took = time.monotonic() - begun
        spent += took
        # another batch would take as long
        out_of_time = budget.seconds is not None and spent + took / 2 > budget.seconds
        done = not wanted or out_of_time or budget.trials is not None
        _write(ground, given, rows, took, done)


def _write(ground: Ground, given: Winners, rows: list[dict[str, Any]], seconds: float, done: bool) -> None:
    ground.journal.note(
        NOTE,
        {
            "dtype": given.dtype,
            "variants": identity(given),
            "rows": rows,
            "seconds": round(seconds, 3),
            "done": done,
        },
    )


def _size(ground: Ground, given: Winners, budget: Budget) -> int:
    """Shapes of a batch: fewer where even the first one would take longer than its share."""
    most = BATCH if budget.trials is None else min(BATCH, budget.trials)
    if budget.seconds is None:
        return most
    side_by_side = ground.job.jobs if ground.target.side_by_side else 1
    each = ground.target.means.random_s * len(given.all) * len(ground.target.configurations) / side_by_side
    return min(most, max(RANDOM, int(budget.seconds / each)))


def _wanted(ground: Ground, given: Winners, number: int, count: int) -> list[Probe]:
    """The shapes of a batch; the same for the same journal."""
    measured = any(data["rows"] for data in _notes(ground, given))
    telling = _telling(ground, given, number, count - RANDOM) if measured and count > RANDOM else []
    return [*_random(ground, given.dtype, number, count - len(telling)), *telling]


def _random(ground: Ground, dtype: str, number: int, count: int) -> list[Probe]:
    """Log-uniform shapes that can be afforded, in layouts by turns."""
    operator, most = ground.operator, ground.target.means.random
    each = choice.drawn(operator, dtype, count, number + 1, LONGEST, most)
    by_layout = [each[i * count : (i + 1) * count] for i in range(len(operator.layouts))]
    return [Probe(by_layout[i % len(by_layout)][i]) for i in range(count)]


def _telling(ground: Ground, given: Winners, number: int, count: int) -> list[Probe]:
    """Shapes on which the choice by the models may cost most, for what it costs to measure them."""
    scores: Matrix | None = None
    wins: Matrix | None = None
    candidates: choice.Field | None = None
    direct = None if given.direct is None else len(given.variants)
    for vlen, pairs in known(ground, given).items():
        subject = Subject(ground.operator, ground.target.platform, given.dtype, given.all, vlen, direct)
        measured = [Measured(p, tuple(c if math.isfinite(c) else None for c in row.costs)) for p, row in pairs]
        if not measured or not ground.operator.costs.terms:
            continue
        also = finalists.others(ground, given.dtype, given.variants, vlen)
        models = choice.known(subject, measured, also).fitted()
        candidates = choice.field(subject, DRAWN, seed=number + 1, longest=LONGEST)
        expected, best = _thrown(*candidates.predicted(models))
        scores = expected if scores is None else scores + expected
        wins = best if wins is None else np.maximum(wins, best)
    if scores is None or wins is None or candidates is None:
        return []
    works = np.array([float(ground.operator.reference.work(p)) for p in candidates.problems])
    contenders = wins >= CHANCE
    most = ground.target.means.probe
    paid = works / most * contenders.sum(axis=1) / contenders.shape[1]
    worth = np.where(works <= most, scores / (CHEAP + paid), -1.0)
    chosen: list[int] = []
    for place in np.argsort(-np.round(worth, 6), kind="stable"):
        if worth[place] < 0 or len(chosen) == count:
            break
        distances = np.linalg.norm(candidates.places[chosen] - candidates.places[place], axis=1)
        if not chosen or distances.min() >= APART:
            chosen.append(int(place))
    return [Probe(candidates.problems[p], tuple(map(int, np.flatnonzero(contenders[p])))) for p in chosen]


def _thrown(means: Matrix, spreads: Matrix) -> tuple[Matrix, Matrix]:
    """(what the choice by the means costs over the best, a logarithm, in the mean over draws of the models' errors; by
    variant, in how many of them it is the best or, by the means, the choice)."""
    rng = np.random.default_rng(choice.SEED)
    rows, chosen = np.arange(len(means)), means.argmin(axis=1)
    total, wins = np.zeros(len(means)), np.zeros(means.shape)
    wins[rows, chosen] = THROWN
    for _ in range(THROWN):
        drawn = means + spreads * rng.standard_normal(means.shape)
        total += drawn[rows, chosen] - drawn.min(axis=1)
        wins[rows, drawn.argmin(axis=1)] += 1
    return total / THROWN, wins


class _Bench:
    """Measures variants inside the library."""

    def __init__(self, ground: Ground, library: Path, given: Winners) -> None:
        self.ground, self.given = ground, given
        target = ground.target
        self.program = harness.of_operator(target.platform, ground.operator).path
        placed = Library(target.runner.place(library), "tensorop", given.dtype)
        self.guest = Guest(libraries=(placed,), cpu=target.runner.processor)
        self.roof = Roof(target)
        self.answers = Answers(ground.operator.reference)
        slot = ground.operator.reference.variant_flag
        self.entries = [Entry(0, (slot, number)) for number in range(len(given.all))]
        self.failed: list[tuple[int, Outcome]] = []  # variants without a figure, and why
        self.calls: dict[str, Call] = {}  # by problem: making one takes as long as counting it
        self.lock = threading.Lock()

    def rows(self, wanted: Sequence[Probe]) -> list[dict[str, Any]]:
        """One a probe and VLEN, with a cost a variant, None for one that was not measured; none for a problem that
        could not be measured. What has no figure although nothing is wrong with it is noted in the journal, once for
        each variant and kind; raises Refused for a variant that fails."""
        self.failed = []
        self.answers = Answers(self.ground.operator.reference)  # another batch has other problems
        self.calls = {}
        found = list(self._counted(wanted) if self.ground.target.counts else self._timed(wanted))
        for number, outcome in {(number, outcome.kind): (number, outcome) for number, outcome in self.failed}.values():
            self.ground.journal.note(UNMEASURED, self._failure(number, outcome))
        return [
            {"vlen": vlen, "dims": problem.sizes, "options": dict(problem.options), "costs": list(costs)}
            for vlen, problem, costs in found
            if any(cost is not None for cost in costs)
        ]

    def _failure(self, number: int, outcome: Outcome) -> dict[str, Any]:
        variant = self.given.all[number]
        return {
            "dtype": self.given.dtype,
            "draft": variant.draft.name,
            "variant": number,
            "kind": outcome.kind.value,
            "message": outcome.message[:MESSAGE],
        }

    def _of(self, probe: Probe) -> tuple[int, ...]:
        """The variants that are measured on a probe: the direct one, the last, only where it may serve."""
        small = self.given.direct is None or choice.served_directly(self.ground.operator, probe.problem)
        return probe.variants or tuple(range(len(self.entries) - (not small)))

    def _call(self, problem: Problem) -> Call:
        return measured_call(self.ground.operator, problem, self.ground.seed, 0)

    def _counted_call(self, problem: Problem) -> Call:
        """The call that every variant is counted with, made once a batch."""
        with self.lock:
            if problem.label not in self.calls:
                made = self.ground.operator.reference.counted(problem, self._call(problem), self.ground.seed.stream(4))
                self.calls[problem.label] = made
            return self.calls[problem.label]

    def _impossible(self, problem: Problem, by_vlen: Mapping[int, Samples]) -> Outcome | None:
        """The first figure that is beyond peak or memory."""
        told = (self.roof.impossible(self.ground.operator, problem, s, vlen) for vlen, s in by_vlen.items())
        return next((outcome for outcome in told if outcome), None)

    def _timed(self, wanted: Sequence[Probe]) -> Iterator[tuple[int, Problem, tuple[float | None, ...]]]:
        for probe in wanted:
            cost = self._side_by_side(probe.problem, self._of(probe))
            if isinstance(cost, Outcome):
                self._blame(probe, cost)
            else:
                for vlen in self.ground.target.configurations:
                    told = {n: merit(by_vlen[vlen], vlen) for n, by_vlen in zip(self._of(probe), cost, strict=True)}
                    yield vlen, probe.problem, tuple(map(told.get, range(len(self.entries))))

    def _blame(self, probe: Probe, together: Outcome) -> None:
        """Which of a probe's variants fails alone as well; raises Refused for it."""
        for number in self._of(probe):
            alone = self._side_by_side(probe.problem, (number,)) if together.kind in FAILS else together
            if isinstance(alone, Outcome) and alone.kind in FAILS:
                raise Refused(self.given.dtype, number, alone)
            self.failed.append((number, alone if isinstance(alone, Outcome) else together))

    def _side_by_side(self, problem: Problem, numbers: Sequence[int]) -> tuple[dict[int, Samples], ...] | Outcome:
        reference, target = self.ground.operator.reference, self.ground.target
        call = reference.alternated(problem, self._call(problem), self.ground.seed.stream(4))
        entries = [self.entries[number] for number in numbers]
        judge = functools.partial(self.answers.judge_all, problem, call)
        cost = target.cost(Run(self.program, 0, self.guest), call, entries, judge)
        if isinstance(cost, Outcome):
            return cost
        told = (self._impossible(problem, by_vlen) for by_vlen in cost)
        return next((outcome for outcome in told if outcome), None) or cost

    def _counted(self, wanted: Sequence[Probe]) -> Iterator[tuple[int, Problem, tuple[float | None, ...]]]:
        def count(at: tuple[int, int]) -> dict[int, float]:
            """Of a VLEN and a variant: by the place of a probe that it has a part in, its cost."""
            vlen, number = at
            mine = [place for place, probe in enumerate(wanted) if number in self._of(probe)]
            if not mine:
                return {}
            problems = [wanted[place].problem for place in mine]
            counted = self._count(vlen, number, problems)
            if isinstance(counted, Outcome) and counted.kind is Kind.TIMEOUT:  # the machine may have been busy
                counted = self._count(vlen, number, problems)
            if not isinstance(counted, Outcome):
                return {place: merit(samples, vlen) for place, samples in zip(mine, counted, strict=True)}
            if counted.kind in FAILS:
                raise Refused(self.given.dtype, number, counted)
            self.failed.append((number, counted))
            return {}

        work = self.ground.operator.reference.work
        most = {n: sum(float(work(p.problem)) for p in wanted if n in self._of(p)) for n in range(len(self.entries))}
        order = sorted(most, key=lambda number: -most[number])  # the longest first, so that all end together
        jobs = [(vlen, number) for number in order for vlen in self.ground.target.configurations]
        with ThreadPoolExecutor(max(1, self.ground.job.jobs)) as pool:
            counted = dict(zip(jobs, pool.map(count, jobs), strict=True))
        for vlen in self.ground.target.configurations:
            for place, probe in enumerate(wanted):
                yield vlen, probe.problem, tuple(counted[vlen, number].get(place) for number in range(len(order)))

    def _count(self, vlen: int, number: int, problems: Sequence[Problem]) -> Sequence[Samples] | Outcome:
        """A variant's cost of each problem, or how one of them failed."""
        reference = self.ground.operator.reference
        calls = [self._counted_call(problem) for problem in problems]
        works = [float(reference.work(problem)) for problem in problems]
        counted = self.ground.target.costs(
            Run(self.program, vlen, self.guest, self.ground.target.means.deadline(sum(works))),
            calls,
            self.entries[number],
            [int(work <= WARMED) for work in works],
            lambda i, left: self.answers.judge_all(problems[i], calls[i], left),
        )
        if isinstance(counted, Outcome):
            return counted
        told = (self._impossible(p, {vlen: s}) for p, s in zip(problems, counted, strict=True))
        return next((outcome for outcome in told if outcome), None) or counted
