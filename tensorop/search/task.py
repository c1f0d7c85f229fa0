"""What the stages of a search share: the job's context, one dtype's problems and budget, and what its trials say."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from tensorop.author import offline
from tensorop.model.budget import Budget
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel, KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Finished, Stage, Trial, TrialResult
from tensorop.model.verdict import Seed
from tensorop.model.winner import StartPoint, WarmStart, Winners
from tensorop.process.stopping import StopRequest
from tensorop.render import instantiate, prior
from tensorop.render.texts import Texts
from tensorop.search.arms import Arm, Revise
from tensorop.space import problems, seeds
from tensorop.store.journal import Journal
from tensorop.target import Target
from tensorop.trial.trial import FIRST_S, Limit

EXPECTED, OTHERS = 8, 4  # points of a template that a search begins with: by its prior, and found elsewhere
SHORTLISTED = 6  # micro-kernels that go on to whole problems
NEW = 2  # of these at least, beside those that earlier searches found
ADDED_LATER = ("addresses",)  # of records that a platform holds
LITTLE = 1e-3  # seconds: a stage that others left no time has its first trials alone


@dataclass(frozen=True)
class Plan:
    """What a stage tries."""

    arms: Sequence[Arm]
    problems: tuple[Problem, ...]  # that trials are measured on; a micro-kernel alone has one of its own
    budget: Budget  # before what other stages took beyond theirs is taken off
    only_first: bool = False  # the arms' first points are all there is to try; else the job's tuner goes on
    first_s: float = FIRST_S  # that a trial may take while none has passed; a slow board has more
    joining: Callable[[KernelTemplate], Arm | None] | None = None  # the arm of a template that comes late
    race: bool = False  # who is not among the best on the first problems, the cheapest, is not measured on the others


@dataclass(frozen=True)
class Pass:
    """A part of a search, named in `stages` of operator.yaml: it plans trials, or measures in the library they make."""

    name: str
    share: float  # of the budget of a dtype that the plans have together
    activity: str = ""  # what `measure` does, in words
    own_budget: bool = False  # `share` is of the whole budget of a dtype, before the plans have theirs
    wanted: Callable[[Target], bool] = lambda target: True  # whether a target leaves it anything to do
    plan: Callable[[Task], Plan | None] | None = None  # what to try; None: nothing
    # the winners inside their library; what it finds goes to the journal
    measure: Callable[[Task, Path, Winners], None] | None = None
    summary: Callable[[Task], str] | None = None  # of what `measure` found, in words


class Crew(Protocol):
    """Other processes that carry trials out."""

    batch: int  # trials to ask for at once

    def admit(self, stop: StopRequest) -> Iterator[str]:
        """Settles who takes part, and yields what there is to say of that."""

    def __call__(self, run: StageRun, trials: Sequence[Trial], limit: Limit) -> Generator[TrialResult, None, None]:
        """What each comes to, in their order."""


@dataclass(frozen=True)
class JobContext:
    """A job with everything that it names."""

    job: Job
    operator: Operator
    target: Target
    passes: tuple[Pass, ...]  # those of the operator, in their order
    templates: tuple[KernelTemplate, ...]  # that there are from the start
    journal: Journal
    seed: Seed
    work: Path  # folder for candidates
    stop: StopRequest = field(default_factory=StopRequest)
    texts: Texts = field(default_factory=Texts)  # the job's kernels
    revise: Revise | None = None  # what may bring further templates
    warm: Mapping[str, WarmStart] = field(default_factory=dict)  # by dtype, what earlier searches found
    crew: Crew | None = None  # who carries trials out; None: this process

    def task(self, dtype: str) -> Task:
        return Task(**vars(self), dtype=dtype)


@dataclass(frozen=True)
class Task(JobContext):
    """One dtype's part of a job."""

    dtype: str = field(kw_only=True)

    # what its trials say

    def passed(self, stage: Stage, arms: Container[str] | None = None) -> list[Finished]:
        """Trials of a stage that passed, of these arms where they are named."""
        ended = self.journal.history.ended((stage, self.dtype, 0))
        return [f for f in ended if f.outcome.ok and (arms is None or f.trial.arm in arms)]

    def tried(self, kernels: Container[str]) -> dict[str, Finished]:
        """By id, the trial of every blocking of these kernels that passed; what one on large problems adds is among its
        figures."""
        ended = {f.trial.variant.id: f for f in self.passed(Stage.BLOCKING, kernels)}
        for again in self.passed(Stage.LARGE, kernels):
            ended[again.trial.variant.id] = ended[again.trial.variant.id].with_figures(again)
        return ended

    @cached_property
    def shortlist(self) -> dict[str, Kernel]:
        """By id, the micro-kernels that go on; to be asked for once the stage `micro` has ended."""
        return _shortlist(self)

    # what it is tried on, and from where

    @property
    def sure(self) -> tuple[StartPoint, ...]:
        """Variants that earlier searches found, which are tried however little time there is."""
        return self.warm.get(self.dtype, WarmStart()).sure

    def hints(self, template: KernelTemplate) -> tuple[StartPoint, ...]:
        """What else a template's search begins with: what it names itself, what its prior expects, other winners."""
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
        """Those of the job, then those that came late with kernels of earlier dtypes, with which this one begins."""
        dtypes, history = self.job.dtypes, self.journal.history
        late = [history.joined((Stage.MICRO, dtype, 0)) for dtype in dtypes[: dtypes.index(self.dtype)]]
        return (*self.templates, *(template for of_dtype in late for template, _ in of_dtype))

    @cached_property
    def direct(self) -> KernelTemplate | None:
        """The template that serves the smallest problems; None where there is none, or the platform lacks a
        primitive."""
        if not self.operator.direct or Stage.SMALLEST not in self.operator.stages:
            return None
        template = offline.direct(self.operator.folder, self.operator.name)
        missing = template and instantiate.missing_primitives(self.target.platform, template, self.dtype)
        return None if missing else template

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """What blockings are tried on: the job's shapes and, beside a suite, the operator's probes."""
        job, operator, budgets = self.job, self.operator, self.target.budgets
        suite = job.suite in operator.suites
        shapes = tuple(dict.fromkeys((*job.shapes, *(operator.probes if suite else ()))))
        if operator.direct and self.direct is not None:  # the smallest are not the dispatch's
            always = operator.direct.always
            shapes = tuple(s for s in shapes if problems.work(operator, self.dtype, s) > always) or shapes
        found = problems.for_search(operator, self.dtype, shapes, budgets)
        on_a_clock = operator.clock_probes if suite and budgets.clock_probes else ()
        beyond_caches = (problems.of(operator, self.dtype, shape) for shape in on_a_clock)  # large, so in one layout
        return (*found, *(problem for problem in beyond_caches if problem not in found))

    @cached_property
    def large_problems(self) -> tuple[Problem, ...]:
        """Some that are too large for every trial: the more, the longer the best of these have."""
        if Stage.LARGE not in self.operator.stages:
            return ()
        seconds = self.budget(Stage.LARGE).seconds
        return problems.large(self.operator, self.dtype, self.job.shapes, self.target.budgets, seconds)

    @cached_property
    def small_problems(self) -> tuple[Problem, ...]:
        """What the direct variant is tried on."""
        operator = self.operator
        if operator.direct is None:
            return ()
        own = operator.suites[operator.direct.suite]
        most = max(problems.work(operator, self.dtype, shape) for shape in own)
        shapes = dict.fromkeys((*own, *self.job.shapes))
        small = tuple(shape for shape in shapes if problems.work(operator, self.dtype, shape) <= most)
        return problems.for_search(operator, self.dtype, small, self.target.budgets)

    # what it may take

    def share(self, share: float) -> Budget:
        """A share of one dtype's part of the budget."""
        return Budget(self.job.budget_s, self.job.trials).share(share / len(self.job.dtypes))

    @property
    def sharing(self) -> dict[str, float]:
        """By name, the shares of the parts whose plans share the budget."""
        return {one.name: one.share for one in self.passes if one.plan and not one.own_budget}

    def budget(self, *names: str) -> Budget:
        """Of parts that share the budget, what these have: less what has its own, of trials what plans have, in seconds
        also what measures in the library."""
        share = sum(self.sharing.get(name, 0.0) for name in names) / sum(self.sharing.values())
        others = [one for one in self.passes if one.own_budget and one.wanted(self.target)]
        of_trials = 1.0 - sum(one.share for one in others if one.plan)
        in_seconds = 1.0 - sum(one.share for one in others)
        return replace(self.share(share * of_trials), seconds=self.share(share * in_seconds).seconds)

    def left(self, budget: Budget, stage: Stage) -> Budget:
        """A stage's budget, less what earlier dtypes and this one's other stages took beyond theirs. Earlier dtypes'
        excess is shared by all that follow."""
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
    """Those that earlier searches found; each template's best and the best of those that it began with, since what a
    template is for may not show alone, for each choice of its unseen tunables; then other tiles, the best of each VLEN
    in turn."""
    late = [template for template, _ in task.journal.history.joined((Stage.MICRO, task.dtype, 0))]
    arms = {Kernel(template, task.dtype).id for template in (*task.known_templates, *late)}
    ended = [f for f in task.passed(Stage.MICRO, arms) if f.score.cost is not None]
    ranked = [f.trial.variant.kernel for f in sorted(ended, key=lambda f: f.score.cost or 0.0)]
    chosen_before = {one.template for one in task.sure}  # whose choices those have made

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
    for kernel in [*best_of.values(), *named, *_in_turn(ended, task.target.vlens)]:
        if shape(kernel) not in shapes and len(chosen) < most:
            shapes.add(shape(kernel))
            chosen[kernel.id] = kernel
    return chosen


