"""One trial from end to end: render, gate, build, verify, measure. What fails is an outcome, never an error."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tensorop.author import offline
from tensorop.errors import BoardError
from tensorop.measure.request import MeasureRequest
from tensorop.model.call import Access, Buffer, Call, Left, Placement
from tensorop.model.case import Case
from tensorop.model.expression import evaluate
from tensorop.model.kernel import Artifact, KernelText, Source, Variant
from tensorop.model.number import NUMBERS
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.primitive import Formats
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Measured, Outcome, Rung, Samples, Score, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.render import instantiate
from tensorop.render.render import RenderError
from tensorop.render.texts import Texts
from tensorop.runners.protocol import Entry
from tensorop.target import Target, combine
from tensorop.trial import bounds, race
from tensorop.trial.roof import Roof
from tensorop.verify import grid
from tensorop.verify.answers import Answers, consistent
from tensorop.verify.subject import Subject

OPERATOR, MICRO_KERNEL, ITS_TILES = Entry(0), Entry(1), Entry(2)
COMPILE_TIMEOUT_S = 90.0
CALL_TIMEOUT_S = 30.0
WARMED = 1e7  # flops up to which a modelled call is preceded by another; larger ones fill the caches several times over
_TWICE = 1e6  # flops up to which by two: the first call of a library asks the processor, the second goes another way


def warming_calls(flops: float, most: float = WARMED) -> int:
    """How many calls precede a modelled one of so many flops, so that it finds its data and code in the caches."""
    return 2 if flops <= _TWICE else int(flops <= most)


@dataclass(frozen=True)
class Prepared:
    """A built candidate, ready to be judged."""

    program: Path
    seconds: Mapping[str, float]
    text: KernelText | None = None


@dataclass(frozen=True)
class Evaluator:
    """Carries out trials of one dtype and stage.

    problems: what is measured but in the first stage
    work: folder for candidates, which are not kept in the user's cache; texts: the job's kernels; built: by the id of
    a variant as it is built; inputs: measured calls by problem, without workspace;
    what they must leave is in `answers`; call_timeout_s: for a single call that is judged
    specialised: by VLEN, the same for kernels that are written for it
    """

    operator: Operator
    target: Target
    dtype: str
    stage: Stage
    problems: tuple[Problem, ...]
    seed: Seed
    work: Path
    texts: Texts = field(default_factory=Texts)
    built: dict[str, tuple[Artifact, KernelText]] = field(default_factory=dict)
    inputs: dict[str, Call] = field(default_factory=dict)
    call_timeout_s: float = field(default_factory=lambda: CALL_TIMEOUT_S)
    specialised: dict[int, Evaluator] = field(default_factory=dict)
    _making: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    @functools.cached_property
    def roof(self) -> Roof:
        return Roof(self.target)

    @functools.cached_property
    def answers(self) -> Answers:
        return Answers(self.operator.reference)

    def _for(self, trial: Trial) -> Evaluator:
        vlen = trial.variant.kernel.vlen
        return self.specialised.setdefault(vlen, replace(self, target=self.target.at(vlen))) if vlen else self

    def prepare(self, trial: Trial) -> Prepared | Measured:
        """Renders, gates and builds."""
        return self._for(trial)._prepare(trial.variant)

    def _prepare(self, variant: Variant) -> Prepared | Measured:
        clock = _Clock()
        if self.target.simulated:
            return Prepared(Path(), clock.seconds)
        beyond = self._beyond(variant)
        if beyond is not None:
            return Measured(beyond, seconds=clock.lap("render"))
        variant = instantiate.as_built(self.operator, self.target.platform, variant)
        name = f"{variant.id}{self.stage if self.stage is Stage.MICRO else ''}"
        known = self.built.get(name)
        if known is not None:
            program, text = known
            return Prepared(program.path, clock.lap("build"), text)
        try:
            made = self._source(variant)
        except RenderError as error:
            return Measured(Outcome(Kind.RENDER, "render", error.message), seconds=clock.lap("render"))
        if isinstance(made, Outcome):
            return Measured(made, seconds=clock.lap("render"))
        source, text = made
        clock.lap("render")
        built = self.target.build(source, self.work, COMPILE_TIMEOUT_S)
        if isinstance(built, Outcome):
            return Measured(built, seconds=clock.lap("build"))
        self.built[name] = built, text
        return Prepared(built.path, clock.lap("build"), text)

    def _beyond(self, variant: Variant) -> Outcome | None:
        """The refusal of a variant that asks too much of renderer and judge."""
        found = bounds.check(self.operator, self.target, variant)
        if found is None and self.stage is Stage.MICRO:
            problems = (micro_problem(self.operator, self.target.platform, variant, vlen) for vlen in self.target.vlens)
            found = next((no for p in problems if (no := bounds.affordable(self.operator, p)) is not None), None)
        return found

    def _source(self, variant: Variant) -> tuple[Source, KernelText] | Outcome:
        """The C of a candidate around its kernel's text, once the gate has read that; raises RenderError."""
        platform = self.target.platform
        text = self.texts.kernel(self.operator, platform, variant)
        if isinstance(text, Outcome):
            return text
        # alone a kernel is measured on whole vectors; an edge kernel takes as long to compile, so what goes on has one
        shown = replace(text, edge="") if self.stage is Stage.MICRO else text
        alone = bool(self._kernel_cases(variant, self.target.vlens[0]))
        return instantiate.candidate(self.operator, platform, variant, shown, alone), text

    def _kernel_cases(self, variant: Variant, vlen: int) -> Sequence[Case]:
        """Of a micro-kernel of our own, which is built and judged without the loops around it, since these take longer
        to compile; what goes on is judged within them. None for any other, or where the operator has no such grid."""
        if self.stage is not Stage.MICRO or variant.template.author != offline.AUTHOR:
            return ()
        platform = self.target.platform
        full = instantiate.defaults(self.operator, platform, self.dtype, variant.point)
        masked = platform.primitives_of(self.dtype, variant.point).masked
        lanes, reads = platform.lanes(self.dtype, full, vlen), variant.template.reads
        return self.operator.reference.kernel_grid(self.dtype, full, lanes, reads, masked, self.seed.stream(0))

    def measure(self, trial: Trial, prepared: Prepared) -> Measured:
        """Verifies on the quick grid, then measures. A kernel that is found wrong is never measured.

        A board that stays away is no fault of the candidate: LOST.
        """
        clock = _Clock(prepared.seconds)
        try:
            with self.target.one() as target:
                own = self if target is self.target else replace(self, target=target, specialised={})
                return replace(own._for(trial)._measure(trial, prepared, clock), text=prepared.text)
        except BoardError as error:
            return Measured(Outcome(Kind.LOST, "measure", error.message), seconds=clock.lap("measure"))

    def _measure(self, trial: Trial, prepared: Prepared, clock: _Clock) -> Measured:
        variant = trial.variant
        full = instantiate.defaults(self.operator, self.target.platform, self.dtype, variant.point)
        if self.target.simulated:
            return self._score(trial, functools.partial(self._pretended, full), clock)
        vlens = self.target.verify_vlens if self.stage is Stage.MICRO else self.target.vlens
        alone = {vlen: self._kernel_cases(variant, vlen) for vlen in vlens}
        subject = Subject(
            self.target.runner,
            prepared.program,
            entry=ITS_TILES if alone[vlens[0]] else OPERATOR,
            workspace=functools.partial(self._workspace, variant, full),
            timeout_s=self.call_timeout_s,
            more=self._more(full),
            compute=self._formats.compute,
        )
        platform = self.target.platform
        tiles = {vlen: instantiate.tile(self.operator, platform, variant.kernel, vlen) for vlen in vlens}
        # micro-kernels are many, and those that go on are verified at every VLEN with their blockings
        cases = (grid.dealt if self.stage is Stage.MICRO else grid.quick)(self.operator, self.dtype, tiles)
        if alone[vlens[0]]:
            cases = grid.in_turn(lambda vlen, _: alone[vlen], vlens)
        judged = grid.outcome(grid.verify(self.operator, subject, cases, vlens, self.seed))
        clock.lap("verify")
        if not judged.ok:
            return Measured(judged, seconds=clock.seconds)
        return self._score(trial, functools.partial(self._costs, variant, prepared, full), clock)

    def _score(
        self, trial: Trial, costs: Callable[[Sequence[Problem]], Mapping[str, Samples] | Outcome], clock: _Clock
    ) -> Measured:
        """Of the trial's problems, halt by halt of its race."""
        problems = self._problems(trial.variant)
        work = {p.label: float(self.operator.reference.work(p)) for p in problems}
        found: dict[str, Samples] = {}
        fell: Rung | None = None
        for rung in (*trial.race, None):
            more = costs(problems[len(found) : rung.problems if rung else None])
            if isinstance(more, Outcome):
                return Measured(replace(more, where=more.where or "measure"), seconds=clock.lap("measure"))
            found |= more
            if rung is not None and not race.goes_on(rung, found, work):
                fell = rung
                break
        score = Score(race.score(found, work, fell), found)
        return Measured(Outcome(Kind.OK, "measure"), score, clock.lap("measure"))

    def _pretended(self, full: Point, problems: Sequence[Problem]) -> Mapping[str, Samples] | Outcome:
        found: dict[str, Samples] = {}
        for problem in problems:
            outcome, samples = self.target.simulate(full, problem.label, float(self.operator.reference.work(problem)))
            if samples is None:
                return outcome
            found[problem.label] = samples
        return found

    def _costs(
        self, variant: Variant, prepared: Prepared, full: Point, problems: Sequence[Problem]
    ) -> Mapping[str, Samples] | Outcome:
        entry = MICRO_KERNEL if self.stage is Stage.MICRO else OPERATOR
        measured = self.target.measure_each(
            lambda vlen: MeasureRequest(
                prepared.program,
                [self._call(problem, variant, full, vlen) for problem in problems],
                [entry],
                vlen=vlen,
                warm=[warming_calls(float(self.operator.reference.work(problem))) for problem in problems],
                judge=lambda number, left: self._judge(problems[number], variant, full, vlen, left),
            )
        )
        if isinstance(measured, Outcome):
            return measured
        told = self._impossible(problems, variant, measured)
        return told or {p.label: combine(by_vlen) for p, by_vlen in zip(problems, measured, strict=True)}

    def _impossible(
        self, problems: Sequence[Problem], variant: Variant, measured: Sequence[Mapping[int, Samples]]
    ) -> Outcome | None:
        """The first figure that cannot be."""
        for problem, by_vlen in zip(problems, measured, strict=True):
            for vlen, samples in by_vlen.items():
                if self.stage is Stage.MICRO:  # it grows as the vectors do
                    problem = micro_problem(self.operator, self.target.platform, variant, vlen)
                told = self.roof.impossible(self.operator, problem, samples, vlen)
                if told is not None:
                    return told
        return None

    def _judge(self, problem: Problem, variant: Variant, full: Point, vlen: int, left: tuple[Left, ...]) -> Outcome:
        """Of what timed calls left. A micro-kernel reads operands as packing leaves them, which no oracle does."""
        if self.stage is Stage.MICRO:
            return consistent(left)
        return self.answers.judge_all(problem, self._call(problem, variant, full, vlen), left)

    def _problems(self, variant: Variant) -> tuple[Problem, ...]:
        """The blocking stage's problems, or the one the operator gives its micro-kernel at this point."""
        if self.stage is not Stage.MICRO:
            return self.problems
        return (micro_problem(self.operator, self.target.platform, variant, 0),)

    def _call(self, problem: Problem, variant: Variant, full: Point, vlen: int) -> Call:
        if self.stage is Stage.MICRO:
            problem = micro_problem(self.operator, self.target.platform, variant, vlen)
        with self._making:  # the numbers are the same for all candidates, and making them takes as long as measuring
            call = self.inputs.get(problem.label) or self._input(problem)
            self.inputs[problem.label] = call
        elements = self._workspace(variant, full, problem, vlen)
        scratch = NUMBERS[self._formats.compute].poison(elements, self.seed.stream(2))
        free = (Buffer("workspace", Access.SCRATCH, scratch),) if elements else ()
        return replace(call, dims=(*call.dims, *self._more(full)), buffers=(*call.buffers, *free))

    def _input(self, problem: Problem) -> Call:
        """A measured call without workspace."""
        call, reference = measured_call(self.operator, problem, self.seed, 0), self.operator.reference
        if not self.target.deterministic:
            call = reference.alternated(problem, call, self.seed.stream(4))
        elif self.stage is not Stage.MICRO:  # whose product is none of these operands
            call = reference.counted(problem, call, self.seed.stream(4))
        if self.stage is Stage.MICRO and self._formats.widened:
            call = reference.packed_operands(call, self._formats.compute, self.seed.stream(2))
        return call

    @property
    def _formats(self) -> Formats:
        return self.target.platform.formats(self.dtype)

    def _more(self, full: Point) -> tuple[int, ...]:
        """What a candidate takes with each call."""
        return tuple(int(full[name]) for name in self.operator.runtime)

    def _workspace(self, variant: Variant, full: Point, problem: Problem, vlen: int) -> int:
        lanes = self.target.platform.lanes(self.dtype, full, vlen)
        return self.operator.reference.workspace(problem, {**full, **_reads(variant)}, lanes, self._formats.group)


