"""What the stages of a search share: the job's context, a dtype's problems and budget, and its trials' results."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from tensorop import paths
from tensorop.author import offline
from tensorop.costs.expected import Expectation
from tensorop.model.budget import Budget
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel, KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Finished, Limit, Stage, Trial, TrialResult
from tensorop.model.verdict import Seed
from tensorop.model.winner import StartPoint, WarmStart, Winners
from tensorop.process.stopping import StopRequest
from tensorop.render import instantiate, prior
from tensorop.render.texts import Texts
from tensorop.search.arms import Arm, Remarks, Revise
from tensorop.space import problems, seeds
from tensorop.space.listing import Weights
from tensorop.store.journal import Journal
from tensorop.target import Target
from tensorop.trial import selection
from tensorop.trial.trial import FIRST_S
from tensorop.verify.answers import Answers

EXPECTED, OTHERS = 8, 4  # at most so many first points of a template come from its prior, and from other searches
FEW_STREAMS = 1.15  # a kernel for operands in place costs, on packed ones, at most so many times the least
SHORTLISTED = 8  # micro-kernels that get blockings
NEW = 2  # at least so many micro-kernels get blockings in addition to winners of earlier searches
ADDED_LATER = ("addresses",)  # fields of a platform's records that older journals lack
LITTLE = 1e-3  # seconds; the budget of a stage without time left: it runs its first trials alone


@dataclass(frozen=True)
class Plan:
    """The trials of a stage."""

    arms: Sequence[Arm]
    problems: tuple[Problem, ...]  # problems of a trial; empty: the micro-kernel's own problem
    budget: Budget  # before overruns of other stages are subtracted
    only_first: bool = False  # try the arms' first points and ask no tuner
    first_s: float = FIRST_S  # time limit of a trial until one has passed; slow boards get more
    # makes the arm of a template that is added during the search
    joining: Callable[[KernelTemplate], Arm | None] | None = None
    race: bool = False  # drop candidates that are not among the best on the first, cheapest problems
    shares: Mapping[str, float] = field(default_factory=dict)  # class of problems -> part of all that it has
    expectation: Expectation | None = None  # of the blockings' costs
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # variant id -> labels of problems, if not of all


@dataclass(frozen=True)
class Pass:
    """A part of a search, named in `stages` of operator.yaml. It plans trials, or measures inside the library."""

    name: str
    share: float  # share of the budget that all planning parts of a dtype have together
    activity: str  # what it does, for the progress line
    own_budget: bool = False  # `share` is of a dtype's whole budget, before the planning parts get theirs
    share_by_clock: float | None = None  # in place of `share` where variants are measured side by side in the library
    wanted: Callable[[Target], bool] = lambda target: True  # whether the part is useful on a target
    plan: Callable[[Task], Plan | None] | None = None  # makes the plan; None: nothing to try
    # measures the winners inside their library and writes to the journal
    measure: Callable[[Task, Path, Winners], None] | None = None
    summary: Callable[[Task], str] | None = None  # a line about what `measure` found

    def share_on(self, target: Target) -> float:
        """Its share of the budget on a target."""
        return self.share if target.side_by_side or self.share_by_clock is None else self.share_by_clock


class Crew(Protocol):
    """Other processes that run trials."""

    batch: int  # trials to request at once

    def admit(self, stop: StopRequest) -> Iterator[str]:
        """Checks the workers and yields a line for the user about each result."""

    def __call__(self, run: StageRun, trials: Sequence[Trial], limit: Limit) -> Generator[TrialResult, None, None]:
        """Runs the trials and yields their results in the same order."""


@dataclass(frozen=True)
class JobContext:
    """A job with everything that its options name."""

    job: Job
    operator: Operator
    target: Target
    passes: tuple[Pass, ...]  # the operator's parts of a search, in their order
    templates: tuple[KernelTemplate, ...]  # known from the start
    journal: Journal
    seed: Seed
    work: Path  # folder for candidates' files
    stop: StopRequest = field(default_factory=StopRequest)
    texts: Texts = field(default_factory=Texts)  # C of the job's kernels
    revise: Revise | None = None  # may write further templates during the search
    remarks: Remarks = field(default_factory=Remarks)
    warm: Mapping[str, WarmStart] = field(default_factory=dict)  # dtype -> winners of earlier searches
    crew: Crew | None = None  # runs the trials; None: this process does
    answers: Answers | None = None  # the oracle's results for the job's measured calls; None: each part computes them

    def task(self, dtype: str) -> Task:
        return Task(**vars(self), dtype=dtype)


@dataclass(frozen=True)
class Task(JobContext):
    """One dtype's part of a job."""

    dtype: str = field(kw_only=True)

    # results of its trials

    def passed(self, stage: Stage, arms: Container[str] | None = None) -> list[Finished]:
        """Passed trials of a stage. arms: only trials of these arms."""
        ended = self.journal.history.ended((stage, self.dtype, 0))
        return [f for f in ended if f.outcome.ok and (arms is None or f.trial.arm in arms)]

    def tried(self, kernels: Container[str]) -> dict[str, Finished]:
        """Variant id -> passed trial of a blocking of these kernels, with its results as a finalist."""
        ended = {f.trial.variant.id: f for f in self.passed(Stage.BLOCKING, kernels)}
        for again in self.passed(Stage.FINALISTS, kernels):
            ended[again.trial.variant.id] = ended[again.trial.variant.id].with_figures(again)
        return ended

    @cached_property
    def shortlist(self) -> dict[str, Kernel]:
        """Kernel id -> micro-kernel that gets blockings. Read it only after the stage `micro` has ended."""
        return _shortlist(self)

    @cached_property
    def in_place(self) -> str:
        """Id of the micro-kernel that reads fewest streams of an operand in place; empty if no tunable counts them.

        It is among those of the best's template that cost little more. Read it only after the stage `micro` has ended.
        """
        ended = [(one.score.cost, one.trial.variant.kernel) for one in self.passed(Stage.MICRO) if one.score.cost]
        ended.sort(key=lambda one: one[0])
        name = self.operator.streams
        found = [
            (kernel.configuration[name], cost, kernel.id)
            for cost, kernel in ended
            if name in kernel.configuration
            and kernel.template == ended[0][1].template
            and cost <= FEW_STREAMS * ended[0][0]
        ]
        return min(found)[2] if found else ""

    # problems and starting points

    @property
    def sure(self) -> tuple[StartPoint, ...]:
        """Winners of earlier searches that are tried even without time left."""
        return self.warm.get(self.dtype, WarmStart()).sure

    def hints(self, template: KernelTemplate) -> tuple[StartPoint, ...]:
        """Further starting points of a template: its seed configurations, its prior, other winners."""
        others = (known for known in self.warm.get(self.dtype, WarmStart()).hints if known.template == template.name)
        return tuple(dict.fromkeys([*self._own(template), *list(others)[:OTHERS]]))

    def _own(self, template: KernelTemplate) -> tuple[StartPoint, ...]:
        if template.digest not in self._firsts:
            platform = self.target.platform
            space = instantiate.micro_space(platform, template, self.dtype)
            points = prior.first(platform, template, self.dtype, space)[:EXPECTED]
            expected = (StartPoint(template.name, point) for point in points)
            self._firsts[template.digest] = (*seeds.own(template, space), *expected)
        return self._firsts[template.digest]

    @cached_property
    def _firsts(self) -> dict[str, tuple[StartPoint, ...]]:
        return {}

    @property
    def known_templates(self) -> tuple[KernelTemplate, ...]:
        """The job's templates, then those that were added during the search of earlier dtypes."""
        dtypes, history = self.job.dtypes, self.journal.history
        late = [history.joined((Stage.MICRO, dtype, 0)) for dtype in dtypes[: dtypes.index(self.dtype)]]
        return (*self.templates, *(template for of_dtype in late for template, _ in of_dtype))

    @cached_property
    def direct(self) -> KernelTemplate | None:
        """The template for the smallest problems; None if there is none or the platform lacks a primitive."""
        if not self.operator.direct or Stage.SMALLEST not in self.operator.stages:
            return None
        template = offline.direct(self.operator.folder, self.operator.name)
        missing = template and instantiate.missing_primitives(self.target.platform, template, self.dtype)
        return None if missing else template

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Problems of the search: the job's shapes; for a suite also the operator's probes."""
        job, operator, budgets = self.job, self.operator, self.target.budgets
        suite = job.suite in operator.suites
        shapes = tuple(dict.fromkeys((*job.shapes_of(self.dtype), *(operator.probes if suite else ()))))
        if operator.direct and self.direct is not None:  # the direct variant always serves the smallest
            always = operator.direct.always
            shapes = tuple(s for s in shapes if problems.work(operator, self.dtype, s) > always) or shapes
        found = problems.for_search(operator, self.dtype, shapes, budgets, job.listed, self.weigh)
        on_a_clock = operator.clock_probes if suite and budgets.clock_probes else ()
        return tuple(dict.fromkeys((*found, *problems.distinct(operator, self.dtype, on_a_clock))))

    @cached_property
    def sketch(self) -> tuple[Problem, ...]:
        """Problems of blocking trials. Finalists get the others: under a model in trials, on a clock in a library."""
        later = Stage.FINALISTS in self.operator.stages or not self.target.side_by_side
        beyond = {*self.operator.clock_probes} - {*self.job.shapes}  # they take longest
        within = [one for one in self.problems if self.operator.shapes.of(one.sizes) not in beyond]
        return problems.sketch(self.operator, within, self.target.budgets, self.weigh) if later else self.problems

    @cached_property
    def weigh(self) -> Weights:
        """The weight of a problem among those of its class."""
        return Weights(self.operator, self.dtype, self.job.listed, self.target.budgets)

    @cached_property
    def weights(self) -> dict[str, float]:
        """Label of a problem -> its weight; empty without files of calls."""
        every = (*self.problems, *self.final_problems, *self.small_problems) if self.job.listed.calls else ()
        return {problem.label: self.weigh(problem) for problem in every}

    @cached_property
    def expectation(self) -> Expectation:
        """What blockings should cost on all problems, also on those that their trials do not measure."""
        every = tuple(dict.fromkeys((*self.problems, *self.final_problems)))
        return Expectation(self.operator, self.target.platform, every, self.target.vlens)

    @cached_property
    def classes(self) -> dict[str, str]:
        """Label of a problem -> its class."""
        return problems.classes(self.operator, tuple(dict.fromkeys((*self.problems, *self.final_problems))))

    def expected_costs(self, tried: Sequence[Finished]) -> dict[str, dict[tuple[str, int], float]]:
        """Variant id -> costs of a tried blocking by problem and VLEN: expected ones where its trial measured none."""
        vlens = self.target.vlens
        return {
            one.trial.variant.id: {**self.expectation.unmeasured(one, tried), **selection.by_vlen(one, vlens)}
            for one in tried
        }

    @cached_property
    def final_problems(self) -> tuple[Problem, ...]:
        """Problems of the finalists' trials; a longer budget gives more of them."""
        if Stage.FINALISTS not in self.operator.stages:
            return ()
        left = [one for one in self.problems if one not in self.sketch] if self.target.side_by_side else []
        seconds = self.budget(Stage.FINALISTS).seconds
        each = None if seconds is None else seconds / len(self.target.vlens)
        wanted = problems.asked(self.operator, self.dtype, self.job.shapes, self.job.listed)
        return problems.final(self.operator, left, wanted, self.target.budgets, each, self.weigh)

    @cached_property
    def small_problems(self) -> tuple[Problem, ...]:
        """Problems of the direct variant's trials."""
        operator = self.operator
        if operator.direct is None:
            return ()
        own = operator.suites[operator.direct.suite]
        most = max(problems.work(operator, self.dtype, shape) for shape in own)
        shapes = dict.fromkeys((*own, *self.job.shapes_of(self.dtype)))
        small = tuple(shape for shape in shapes if problems.work(operator, self.dtype, shape) <= most)
        return problems.for_search(operator, self.dtype, small, self.target.budgets, self.job.listed, self.weigh)

    # budgets

    def share(self, share: float) -> Budget:
        """A share of this dtype's part of the job's budget."""
        return Budget(self.job.budget_s, self.job.trials).share(share / len(self.job.dtypes))

    @property
    def sharing(self) -> dict[str, float]:
        """Part -> share, of the parts that share the budget."""
        return {one.name: one.share for one in self.passes if one.plan and not one.own_budget}

    def budget(self, *names: str) -> Budget:
        """The budget of the named parts.

        Parts with a budget of their own are subtracted first: those that plan from the trials, all of them from the
        seconds.
        """
        share = sum(self.sharing.get(name, 0.0) for name in names) / sum(self.sharing.values())
        others = [one for one in self.passes if one.own_budget and one.wanted(self.target)]
        of_trials = 1.0 - sum(one.share_on(self.target) for one in others if one.plan)
        in_seconds = 1.0 - sum(one.share_on(self.target) for one in others)
        return replace(self.share(share * of_trials), seconds=self.share(share * in_seconds).seconds)

    def left(self, budget: Budget, stage: Stage) -> Budget:
        """A stage's budget minus overruns of earlier dtypes and of this dtype's other stages.

        Dtypes that follow share an overrun equally.
        """
        if budget.seconds is None or self.job.budget_s is None:
            return budget
        dtypes, history = self.job.dtypes, self.journal.history
        here = dtypes.index(self.dtype)
        before = sum(history.spent((other, name, 0)) for name in dtypes[:here] for other in Stage)
        beside = sum(history.spent((other, self.dtype, 0)) for other in Stage if other is not stage)
        usual = self.job.budget_s / len(dtypes)
        part = min(usual, (self.job.budget_s - before) / (len(dtypes) - here))
        return replace(budget, seconds=max(LITTLE, min(budget.seconds * part / usual, part - beside)))


