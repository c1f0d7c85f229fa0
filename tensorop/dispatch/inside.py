"""Measures variants inside their library: side by side on a clock, one by one under a board model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tensorop.dispatch.choice import CostRow
from tensorop.dispatch.direct import served
from tensorop.dispatch.evidence import FAULTS, RefusedVariant
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.measure.samples import objective
from tensorop.model.call import Call
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.model.winner import Winners
from tensorop.render import adapting
from tensorop.runners.protocol import Entry, TargetLibrary
from tensorop.runners.session import Guest
from tensorop.search.task import Task
from tensorop.trial.calls import measured_call, warming_calls
from tensorop.trial.roof import Roof
from tensorop.verify.answers import Answers

FAILS = FAULTS | {Kind.TIMEOUT}  # outcomes that refuse a variant; a timeout does so at the second try
UNMEASURED = "unmeasured"  # journal note: a variant without a result
MESSAGE = 300


Place = tuple[int, int, int]  # of a cost: number of the probe, VLEN, number of the variant


@dataclass(frozen=True)
class Probe:
    """A problem and the numbers of the variants to measure on it; empty: all."""

    problem: Problem
    variants: tuple[int, ...] = ()


class LibraryBench:
    """A library with exactly these variants, copied to the target."""

    def __init__(self, task: Task, library: Path, given: Winners) -> None:
        self.task, self.given = task, given
        target = task.target
        self.program = adapting.program(target.platform, task.operator).path
        placed = TargetLibrary(target.runner.place(library), "tensorop", given.dtype)
        self.guest = Guest(libraries=(placed,), cpu=target.runner.processor)
        slot = task.operator.reference.variant_flag
        self.entries = [Entry(0, (slot, number)) for number in range(len(given.all))]
        self.roof = Roof(target)
        self.answers = Answers(task.operator.reference)
        self.failed: list[tuple[int, Outcome]] = []  # variants without a result, and why

    def request(self, vlen: int, calls: Sequence[Call], variants: Sequence[int], flops: float = 0.0) -> MeasureRequest:
        """Request for calls of some variants at a VLEN. flops: work of the calls, for the time limit."""
        return MeasureRequest(
            self.program,
            calls,
            [self.entries[number] for number in variants],
            vlen=vlen,
            guest=self.guest,
            timeout_s=self.task.target.budgets.deadline(flops),
        )

    def rows(self, wanted: Sequence[Probe], answers: Answers | None = None) -> dict[int, list[CostRow]]:
        """VLEN -> costs of each probe; probes on which no variant could be measured are left out.

        answers: the oracle's results for problems that are measured elsewhere too

        A correct variant without a result (a timeout, for example) is noted in the journal once for each kind of
        outcome. Raises RefusedVariant for a variant that fails.
        """
        self.failed = []
        self.answers = answers or Answers(self.task.operator.reference)  # other batches have other problems
        costs = dict(self._counted(wanted) if self.task.target.deterministic else self._timed(wanted))
        for number, outcome in {(number, outcome.kind): (number, outcome) for number, outcome in self.failed}.values():
            template = self.given.all[number].template.name
            record = {"dtype": self.given.dtype, "template": template, "variant": number}
            self.task.journal.note(
                UNMEASURED, record | {"kind": outcome.kind.value, "message": outcome.message[:MESSAGE]}
            )
        rows: dict[int, list[CostRow]] = {}
        for vlen, (place, probe) in itertools.product(self.task.target.vlens, enumerate(wanted)):
            of_probe = tuple(costs.get((place, vlen, number)) for number in range(len(self.entries)))
            if any(cost is not None for cost in of_probe):
                rows.setdefault(vlen, []).append(CostRow(probe.problem, of_probe))
        return rows

    def _of(self, probe: Probe) -> tuple[int, ...]:
        """The variants to measure on a probe; the direct one, the last, only where it may serve."""
        small = self.given.direct is None or served(self.task.operator, self.task.target.platform, probe.problem)
        numbers = probe.variants or range(len(self.entries))
        return tuple(number for number in numbers if small or number != len(self.given.variants))

    def _call(self, problem: Problem) -> Call:
        return measured_call(self.task.operator, problem, self.task.seed, 0)

    def _impossible(self, problem: Problem, by_vlen: Mapping[int, Samples]) -> Outcome | None:
        """The first cost below what the machine's peak or memory bandwidth allows."""
        outcomes = (self.roof.impossible(self.task.operator, problem, s, vlen) for vlen, s in by_vlen.items())
        return next((outcome for outcome in outcomes if outcome), None)

    def _timed(self, wanted: Sequence[Probe]) -> Iterator[tuple[Place, float]]:
        """Measures all variants of a probe in one process, interleaved."""
        for place, probe in enumerate(wanted):
            numbers = self._of(probe)
            measured = self._side_by_side(probe.problem, numbers)
            if isinstance(measured, Outcome):
                self._find_culprit(probe, measured)
                continue
            for number, by_vlen in zip(numbers, measured, strict=True):
                yield from (((place, vlen, number), objective(samples, vlen)) for vlen, samples in by_vlen.items())

    def _find_culprit(self, probe: Probe, together: Outcome) -> None:
        """Runs a probe's variants alone to find the one that fails; raises RefusedVariant for it."""
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
        outcomes = (self._impossible(problem, by_vlen) for by_vlen in cost)
        return next((outcome for outcome in outcomes if outcome), None) or cost

    def _counted(self, wanted: Sequence[Probe]) -> Iterator[tuple[Place, float]]:
        """Measures each variant at each VLEN in a process of its own, on all its probes."""
        reference, problems = self.task.operator.reference, [probe.problem for probe in wanted]
        calls = [reference.counted(p, self._call(p), self.task.seed.stream(4)) for p in problems]
        works = [float(reference.work(problem)) for problem in problems]
        numbers_of = [self._of(probe) for probe in wanted]
        every = range(len(self.entries))
        places = {n: [place for place, numbers in enumerate(numbers_of) if n in numbers] for n in every}

        def count(vlen: int, mine: Sequence[int], number: int) -> list[Samples] | Outcome:
            request = replace(
                self.request(vlen, [calls[place] for place in mine], (number,), sum(works[place] for place in mine)),
                warm=[warming_calls(works[place]) for place in mine],
                judge=lambda i, left: self.answers.judge_all(problems[mine[i]], calls[mine[i]], left),
            )
            counted = self.task.target.measure(request)
            if isinstance(counted, Outcome):
                return counted
            samples = [one.samples for one in counted]
            outcomes = (self._impossible(problems[p], {vlen: s}) for p, s in zip(mine, samples, strict=True))
            return next((outcome for outcome in outcomes if outcome), None) or samples

        def costs(at: tuple[int, int]) -> list[tuple[Place, float]]:
            number, vlen = at
            if not (mine := places[number]):
                return []
            counted = count(vlen, mine, number)
            if isinstance(counted, Outcome) and counted.kind is Kind.TIMEOUT:  # the machine may have been busy
                counted = count(vlen, mine, number)
            if not isinstance(counted, Outcome):
                return [((p, vlen, number), objective(s, vlen)) for p, s in zip(mine, counted, strict=True)]
            if counted.kind in FAILS:
                raise RefusedVariant(self.given.dtype, number, counted)
            self.failed.append((number, counted))
            return []

        # the longest first, so that all end together
        order = sorted(every, key=lambda number: -sum(works[place] for place in places[number]))
        with ThreadPoolExecutor(max(1, self.task.job.jobs)) as pool:
            yield from itertools.chain.from_iterable(pool.map(costs, itertools.product(order, self.task.target.vlens)))
