"""Variants measured inside their library: on a clock side by side, where calls are counted each by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tensorop.build import harness
from tensorop.dispatch import served
from tensorop.dispatch.choice import CostRow
from tensorop.dispatch.evidence import FAULTS, RefusedVariant
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.model.call import Call
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.model.winner import Winners
from tensorop.runners.protocol import Entry, Library
from tensorop.runners.session import Guest
from tensorop.search.task import Task
from tensorop.target import objective
from tensorop.trial.calls import measured_call, warming_calls
from tensorop.trial.roof import Roof
from tensorop.verify.answers import Answers

FAILS = FAULTS | {Kind.TIMEOUT}  # twice, for a machine can be busy
UNMEASURED = "unmeasured"  # the journal's notes of variants that have no figure
MESSAGE = 300


@dataclass(frozen=True)
class Probe:
    """A problem, and the numbers of the variants that are measured on it: all where none is named."""

    problem: Problem
    variants: tuple[int, ...] = ()


class LibraryBench:
    """A library of exactly these variants, staged on the target."""

    def __init__(self, task: Task, library: Path, given: Winners) -> None:
        self.task, self.given = task, given
        target = task.target
        self.program = harness.of_operator(target.platform, task.operator).path
        placed = Library(target.runner.place(library), "tensorop", given.dtype)
        self.guest = Guest(libraries=(placed,), cpu=target.runner.processor)
        slot = task.operator.reference.variant_flag
        self.entries = [Entry(0, (slot, number)) for number in range(len(given.all))]
        self.roof = Roof(target)
        self.answers = Answers(task.operator.reference)
        self.failed: list[tuple[int, Outcome]] = []  # variants without a figure, and why
        self.calls: dict[str, Call] = {}  # by problem: making one takes as long as counting it
        self.lock = threading.Lock()

    def request(self, vlen: int, calls: Sequence[Call], variants: Sequence[int], flops: float = 0.0) -> MeasureRequest:
        """For calls of variants at a VLEN, of so many flops."""
        return MeasureRequest(
            self.program,
            calls,
            [self.entries[number] for number in variants],
            vlen=vlen,
            guest=self.guest,
            timeout_s=self.task.target.budgets.deadline(flops),
        )

    def rows(self, wanted: Sequence[Probe]) -> dict[int, list[CostRow]]:
        """By VLEN the costs of each probe, but for those of which no variant could be measured.

        What has no figure although nothing is wrong with it is noted in the journal, once for each variant and kind.
        Raises RefusedVariant for a variant that fails.
        """
        self.failed = []
        self.answers = Answers(self.task.operator.reference)  # another batch has other problems
        self.calls = {}
        found = list(self._counted(wanted) if self.task.target.deterministic else self._timed(wanted))
        for number, outcome in {(number, outcome.kind): (number, outcome) for number, outcome in self.failed}.values():
            template = self.given.all[number].template.name
            told = {"dtype": self.given.dtype, "template": template, "variant": number}
            self.task.journal.note(
                UNMEASURED, told | {"kind": outcome.kind.value, "message": outcome.message[:MESSAGE]}
            )
        rows: dict[int, list[CostRow]] = {}
        for vlen, problem, costs in found:
            if any(cost is not None for cost in costs):
                rows.setdefault(vlen, []).append(CostRow(problem, costs))
        return rows

    def _of(self, probe: Probe) -> tuple[int, ...]:
        """The variants that are measured on a probe: the direct one, the last, only where it may serve."""
        small = self.given.direct is None or served.directly(
            self.task.operator, self.task.target.platform, probe.problem
        )
        return probe.variants or tuple(range(len(self.entries) - (not small)))

    def _call(self, problem: Problem) -> Call:
        return measured_call(self.task.operator, problem, self.task.seed, 0)

    def _counted_call(self, problem: Problem) -> Call:
        """The call that every variant is counted with, made once a batch."""
        with self.lock:
            if problem.label not in self.calls:
                made = self.task.operator.reference.counted(problem, self._call(problem), self.task.seed.stream(4))
                self.calls[problem.label] = made
            return self.calls[problem.label]

    def _impossible(self, problem: Problem, by_vlen: Mapping[int, Samples]) -> Outcome | None:
        """The first figure that is beyond peak or memory."""
        told = (self.roof.impossible(self.task.operator, problem, s, vlen) for vlen, s in by_vlen.items())
        return next((outcome for outcome in told if outcome), None)

    def _timed(self, wanted: Sequence[Probe]) -> Iterator[tuple[int, Problem, tuple[float | None, ...]]]:
        for probe in wanted:
            cost = self._side_by_side(probe.problem, self._of(probe))
            if isinstance(cost, Outcome):
                self._find_culprit(probe, cost)
            else:
                for vlen in self.task.target.vlens:
                    told = {n: objective(by_vlen[vlen], vlen) for n, by_vlen in zip(self._of(probe), cost, strict=True)}
                    yield vlen, probe.problem, tuple(map(told.get, range(len(self.entries))))

    def _find_culprit(self, probe: Probe, together: Outcome) -> None:
        """Which of a probe's variants fails alone as well; raises RefusedVariant for it."""
        for number in self._of(probe):
            alone = self._side_by_side(probe.problem, (number,)) if together.kind in FAILS else together
            if isinstance(alone, Outcome) and alone.kind in FAILS:
                raise RefusedVariant(self.given.dtype, number, alone)
            self.failed.append((number, alone if isinstance(alone, Outcome) else together))

    def _side_by_side(self, problem: Problem, numbers: Sequence[int]) -> tuple[dict[int, Samples], ...] | Outcome:
        reference, target = self.task.operator.reference, self.task.target
        call = reference.alternated(problem, self._call(problem), self.task.seed.stream(4))
        request = replace(
            self.request(0, [call], numbers),
            purpose=Purpose.CHOICE,
            judge=lambda _, left: self.answers.judge_all(problem, call, left),
        )
        cost = target.measure_each(lambda vlen: replace(request, vlen=vlen))
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
                return {place: objective(samples, vlen) for place, samples in zip(mine, counted, strict=True)}
            if counted.kind in FAILS:
                raise RefusedVariant(self.given.dtype, number, counted)
            self.failed.append((number, counted))
            return {}

        work = self.task.operator.reference.work
        most = {n: sum(float(work(p.problem)) for p in wanted if n in self._of(p)) for n in range(len(self.entries))}
        order = sorted(most, key=lambda number: -most[number])  # the longest first, so that all end together
        jobs = [(vlen, number) for number in order for vlen in self.task.target.vlens]
        with ThreadPoolExecutor(max(1, self.task.job.jobs)) as pool:
            counted = dict(zip(jobs, pool.map(count, jobs), strict=True))
        for vlen in self.task.target.vlens:
            for place, probe in enumerate(wanted):
                yield vlen, probe.problem, tuple(counted[vlen, number].get(place) for number in range(len(order)))

    def _count(self, vlen: int, number: int, problems: Sequence[Problem]) -> Sequence[Samples] | Outcome:
        """A variant's cost of each problem, or how one of them failed."""
        reference = self.task.operator.reference
        calls = [self._counted_call(problem) for problem in problems]
        works = [float(reference.work(problem)) for problem in problems]
        request = replace(
            self.request(vlen, calls, (number,), sum(works)),
            warm=[warming_calls(work) for work in works],
            judge=lambda i, left: self.answers.judge_all(problems[i], calls[i], left),
        )
        counted = self.task.target.measure(request)
        if isinstance(counted, Outcome):
            return counted
        samples = [one.samples for one in counted]
        told = (self._impossible(p, {vlen: s}) for p, s in zip(problems, samples, strict=True))
        return next((outcome for outcome in told if outcome), None) or samples
