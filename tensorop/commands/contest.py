"""One comparison under way: who takes part, on what target, in which surroundings."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tensorop.build import programs
from tensorop.commands.libraries import LibraryUnderTest
from tensorop.errors import BoardError, JobError, NoFigure, TensoropError
from tensorop.measure import peak as measured_peak
from tensorop.model.call import Call, CallOutput, Placement
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.model.verdict import Judgement, Seed
from tensorop.runners import session
from tensorop.runners.session import Guest
from tensorop.space import problems
from tensorop.target import Target
from tensorop.trial.roof import Roof
from tensorop.verify.answers import Answers

# Flops up to which what a call costs before and after the library's function is measured, and taken off: some
# nanoseconds, of microseconds.
SHORT = 1e6


@dataclass(frozen=True)
class Contest:
    """program: the harness that opens libraries; final: slowly and exactly. `absent`, `peak` fill up as it goes on."""

    operator: Operator
    target: Target
    program: Path
    ours: LibraryUnderTest
    baselines: tuple[LibraryUnderTest, ...]
    threads: int
    final: bool
    absent: dict[str, str] = field(default_factory=dict)
    peak: dict[str, float] = field(default_factory=dict)
    seed: Seed = field(default_factory=Seed.draw)

    def find_peak(self, dtype: str) -> None:
        """Measures the FMA peak of one core in GFLOP/s; what cannot be measured is absent."""
        try:
            program = programs.peak_program(self.target.platform, dtype)
            self.peak[dtype] = measured_peak.fma_peak(program, self.target.runner, dtype, fresh=True)
        except TensoropError as error:
            self.absent[f"FMA peak {dtype}"] = str(error).replace("\n", "; ")

    def flops(self, problem: Problem) -> float:
        return float(self.operator.reference.work(problem))

    def short(self, problem: Problem) -> bool:
        """Whether what a call costs around the library's function is taken off. Of a baseline of the operator's own
        over a library that is its work."""
        own = any(baseline.api in self.operator.baselines for baseline in self.baselines)
        return self.flops(problem) <= SHORT and not own

    def call(self, problem: Problem) -> Call:
        """Normal inputs, operands page-aligned, as candidates are measured; on a clock two sets of them."""
        reference = self.operator.reference
        call = reference.call(problem, self.seed.stream(2), "normal", Placement.START)
        as_measured = reference.counted if self.target.deterministic else reference.alternated
        return as_measured(problem, call, self.seed.stream(4))

    def guest(self, who: Sequence[LibraryUnderTest], dtype: str, vlen: int) -> Guest:
        """A process that holds these libraries at a VLEN (bits, 0 where there is one width only)."""
        merged: dict[str, str] = {}
        for tested in who:
            for key, value in tested.environment(self.target.runner, vlen, dtype):
                merged[key] = f"{merged[key]}:{value}" if key == "LD_LIBRARY_PATH" and key in merged else value
        libraries = tuple(tested.library(self.target.runner, dtype) for tested in who)
        environment = tuple(sorted(merged.items()))
        return Guest(vlen=vlen or None, libraries=libraries, environment=environment, threads=self.threads)

    def open(self, dtype: str) -> None:
        """Finds out who holds a dtype: a baseline that does not load or lacks it is absent.

        Raises JobError where our own library does not load.
        """
        vlen = self.target.vlens[0]
        for who in (self.ours, *self.baselines):
            try:
                session.hello(self.target.runner, self.program, guest=self.guest((who,), dtype, vlen))
            except BoardError:
                raise
            except JobError as error:
                if who is self.ours:
                    raise
                self.absent[f"{who.name} {dtype}"] = error.message

    def taking_part(self, problem: Problem) -> list[LibraryUnderTest]:
        """The baselines that hold the problem's dtype, after `open`, and compute it themselves."""
        out = []
        for baseline in self.baselines:
            if f"{baseline.name} {problem.dtype}" in self.absent:
                continue
            if baseline.most_flops is None or self.flops(problem) <= baseline.most_flops:
                out.append(baseline)
                continue
            why = f"products of more than {baseline.most_flops:g} flop it hands on to another library"
            self.absent[f"{baseline.name} {problem.label}"] = why
        return out

    def judge(self, problem: Problem, call: Call) -> Callable[[Sequence[CallOutput]], Judgement]:
        """Judges all of what calls of this problem left; the oracle is asked once for all of them."""
        answers = Answers(self.operator.reference)
        return lambda left: answers.judge_all(problem, call, left)

    @functools.cached_property
    def roof(self) -> Roof:
        """Of all that the machine has: a baseline may find kernels for more than the platform asks of a core."""
        return Roof(self.target.widest())

    def believed(self, problem: Problem, samples: Samples, judged: Outcome, vlen: int = 0) -> Outcome:
        """What was judged of a call's result, or that its figure cannot be."""
        told = self.roof.impossible(self.operator, problem, samples, vlen, self.threads) if judged.ok else None
        return told or judged

    @functools.cached_property
    def judged_by(self) -> str:
        """What verdicts depend on beside the call."""
        return hashlib.sha256((self.operator.folder / "reference.py").read_bytes()).hexdigest()

    def require(self, problem: Problem, judged: Outcome, vlen: int) -> None:
        """Raises JobError where our own library was wrong, or faster than anything can be."""
        if judged.ok:
            return
        width = f" at {self.target.label(vlen)}" if vlen and len(self.target.vlens) > 1 else ""
        fault = "speed is impossible" if judged.kind is Kind.IMPOSSIBLE else "result is wrong"
        raise JobError(
            f"{self.ours.path} has no figure, since its {fault}{width}: {judged.message or judged.kind.value}",
            hint="tensorop verify LIB shows more",
        )

    def leave_out(self, baseline: LibraryUnderTest, problem: Problem, why: Outcome, vlen: int = 0) -> None:
        """Names a baseline that has no ratio at a problem, at one VLEN of several or everywhere."""
        width = f" {self.target.label(vlen)}" if vlen and len(self.target.vlens) > 1 else ""
        self.absent[f"{baseline.name} {problem.label}{width}"] = f"{why.kind.value}: {why.message}"


def layout(problem: Problem) -> str:
    """`row`, with transposes as in `row,tb=1`."""
    return problems.written(problem.options)


def unmeasured(outcome: Outcome, what: str) -> JobError:
    """The error for our own figure that could not be taken: NoFigure where that is no fault of the library."""
    innocent = outcome.kind in (Kind.TIMEOUT, Kind.NOISY, Kind.LOST)
    return (NoFigure if innocent else JobError)(f"{what}: {outcome.message}")
