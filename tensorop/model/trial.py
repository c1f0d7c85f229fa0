"""What one trial is, and what became of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tensorop.model.kernel import KernelText, Variant
from tensorop.model.point import Point


class Stage(StrEnum):
    """The parts of a search that make trials, as operator.yaml names them."""

    MICRO = "micro"  # kernels alone, on packed operands
    BLOCKING = "blocking"  # the few best with their blockings, on whole problems
    LARGE = "large"  # the few best of these, on shapes too large for every trial
    SINGLE_VLEN = "single-vlen"  # variants written once more for one VLEN
    SMALLEST = "smallest"  # what serves the smallest problems

    @property
    def of_kernels(self) -> bool:
        """Whether configurations of kernels are searched; else blockings of kernels are."""
        return self in (Stage.MICRO, Stage.SMALLEST)


class Kind(StrEnum):
    """The outcome of a trial. Everything but OK is a recorded failure of the candidate, except LOST."""

    OK = "ok"  # it passed
    REFUSED = "refused"  # the template breaks a rule of the gate before anything is built
    RENDER = "render-failed"  # the template could not be rendered
    COMPILE = "compile-failed"  # the compiler refused the C
    OBJECT = "object-refused"  # the object has symbols, sections or instructions a kernel must not have
    TIMEOUT = "timeout"  # a step took too long
    CRASH = "crash"  # the process ended by a signal
    ILLEGAL = "illegal-instruction"  # the target does not have an instruction of the kernel
    GUARD = "guard-page"  # the kernel touched memory outside of its operands
    WRONG = "wrong-result"  # an element is outside of the error bound, or an input was changed
    IMPOSSIBLE = "impossible"  # faster than the target's peak or its memory allows
    NOISY = "noisy"  # measured, but the clock was too unsteady
    LOST = "target-lost"  # the board or the emulator went away; the candidate may be right


@dataclass(frozen=True)
class Outcome:
    """(stage of the pipeline, kind, message, log): set where it happens, never matched out of text."""

    kind: Kind
    where: str = ""  # author | render | build | verify | measure
    message: str = ""
    log: str = ""  # tail of the tool's own output, at most 4 kB

    @property
    def ok(self) -> bool:
        return self.kind is Kind.OK


@dataclass(frozen=True)
class Samples:
    """One measured problem."""

    unit: str  # of one call's cost: "ns" (a clock on the target) or "modelled-cycles" (a board model)
    value: float  # the cost; lower is better
    low: float  # quartiles of a clock's samples, or the model's range over its assumed constants
    high: float
    count: int = 1
    counters: Mapping[str, float] = field(default_factory=dict)  # instructions, misses and so on of that call
    by_vlen: Mapping[int, float] = field(default_factory=dict)  # each VLEN's value where several (bits) have one figure
    # of a model, where several were counted: the cost under each choice of its assumed constants, the best fit first
    scenario_costs: tuple[float, ...] = ()
    alternative_costs: Mapping[str, float] = field(default_factory=dict)  # and under each alternative, by name

    def at(self, vlen: int) -> float:
        """The value at one of several VLENs; the figure itself where there was one."""
        return self.by_vlen.get(vlen, self.value)


@dataclass(frozen=True)
class Score:
    """What the tuner learns from: `cost` > 0, lower is better; None when the trial failed."""

    cost: float | None
    per_problem: Mapping[str, Samples] = field(default_factory=dict)


@dataclass(frozen=True)
class Rung:
    """A halt of a trial on its way through its problems."""

    problems: int  # how many of them it has then been measured on
    bars: tuple[tuple[int, float], ...] = ()  # by VLEN (bits), the geometric mean up to which it goes on; (): it does
    beyond: float = 1.0  # for a trial that ends here, how many times as much as these all problems cost


@dataclass(frozen=True)
class Trial:
    """One candidate in a stage."""

    key: str
    round: int
    stage: Stage
    variant: Variant
    race: tuple[Rung, ...] = ()  # where it may end before it was measured on all problems

    @property
    def dtype(self) -> str:
        return self.variant.kernel.dtype

    @property
    def point(self) -> Point:
        """What its stage searches of it."""
        return self.variant.kernel.configuration if self.stage.of_kernels else self.variant.blocking

    @property
    def arm(self) -> str:
        """The id of the kernel that has all but that."""
        kernel = self.variant.kernel
        return (replace(kernel, configuration=Point(())) if self.stage.of_kernels else kernel).id


@dataclass(frozen=True)
class TrialResult:
    """How a trial went."""

    outcome: Outcome
    score: Score = field(default_factory=lambda: Score(None))  # what the tuner learns from
    seconds: Mapping[str, float] = field(default_factory=dict)  # by pipeline stage
    text: KernelText | None = None  # it was made of, where it passed


@dataclass(frozen=True)
class Finished:
    """A trial with its end."""

    trial: Trial
    outcome: Outcome
    score: Score
    seconds: Mapping[str, float] = field(default_factory=dict)  # by pipeline stage: render, build, verify, measure
    text: str = ""  # KernelText.id of what was judged

    def with_figures(self, again: Finished) -> Finished:
        """The same with the figures of another trial, which stand for its own."""
        both = {**self.score.per_problem, **again.score.per_problem}
        return replace(self, score=replace(self.score, per_problem=both))

    @property
    def rank(self) -> tuple[int, float]:
        """The better the lower: no cost that some problems say is better than one that more of them say."""
        return -len(self.score.per_problem), math.inf if self.score.cost is None else self.score.cost