def _in_turn(ended: Sequence[Finished], vlens: Sequence[int]) -> list[Kernel]:
    """Each kernel once: the best at each VLEN, then the second best at each, and so on."""

    def ranked(vlen: int) -> list[Finished]:
        def cost(finished: Finished) -> float:  # up to a factor that all share: the problem grows as the vectors do
            (samples,) = finished.score.per_problem.values()
            return (finished.score.cost or 0.0) * samples.at(vlen) / samples.value

        return sorted(ended, key=cost)

    found = [f.trial.variant.kernel for at_once in zip(*map(ranked, vlens), strict=True) for f in at_once]
    return list({kernel.id: kernel for kernel in found}.values())


def digest(operator: Operator, target: Target) -> str:
    """Of everything that is not a template's or a point's and yet makes a trial what it is: platform, primitives,
    templates."""
    platform = asdict(target.platform, dict_factory=as_first_written)
    parts = [json.dumps([platform, target.name], sort_keys=True, default=str).encode()]
    files = [path for folder in operator.templates for path in sorted(folder.iterdir()) if path.is_file()]
    parts += [path.read_bytes() for path in files]
    return sha256(b"\0".join(parts)).hexdigest()[:16]


def as_first_written(fields: list[tuple[str, object]]) -> dict[str, object]:
    """A record without fields that came later and say nothing here: journals from before them go on."""
    return {name: value for name, value in fields if value or name not in ADDED_LATER}
