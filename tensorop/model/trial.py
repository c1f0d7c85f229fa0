"""Records of trials and their results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tensorop.model.kernel import KernelText, Variant
from tensorop.model.point import Point


class Stage(StrEnum):
    """The parts of a search that make trials, as operator.yaml names them."""

    MICRO = "micro"  # micro-kernels alone, on packed operands
    BLOCKING = "blocking"  # the best kernels with blockings, on whole problems
    FINALISTS = "finalists"  # the best of these, on the problems that were left out of trials
    SINGLE_VLEN = "single-vlen"  # variants specialised for one VLEN
    SMALLEST = "smallest"  # kernels for the smallest problems
    KERNELS = "kernels"  # kernels for a device, which are built and not measured; no part of a processor's search

    @property
    def of_kernels(self) -> bool:
        """Whether the stage searches configurations of kernels; otherwise it searches blockings."""
        return self in (Stage.MICRO, Stage.SMALLEST, Stage.KERNELS)


class Kind(StrEnum):
    """The outcome of a trial. Everything but OK is a recorded failure of the candidate, except LOST."""

    OK = "ok"  # it passed
    REFUSED = "refused"  # the template breaks a rule of the gate before anything is built
    RENDER = "render-failed"  # the template could not be rendered
    COMPILE = "compile-failed"  # the compiler refused the C
    OBJECT = "object-refused"  # the object has symbols, sections or instructions that a kernel must not have
    TIMEOUT = "timeout"  # a step took too long
    CRASH = "crash"  # the process ended by a signal
    ILLEGAL = "illegal-instruction"  # the target does not have an instruction of the kernel
    GUARD = "guard-page"  # the kernel touched memory outside of its operands
    WRONG = "wrong-result"  # an element is outside of the error bound, or an input was changed
    IMPOSSIBLE = "impossible"  # faster than the target's peak or memory allows
    NOISY = "noisy"  # measured, but the clock was too unsteady
    LOST = "target-lost"  # the board or the emulator went away; the candidate may be right


@dataclass(frozen=True)
class Outcome:
    """Outcome of a step. The step that fails sets the kind; it is never derived from texts."""

    kind: Kind
    where: str = ""  # stage of the pipeline: author | render | build | verify | measure
    message: str = ""
    log: str = ""  # end of the tool's output, at most 4 kB

    @property
    def ok(self) -> bool:
        return self.kind is Kind.OK


@dataclass(frozen=True)
class Samples:
    """The measured cost of one problem."""

    unit: str  # of one call's cost: "ns" (a clock on the target) or "modelled-cycles" (a board model)
    value: float  # the cost; lower is better
    low: float  # lower quartile of a clock's samples, or minimum over a model's assumed constants
    high: float  # upper quartile, or maximum
    count: int = 1
    counters: Mapping[str, float] = field(default_factory=dict)  # instructions, misses and so on of one call
    by_vlen: Mapping[int, float] = field(default_factory=dict)  # VLEN (bits) -> cost, if `value` combines several
    # under a model, if several scenarios were counted: cost for each choice of assumed constants, the best fit first
    scenario_costs: tuple[float, ...] = ()
    alternative_costs: Mapping[str, float] = field(default_factory=dict)  # cost under each alternative, by name

    def at(self, vlen: int) -> float:
        """The cost at a VLEN (bits); `value` if there is only one."""
        return self.by_vlen.get(vlen, self.value)


@dataclass(frozen=True)
class Score:
    """A trial's result for the tuner."""

    cost: float | None  # above 0, lower is better; None: the trial failed
    per_problem: Mapping[str, Samples] = field(default_factory=dict)


@dataclass(frozen=True)
class Rung:
    """A halt in the race of trials: here a trial is dropped from classes of problems, or goes on to further ones."""

    problems: int  # number of problems measured before the halt
    # (VLEN in bits, cost): it goes on in all classes if it reaches one of them
    bars: tuple[tuple[int, float], ...] = ()
    beyond: tuple[tuple[str, float], ...] = ()  # (class, expected cost of all its problems / cost of those measured)
    # (class, VLEN, cost): it goes on in the class if it reaches one of them; (): it goes on in all
    of_class: tuple[tuple[str, int, float], ...] = ()


@dataclass(frozen=True)
class Trial:
    """One candidate in a stage."""

    key: str
    round: int
    stage: Stage
    variant: Variant
    race: tuple[Rung, ...] = ()  # halts at which it may be dropped
    only: tuple[str, ...] = ()  # labels of the problems to measure; (): all of its stage

    @property
    def dtype(self) -> str:
        return self.variant.kernel.dtype

    @property
    def point(self) -> Point:
        """The part of the variant that its stage searches: configuration or blocking."""
        return self.variant.kernel.configuration if self.stage.of_kernels else self.variant.blocking

    @property
    def arm(self) -> str:
        """Id of the variant's kernel, without its configuration if the stage searches that."""
        kernel = self.variant.kernel
        return (replace(kernel, configuration=Point(())) if self.stage.of_kernels else kernel).id


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial, from its evaluation."""

    outcome: Outcome
    score: Score = field(default_factory=lambda: Score(None))  # for the tuner
    seconds: Mapping[str, float] = field(default_factory=dict)  # by pipeline stage
    text: KernelText | None = None  # its C, if it passed


@dataclass(frozen=True)
class Finished:
    """A finished trial, as in the journal."""

    trial: Trial
    outcome: Outcome
    score: Score
    seconds: Mapping[str, float] = field(default_factory=dict)  # by step: render, compile, check, link, verify, measure
    text: str = ""  # KernelText.id of its C

    @property
    def cost(self) -> float:
        """Of the score; infinite for a trial that failed."""
        return self.score.cost if self.outcome.ok and self.score.cost is not None else math.inf

    def with_figures(self, again: Finished) -> Finished:
        """The trial with the results of another one added; those replace its own."""
        both = {**self.score.per_problem, **again.score.per_problem}
        return replace(self, score=replace(self.score, per_problem=both))

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key, lower is better: trials on more problems come first, then those with lower cost."""
        return -len(self.score.per_problem), math.inf if self.score.cost is None else self.score.cost


@dataclass(frozen=True)
class Limit:
    """The time limit of a trial in seconds, and its reason."""

    seconds: float
    why: str

    def of(self, trials: int) -> Limit:
        """The limit of several trials in company."""
        return Limit(self.seconds * trials, self.why)