def _reads(variant: Variant) -> dict[str, str]:
    """How the template walks its operands, under the names that expressions of the operator use."""
    return {f"reads_{name}": how for name, how in variant.template.reads.items()}


def micro_problem(operator: Operator, platform: Platform, variant: Variant, vlen: int) -> Problem:
    """The first stage's problem of a variant at a VLEN (bits; 0: the platform's first)."""
    dtype = variant.kernel.dtype
    full = instantiate.defaults(operator, platform, dtype, variant.point)
    names = {
        **instantiate.facts(platform, dtype, full),
        **full,
        **_reads(variant),
        "lanes": platform.lanes(dtype, full, vlen),
    }
    dims = {name: evaluate(text, names) for name, text in operator.micro.items()}
    return operator.reference.problem(dtype, dims, operator.micro_layout)


def measured_call(operator: Operator, problem: Problem, seed: Seed, workspace: int) -> Call:
    """The call that is measured: normal inputs, operands page-aligned at their start."""
    return operator.reference.call(problem, seed.stream(2), "normal", Placement.START, workspace)


class _Clock:
    """Seconds by stage of one trial."""

    def __init__(self, seconds: Mapping[str, float] | None = None) -> None:
        self.seconds: dict[str, float] = dict(seconds or {})
        self._last = time.monotonic()

    def lap(self, stage: str) -> dict[str, float]:
        now = time.monotonic()
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + now - self._last, 4)
        self._last = now
        return self.seconds
