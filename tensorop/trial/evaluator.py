"""The two steps of one trial: build, then verify and measure. A failure is an outcome, never an exception."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path

from tensorop import settings
from tensorop.author import offline
from tensorop.errors import BoardError, SpecError
from tensorop.measure import hot_loop
from tensorop.measure.request import MeasureRequest
from tensorop.measure.samples import combine
from tensorop.measure.statistics import geomean
from tensorop.model.call import Access, Buffer, Call, CallOutput
from tensorop.model.case import Case
from tensorop.model.hot_loop import HotLoop
from tensorop.model.kernel import Artifact, KernelText, Source, Variant
from tensorop.model.number import NUMBERS
from tensorop.model.operator import Operator
from tensorop.model.point import Point
from tensorop.model.primitive import Formats
from tensorop.model.problem import Problem
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Kind, Outcome, Rung, Samples, Score, Stage, Trial, TrialResult
from tensorop.process.clock import StageClock
from tensorop.render import instantiate
from tensorop.render.render import RenderError
from tensorop.render.texts import Texts
from tensorop.runners.protocol import Entry
from tensorop.space import problems
from tensorop.target import Target
from tensorop.trial import race
from tensorop.trial.called import PathCalls
from tensorop.trial.calls import measured_call, micro_problem, tile_refusal, warming_calls, work_refusal
from tensorop.trial.roof import Roof
from tensorop.verify import grid
from tensorop.verify.answers import Answers, consistent
from tensorop.verify.subject import Subject

OPERATOR, MICRO_KERNEL, ITS_TILES, EDGE_TILES = Entry(0), Entry(1), Entry(2), Entry(3)
COMPILE_TIMEOUT_S = 90.0
CALL_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Prepared:
    """A built candidate, ready for verification."""

    program: Path
    seconds: Mapping[str, float]
    text: KernelText | None = None


Costs = Callable[[Sequence[Problem]], Mapping[str, Samples] | Outcome]


@dataclass(frozen=True)
class _Best:
    """The best trial on all problems, and how to measure it again."""

    costs: Costs
    score: Score


@dataclass(frozen=True)
class Evaluator:
    """Builds, verifies and measures the trials of one stage. A failing candidate is an outcome, never an exception."""

    operator: Operator
    target: Target
    run: StageRun
    work: Path  # folder for candidates' files
    texts: Texts = field(default_factory=Texts)  # C of the job's kernels
    # by the id of the variant without run-time parameters
    built: dict[str, tuple[Artifact, KernelText]] = field(default_factory=dict)
    inputs: dict[str, Call] = field(default_factory=dict)  # problem -> measured call, without workspace
    call_timeout_s: float = field(default_factory=lambda: CALL_TIMEOUT_S)  # time limit of one verified call
    verified: set[Path] = field(default_factory=set)  # programs of micro-kernels alone whose tiles passed
    best: dict[int, _Best] = field(default_factory=dict)  # number of the machine -> its best trial, on a clock
    specialised: dict[int, Evaluator] = field(default_factory=dict)  # VLEN -> evaluator of kernels for that VLEN alone
    known: Answers | None = None  # oracle's results for the measured calls of the run's seed; None: computed here
    _making: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    @functools.cached_property
    def roof(self) -> Roof:
        return Roof(self.target)

    @functools.cached_property
    def answers(self) -> Answers:
        return self.known or Answers(self.operator.reference)

    @functools.cached_property
    def course(self) -> race.Course:
        """The stage's problems, by class."""
        return self.course_of(self.run.problems)

    def course_of(self, found: Sequence[Problem]) -> race.Course:
        """Some problems, by class."""
        work = {one.label: float(self.operator.reference.work(one)) for one in found}
        return race.Course(work, problems.classes(self.operator, found), dict(self.run.shares), dict(self.run.weights))

    @property
    def _micro(self) -> bool:
        """Whether this stage measures micro-kernels alone."""
        return self.run.stage is Stage.MICRO

    def micro_problem(self, variant: Variant, vlen: int) -> Problem:
        return micro_problem(self.operator, self.target.platform, variant, vlen)

    def at(self, variant: Variant) -> Evaluator:
        """The evaluator of kernels for the variant's VLEN."""
        vlen = variant.kernel.vlen
        return self.specialised.setdefault(vlen, replace(self, target=self.target.at(vlen))) if vlen else self

    def prepare(self, trial: Trial) -> Prepared | TrialResult:
        """Renders, gates and builds; called from several threads at once."""
        return self.at(trial.variant).build(trial.variant)

    def build(self, variant: Variant, flags: tuple[str, ...] = ()) -> Prepared | TrialResult:
        """As `prepare`, of a variant for this evaluator's VLENs. flags: further ones for the compiler."""
        clock = StageClock()
        if self.target.simulated:
            return Prepared(Path(), clock.seconds)
        beyond = self.beyond(variant)
        if beyond is not None:
            return TrialResult(beyond, seconds=clock.lap("render"))
        variant = instantiate.as_built(self.operator, self.target.platform, variant)
        name = " ".join((f"{variant.id}{self.run.stage if self._micro else ''}", *flags))
        known = self.built.get(name)
        if known is not None:
            program, text = known
            return Prepared(program.path, clock.seconds, text)
        try:
            made = self._source(variant)
        except RenderError as error:
            return TrialResult(Outcome(Kind.RENDER, "render", error.message), seconds=clock.lap("render"))
        if isinstance(made, Outcome):
            return TrialResult(made, seconds=clock.lap("render"))
        source, text = replace(made[0], flags=(*made[0].flags, *flags)), made[1]
        clock.lap("render")
        built = self.target.build(source, self.objects([variant]), COMPILE_TIMEOUT_S, clock.lap)
        if isinstance(built, Outcome):
            return TrialResult(built, seconds=clock.seconds)
        self.built[name] = built, text
        return Prepared(built.path, clock.seconds, text)

    def objects(self, variants: Iterable[Variant]) -> Path:
        """The folder that keeps the objects and the program of these variants."""
        shared = settings.read().objects
        ours = all(variant.template.author == offline.AUTHOR for variant in variants)
        return shared if shared is not None and ours else self.work

    def beyond(self, variant: Variant) -> Outcome | None:
        """The refusal of a variant that needs too much work to render or to verify; else None."""
        found = tile_refusal(self.operator, self.target, variant)
        if found is None and self._micro:
            problems = (self.micro_problem(variant, vlen) for vlen in self.target.vlens)
            found = next((no for p in problems if (no := work_refusal(self.operator, p)) is not None), None)
        return found

    def _source(self, variant: Variant) -> tuple[Source, KernelText] | Outcome:
        """The C of a candidate around its kernel's text, which the gate has passed. Raises RenderError."""
        platform = self.target.platform
        text = self.texts.kernel(self.operator, platform, variant)
        if isinstance(text, Outcome):
            return text
        # alone, a kernel sees whole vectors only, so its edge kernel need not be compiled
        shown = replace(text, edge="") if self._micro else text
        return instantiate.candidate(self.operator, platform, variant, shown), text

    def full(self, variant: Variant) -> Point:
        """The variant's point with the blocking's defaults."""
        return instantiate.defaults(self.operator, self.target.platform, self.run.dtype, variant.point)

    def kernel_cases(self, variant: Variant, vlen: int, full_tile: bool = False) -> Sequence[Case]:
        """The grid of a micro-kernel alone, for all its tiles or the largest one; empty without such a grid."""
        platform, dtype = self.target.platform, self.run.dtype
        full = self.full(variant)
        masked = platform.primitives_of(dtype, variant.point).masked
        lanes, reads = platform.lanes(dtype, full, vlen), variant.template.reads
        rng = self.run.seed.stream(0)
        return self.operator.reference.kernel_grid(dtype, full, lanes, reads, masked, rng, full_tile)

    def measure(self, trial: Trial, prepared: Prepared, costs: bool = True) -> TrialResult:
        """Verifies on the quick grid, then measures if `costs`. An unreachable board gives LOST."""
        clock = StageClock(prepared.seconds)
        try:
            with self.target.one() as target:
                own = self if target is self.target else replace(self, target=target, specialised={})
                return replace(own.at(trial.variant)._measure(trial, prepared, clock, costs), text=prepared.text)
        except BoardError as error:
            return TrialResult(Outcome(Kind.LOST, "measure", error.message), seconds=clock.lap("measure"))

    def _measure(self, trial: Trial, prepared: Prepared, clock: StageClock, costs: bool) -> TrialResult:
        variant = trial.variant
        if self.target.simulated:
            return self._score(trial, functools.partial(self._pretended, self.full(variant)), clock)
        vlens = self.target.verify_vlens if self._micro else self.target.vlens
        subject = self.subject(variant, prepared.program)
        platform = self.target.platform
        tiles = {vlen: instantiate.tile(self.operator, platform, variant.kernel, vlen) for vlen in vlens}
        # A program is verified at every VLEN with its first blocking. One grid for all VLENs is enough before and after
        # that, since outputs of measured calls are judged at every VLEN too.
        dealt = self._micro or prepared.program in self.verified
        cases = (grid.dealt if dealt else grid.quick)(self.operator, self.run.dtype, tiles)
        judged = self._tiles(variant, prepared.program)
        if judged.ok:
            judged = self._verified(variant, subject, cases, vlens)
        clock.lap("verify")
        if not judged.ok or not costs:
            return TrialResult(judged, seconds=clock.seconds)
        return self._score(trial, functools.partial(self._costs, variant, prepared), clock)

    def path_calls(self, vlens: Sequence[int]) -> PathCalls:
        return PathCalls(self.operator, self.target.platform, self.texts, vlens, self.run.seed)

    def tiles(self, variant: Variant, program: Path, entry: Entry = ITS_TILES) -> Subject:
        """A kernel's tiles, each called alone."""
        in_place = variant.template.name == offline.DIRECT
        return replace(self.subject(variant, program, entry), panels=None if in_place else self.panels)

    def _verified(self, variant: Variant, subject: Subject, cases: grid.Grid, vlens: Sequence[int]) -> Outcome:
        """The verdict on the operator's calls and, for a micro-kernel alone, on the paths of its largest tile."""
        paths = self.path_calls(vlens).largest(variant) if self._micro else {}
        if not any(paths.values()):
            return grid.outcome(grid.verify(self.operator, subject, cases, vlens, self.run.seed))
        tiles = self.tiles(variant, subject.program)
        reference, seed = self.operator.reference, self.run.seed
        for vlen in vlens:
            given = [(subject, cases(vlen, seed)), *([(tiles, of)] if (of := paths.get(vlen)) else [])]
            subjects, each = [one for one, _ in given], [of for _, of in given]
            judged = grid.outcome(grid.check_together(reference, subjects, each, vlen, seed))
            if not judged.ok:
                return judged
        return Outcome(Kind.OK, "verify")

    def _tiles(self, variant: Variant, program: Path) -> Outcome:
        """The verdict on the tiles of a shipped kernel.

        A kernel's program is verified once, and all its blockings share the verdict.

        As a micro-kernel alone, such a kernel was verified on its largest tile (company.py).
        """
        passed, vlens = Outcome(Kind.OK, "verify"), self.target.verify_vlens
        if self.run.stage is not Stage.BLOCKING or variant.template.author != offline.AUTHOR:
            return passed
        if program in self.verified or not self.kernel_cases(variant, vlens[0]):
            return passed
        subject = self.subject(variant, program, ITS_TILES)
        cases = grid.in_turn(lambda vlen, _: self.kernel_cases(variant, vlen), vlens)
        judged = grid.outcome(grid.verify(self.operator, subject, cases, vlens, self.run.seed))
        if judged.ok:
            self.verified.add(program)
        return judged

    def subject(self, variant: Variant, program: Path, entry: Entry = OPERATOR) -> Subject:
        """The candidate's session for verification."""
        return Subject(
            self.target.runner,
            program,
            entry=entry,
            workspace=functools.partial(self._workspace, variant),
            timeout_s=self.call_timeout_s,
            more=self._more(variant),
            compute=self._formats.compute,
        )

    def _score(self, trial: Trial, costs: Costs, clock: StageClock) -> TrialResult:
        """Measures the trial's problems, halt by halt of its race."""
        problems = {problem.label: problem for problem in self._problems(trial)}
        course = self.course_of([*problems.values()]) if self._micro or trial.only else self.course
        found: dict[str, Samples] = {}
        going, beyond = frozenset(course.parts(course.work)), dict[str, float]()
        for rung in (*trial.race, None):
            due = course.due(going, found, rung)
            more = costs([problems[name] for name in due]) if due else {}
            if isinstance(more, Outcome):
                return TrialResult(replace(more, where=more.where or "measure"), seconds=clock.lap("measure"))
            found |= more
            if rung is None or not going:
                break
            left = going & self._goes_on(rung, found, [*problems.values()])
            beyond |= {name: factor for name, factor in rung.beyond if name in going - left}
            going = left
        score = Score(course.score(found, beyond), found)
        self._remember(costs, score)
        return TrialResult(Outcome(Kind.OK, "measure"), score, clock.lap("measure"))

    def _goes_on(self, rung: Rung, found: Mapping[str, Samples], measured: Sequence[Problem]) -> frozenset[str]:
        """The classes in which a trial goes on from a halt. On a clock the best trial is measured again before this one
        is dropped from a class, since the machine may be slower now than it was then."""
        going = self.course.goes_on(rung, found)
        best = self.best.get(id(self.target.runner))
        if best is None or going >= self.course.parts(self.course.work).keys():
            return going
        again = best.costs(measured[: rung.problems])
        if isinstance(again, Outcome):
            return going
        slower = geomean(again[name].value / best.score.per_problem[name].value for name in again)
        return self.course.goes_on(rung, found, max(1.0, slower))

    def _remember(self, costs: Costs, score: Score) -> None:
        best, whole = self.best.get(id(self.target.runner)), len(score.per_problem) == len(self.run.problems)
        better = best is None or (score.cost or math.inf) < (best.score.cost or math.inf)
        if not self.target.deterministic and self.run.stage is Stage.BLOCKING and whole and better:
            self.best[id(self.target.runner)] = _Best(costs, score)

    def _pretended(self, full: Point, problems: Sequence[Problem]) -> Mapping[str, Samples] | Outcome:
        found: dict[str, Samples] = {}
        for problem in problems:
            outcome, samples = self.target.simulate(full, problem.label, float(self.operator.reference.work(problem)))
            if samples is None:
                return outcome
            found[problem.label] = samples
        return found

    def request(
        self, program: Path, asked: Sequence[tuple[Problem, Variant]], entries: Sequence[Entry], vlen: int
    ) -> MeasureRequest:
        """What measures the call of each problem for its variant. entries: one, or one for each call"""
        return MeasureRequest(
            program,
            [self.call(problem, variant, vlen) for problem, variant in asked],
            entries,
            vlen=vlen,
            warm=[warming_calls(float(self.operator.reference.work(problem))) for problem, _ in asked],
            judge=lambda number, left: self.judge(*asked[number], vlen, left),
        )

    def _costs(
        self, variant: Variant, prepared: Prepared, problems: Sequence[Problem]
    ) -> Mapping[str, Samples] | Outcome:
        asked = [(problem, variant) for problem in problems]
        entries = [MICRO_KERNEL if self._micro else OPERATOR]
        measured = self.target.measure_each(lambda vlen: self.request(prepared.program, asked, entries, vlen))
        if isinstance(measured, Outcome):
            return measured
        impossible = self.impossible(problems, variant, measured)
        return impossible or {p.label: combine(by_vlen) for p, by_vlen in zip(problems, measured, strict=True)}

    def hot_loop(self, trial: Trial, prepared: Prepared, entry: Entry = MICRO_KERNEL) -> HotLoop | None:
        """The loop of a micro-kernel that takes most of its time at the first VLEN; None if it is unknown.

        A clock does not count how often instructions run; so on a clock it is the innermost loop, with a static
        analysis. trial: a trial that passed; entry: of the micro-kernel
        """
        if not self.target.deterministic:
            return hot_loop.analysed_loop(prepared.program, self.target.platform.arch, self.target.llvm_cpu)
        vlen = self.target.vlens[0]
        asked = [(self.micro_problem(trial.variant, vlen), trial.variant)]
        request = replace(self.request(prepared.program, asked, [entry], vlen), judge=None, profile=True)
        found = self.target.measure(request)
        return None if isinstance(found, Outcome) else hot_loop.hot_loop(prepared.program, found[0].profile)

    def impossible(
        self, problems: Sequence[Problem], variant: Variant, measured: Sequence[Mapping[int, Samples]]
    ) -> Outcome | None:
        """The first cost below the lower bound, as an outcome."""
        for problem, by_vlen in zip(problems, measured, strict=True):
            for vlen, samples in by_vlen.items():
                if self._micro:  # the problem grows with the vectors
                    problem = self.micro_problem(variant, vlen)
                outcome = self.roof.impossible(self.operator, problem, samples, vlen)
                if outcome is not None:
                    return outcome
        return None

    def judge(self, problem: Problem, variant: Variant, vlen: int, left: tuple[CallOutput, ...]) -> Outcome:
        """Checks outputs of timed calls; not of a micro-kernel alone, since the oracle reads no packed operands."""
        if self._micro:
            return consistent(left)
        return self.answers.judge_all(problem, self.call(problem, variant, vlen), left)

    def _problems(self, trial: Trial) -> tuple[Problem, ...]:
        """The trial's part of the stage's problems, or the micro-kernel's own problem at this point."""
        if self._micro:
            return (self.micro_problem(trial.variant, 0),)
        return tuple(one for one in self.run.problems if not trial.only or one.label in trial.only)

    def call(self, problem: Problem, variant: Variant, vlen: int) -> Call:
        if self._micro:
            problem = self.micro_problem(variant, vlen)
        with self._making:  # all candidates share the inputs, which take as long to make as to measure
            call = self.inputs.get(problem.label) or self._input(problem)
            self.inputs[problem.label] = call
        elements = self._workspace(variant, problem, vlen)
        scratch = NUMBERS[self._formats.compute].poison(elements, self.run.seed.stream(2))
        free = (Buffer("workspace", Access.SCRATCH, scratch),) if elements else ()
        return replace(call, dims=(*call.dims, *self._more(variant)), buffers=(*call.buffers, *free))

    def _input(self, problem: Problem) -> Call:
        """The measured call of a problem, without workspace."""
        call, reference = measured_call(self.operator, problem, self.run.seed, 0), self.operator.reference
        if not self.target.deterministic:
            call = reference.alternated(problem, call, self.run.seed.stream(4))
        elif not self._micro:  # its expected output is not computed from these operands
            call = reference.counted(problem, call, self.run.seed.stream(4))
        if self._micro and self._formats.widened:
            call = reference.packed_operands(call, self._formats.compute, self.run.seed.stream(2))
        return call

    @property
    def _formats(self) -> Formats:
        return self.target.platform.formats(self.run.dtype)

    @property
    def panels(self) -> Callable[[Problem, Call], Call] | None:
        """Makes the operands of a kernel alone as packing leaves them; None if packing does not change their format."""
        formats = self._formats
        if not formats.widened:
            return None
        return functools.partial(self.operator.reference.panels, compute=formats.compute, group=formats.group)

    def _more(self, variant: Variant) -> tuple[int, ...]:
        """Run-time parameters of a candidate's calls."""
        full = self.full(variant)
        return tuple(int(full[name]) for name in self.operator.runtime)

    def _workspace(self, variant: Variant, problem: Problem, vlen: int) -> int:
        full = self.full(variant)
        lanes = self.target.platform.lanes(self.run.dtype, full, vlen)
        facts = {**full, **variant.template.read_facts}
        elements = self.operator.reference.workspace(problem, facts, lanes, self._formats.group)
        if not isinstance(elements, Integral) or elements < 0:
            got = f"method 'workspace': expected a number of elements, got {elements!r:.80}"
            raise SpecError(f"{self.operator.folder / 'reference.py'}: {got}")
        return int(elements)