def _shortlist(task: Task) -> dict[str, Kernel]:
    """The micro-kernels that get blockings.

    First come winners of earlier searches, then the best kernel of each template and the one for operands in place.
    Then, for each value of a template's tunables that do not show in a kernel alone, the best kernel and the best of
    its starting points. Then other tiles, the best at each VLEN in turn.
    """
    late = [template for template, _ in task.journal.history.joined((Stage.MICRO, task.dtype, 0))]
    arms = {Kernel(template, task.dtype).id for template in (*task.known_templates, *late)}
    ended = [f for f in task.passed(Stage.MICRO, arms) if f.score.cost is not None]
    ranked = [f.trial.variant.kernel for f in sorted(ended, key=lambda f: f.score.cost or 0.0)]
    chosen_before = {one.template for one in task.sure}  # their winners have settled those tunables

    def kind(kernel: Kernel) -> tuple[int | str, ...]:
        name = kernel.template.name
        return (name, *(() if name in chosen_before else seeds.unseen(kernel.template, kernel.configuration)))

    def shape(kernel: Kernel) -> tuple[int | str, ...]:
        sizes = instantiate.tile(task.operator, task.target.platform, kernel, task.target.vlens[0])
        return (*kind(kernel), *task.operator.reference.same(sizes))

    best_of: dict[tuple[int | str, ...], Kernel] = {}
    begun_with: dict[tuple[int | str, ...], Kernel] = {}
    hints = {kernel.template.digest: task.hints(kernel.template) for kernel in ranked}
    for kernel in ranked:
        best_of.setdefault(kind(kernel), kernel)
        if any(seeds.agrees(one, kernel) for one in hints[kernel.template.digest]):
            begun_with.setdefault(kind(kernel), kernel)
    named = [begun_with.get(of_kind, best) for of_kind, best in best_of.items()]
    known = [next((kernel for kernel in ranked if seeds.agrees(one, kernel)), None) for one in task.sure]
    chosen = {kernel.id: kernel for kernel in known if kernel is not None}
    most = max(SHORTLISTED, len(chosen) + NEW)
    shapes = {shape(kernel) for kernel in chosen.values()}
    of_templates: dict[str, Kernel] = {}
    for kernel in best_of.values():
        of_templates.setdefault(kernel.template.name, kernel)
    in_place = [kernel for kernel in ranked if kernel.id == task.in_place]
    for kernel in [*of_templates.values(), *in_place, *best_of.values(), *named, *_in_turn(ended, task.target.vlens)]:
        if shape(kernel) not in shapes and len(chosen) < most:
            shapes.add(shape(kernel))
            chosen[kernel.id] = kernel
    return chosen


def _in_turn(ended: Sequence[Finished], vlens: Sequence[int]) -> list[Kernel]:
    """All kernels: the best at each VLEN, then the second best at each, and so on."""

    def ranked(vlen: int) -> list[Finished]:
        def cost(finished: Finished) -> float:  # up to a common factor: the problem grows with the vectors
            (samples,) = finished.score.per_problem.values()
            return (finished.score.cost or 0.0) * samples.at(vlen) / samples.value

        return sorted(ended, key=cost)

    found = [f.trial.variant.kernel for at_once in zip(*map(ranked, vlens), strict=True) for f in at_once]
    return list({kernel.id: kernel for kernel in found}.values())


def digest(operator: Operator, target: Target) -> str:
    """Digest of the platform, its primitives and the operator's files, on which the result of each trial depends."""
    platform = asdict(target.platform, dict_factory=as_first_written)
    # the order of a set of texts differs from process to process
    parts = [json.dumps([platform, target.name], sort_keys=True, default=sorted).encode()]
    whole = any((folder / instantiate.CANDIDATE).is_file() for folder in operator.templates)
    folders = operator.templates if whole else operator.parts
    if not target.measures:
        folders = tuple(folder / "device" for folder in (*operator.templates, paths.native_dir()))
    files = [path for folder in folders for path in sorted(folder.glob("*")) if path.is_file()]
    parts += [path.read_bytes() for path in files]
    return sha256(b"\0".join(parts)).hexdigest()[:16]


def as_first_written(fields: list[tuple[str, object]]) -> dict[str, object]:
    """A record without empty fields of ADDED_LATER, so that older journals keep their keys."""
    return {name: value for name, value in fields if value or name not in ADDED_LATER}
