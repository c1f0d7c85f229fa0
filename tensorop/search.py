"""The two stages of a search: micro-kernels alone, then their blockings on whole problems."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from tensorop import __version__, instantiate, starts
from tensorop.author import offline
from tensorop.build import tool
from tensorop.build.compile import candidate_flags
from tensorop.errors import JobError, TensoropError
from tensorop.model.job import Job
from tensorop.model.kernel import Draft, Kernel, Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Start
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Stage
from tensorop.model.verdict import Seed
from tensorop.problems import for_search, large, of, stand_in, work
from tensorop.space import Space
from tensorop.stopping import Stop
from tensorop.store.journal import Journal
from tensorop.store.key import trial_key
from tensorop.target import Target, merit
from tensorop.texts import Texts
from tensorop.trial import Evaluator
from tensorop.tuner import loop, strategy
from tensorop.tuner.budget import Budget
from tensorop.tuner.limits import FACTOR, FIRST_S
from tensorop.tuner.loop import Arm
from tensorop.tuner.seeded import Nothing
from tensorop.tuner.select import choose

KERNELS = 6  # micro-kernels that go on to the second stage, and OTHERS beside those the platform's file names
OTHERS = 2
MICRO_SHARE, BLOCKING_SHARE, LARGE_SHARE = 0.33, 0.42, 0.2  # of the budget; blocking has both where nothing is large
DIRECT_SHARE = 0.05  # of it for what serves the smallest problems
LITTLE = 1e-3  # seconds: a stage that others left no time has its first trials alone
PROBE_SHARE = 0.35  # of it for the shapes on which the variants' models disagree, where something measures them
FORM_SHARE = 0.15  # of it where variants are also written for single VLENs; the stages before share the rest
LARGE = 10  # candidates that are tried on the large problems
SAYS_LITTLE = 1e7  # flops below which a problem's cost says little of a larger one's
FIRST_LAYOUT = 2.0  # weight of the layout that figures are reported in, against 1 for each other


@dataclass(frozen=True)
class Ground:
    """What both stages stand on. operator, platform and drafts are resolved; work: folder for candidates;
    texts: the job's kernels."""

    job: Job
    operator: Operator
    target: Target
    drafts: tuple[Draft, ...]
    journal: Journal
    seed: Seed
    work: Path
    stop: Stop = field(default_factory=Stop)
    texts: Texts = field(default_factory=Texts)

    def budget(self, share: float) -> Budget:
        """A stage's share of one dtype's part of the budget, less what is for single VLENs and, in seconds, for probes,
        which are no trials."""
        left = 1.0 - (FORM_SHARE if single_vlens(self.target) else 0.0)
        in_seconds = left - (0.0 if self.target.pretends else PROBE_SHARE)
        return replace(self.share(share * left), seconds=self.share(share * in_seconds).seconds)

    def share(self, share: float) -> Budget:
        """A share of one dtype's part of the budget."""
        return Budget(self.job.budget_s, self.job.trials).share(share / len(self.job.dtypes))

    def what_is_left(self, budget: Budget, dtype: str, stage: Stage) -> Budget:
        """A stage's budget, less what earlier dtypes and this one's other stages took beyond theirs. Earlier dtypes'
        excess is shared by all that follow."""
        if budget.seconds is None or self.job.budget_s is None:
            return budget
        dtypes, history = self.job.dtypes, self.journal.history
        here = dtypes.index(dtype)
        before = sum(history.spent((other, name, 0)) for name in dtypes[:here] for other in Stage)
        beside = sum(history.spent((other, dtype, 0)) for other in Stage if other is not stage)
        usual = self.job.budget_s / len(dtypes)
        part = min(usual, (self.job.budget_s - before) / (len(dtypes) - here))
        return replace(budget, seconds=max(LITTLE, min(budget.seconds * part / usual, part - beside)))


def single_vlens(target: Target) -> bool:
    """Whether there are several VLENs, and kernels that ask for theirs could be told it."""
    return len(target.configurations) > 1 and target.platform.fixed_vlen is None


def micro(ground: Ground, dtype: str) -> Iterator[loop.Event]:
    """Every draft that this platform can speak, alone on packed operands."""
    platform, known = ground.target.platform, known_starts(ground, dtype)
    arms: list[Arm] = []
    for draft in ground.drafts:
        if instantiate.missing_words(platform, draft, dtype):
            continue
        try:
            space = instantiate.micro_space(platform, draft, dtype)
        except TensoropError:
            if draft.author == offline.AUTHOR:
                raise
            continue  # a model's was judged for the first dtype, and may have no legal point for another
        # however little time there is: what the platform's file names, else each choice that this stage cannot make
        due = starts.named(known, draft, space) or starts.unlike(known, draft, space)
        first = list(dict.fromkeys([*due, *starts.micro(known, draft, space)]))
        arms.append(Arm(Kernel(draft, dtype), space, first, max(1, len(due))))
    return conduct(ground, dtype, Stage.MICRO, arms, (), ground.budget(MICRO_SHARE))


def known_starts(ground: Ground, dtype: str) -> tuple[Start, ...]:
    """What the platform's file says earlier searches found."""
    return ground.target.platform.starts.get(ground.operator.name, {}).get(dtype, ())


def kernels(ground: Ground, dtype: str) -> dict[str, Kernel]:
    """By id, the micro-kernels that go on: those the platform's file names; each draft's best and its first start that
    passed, since what a draft is for may not show in this stage, for each choice of its unseen tunables; then other
    tiles, the best of each VLEN in turn."""
    arms = {Kernel(draft, dtype).id for draft in ground.drafts}
    ended = [f for f in passed(ground, dtype, Stage.MICRO, arms) if f.score.cost is not None]
    ranked = [f.trial.variant.kernel for f in sorted(ended, key=lambda f: f.score.cost or 0.0)]
    others = _in_turn(ended, ground.target.configurations, _micro_cost)
    of_file = {start.draft for start in known_starts(ground, dtype)}  # whose choices it has made

    def kind(kernel: Kernel) -> tuple[int | str, ...]:
        name = kernel.draft.name
        return (name, *(() if name in of_file else starts.unseen(kernel.draft, kernel.configuration)))

    best_of: dict[tuple[int | str, ...], Kernel] = {}
    own: dict[tuple[int | str, ...], Kernel] = {}
    for kernel in ranked:
        best_of.setdefault(kind(kernel), kernel)
        if starts.is_own(kernel.draft, kernel.configuration):
            own.setdefault(kind(kernel), kernel)
    named = [own.get(of_kind, best) for of_kind, best in best_of.items()]
    known = [
        next((k for k in ranked if starts.agrees(start, k.draft.name, k.configuration)), None)
        for start in known_starts(ground, dtype)
    ]
    chosen = {kernel.id: kernel for kernel in known if kernel is not None}
    most = max(KERNELS, len(chosen) + OTHERS)
    shapes = {(*kind(kernel), *_shape(ground, kernel)) for kernel in chosen.values()}
    for kernel in [*best_of.values(), *named, *others]:
        shape = (*kind(kernel), *_shape(ground, kernel))
        if shape not in shapes and len(chosen) < most:
            shapes.add(shape)
            chosen[kernel.id] = kernel
    return chosen


def _micro_cost(finished: Finished, vlen: int) -> float:
    """A first-stage trial's cost at one VLEN, up to a factor all share: the problem grows as the vectors do."""
    (samples,) = finished.score.per_problem.values()
    return (finished.score.cost or 0.0) * samples.at(vlen) / samples.value


def _in_turn(ended: Sequence[Finished], vlens: Sequence[int], cost: Callable[[Finished, int], float]) -> list[Kernel]:
    """Each kernel once: the best at each VLEN, then the second best at each, and so on."""

    def ranked(vlen: int) -> list[Finished]:
        return sorted(ended, key=lambda finished: cost(finished, vlen))

    found = [f.trial.variant.kernel for at_once in zip(*map(ranked, vlens), strict=True) for f in at_once]
    return list({kernel.id: kernel for kernel in found}.values())


def _shape(ground: Ground, kernel: Kernel) -> tuple[int, ...]:
    sizes = instantiate.tile(ground.operator, ground.target.platform, kernel, ground.target.configurations[0])
    return ground.operator.reference.same(sizes)


def blocking(
    ground: Ground, dtype: str, kernels: Mapping[str, Kernel], problems: tuple[Problem, ...]
) -> Iterator[loop.Event]:
    """Block sizes and packing for each of these kernels, on whole problems; first those that the platform's file names
    with a kernel, or the neighbours of the defaults."""
    platform, known = ground.target.platform, known_starts(ground, dtype)
    arms: list[Arm] = []
    for kernel in kernels.values():
        try:
            space = instantiate.blocking_space(ground.operator, platform, kernel)
        except JobError:  # a tile that no blocking fits has lost
            continue
        named = starts.blockings(known, kernel.draft, kernel.configuration, space)
        full = instantiate.defaults(ground.operator, platform, dtype, kernel.configuration)
        usual = {name: full[name] for name in ground.operator.blocking.values}
        second = sum(arm.kernel.draft == kernel.draft for arm in arms) % 2 == 1
        first = named or starts.around(usual, space, nothing_first=second)
        arms.append(Arm(kernel, space, first, max(1, len(named))))
    wait = large_problems(ground, dtype)
    budget = ground.budget(BLOCKING_SHARE if wait else BLOCKING_SHARE + LARGE_SHARE)
    if (
        budget.trials is not None and direct_draft(ground, dtype) is not None
    ):  # each stage has one, all together no more
        others = [MICRO_SHARE, DIRECT_SHARE, *([LARGE_SHARE] if wait else [])]
        rest = (ground.budget(1.0).trials or 1) - sum(ground.budget(share).trials or 0 for share in others)
        budget = replace(budget, trials=max(1, min(budget.trials, rest)))
    return conduct(ground, dtype, Stage.BLOCKING, arms, problems, budget)


def direct_draft(ground: Ground, dtype: str) -> Draft | None:
    """The draft that serves the smallest problems; None where the operator has none, or the platform lacks a word."""
    draft = offline.direct(ground.operator.folder, ground.operator.name) if ground.operator.direct else None
    missing = draft and instantiate.missing_words(ground.target.platform, draft, dtype)
    return None if missing else draft


def problems(ground: Ground, dtype: str) -> tuple[Problem, ...]:
    """What a dtype's blockings are tried on: the job's shapes and, beside a suite, the operator's probes."""
    job, operator = ground.job, ground.operator
    suite = job.suite in operator.suites
    probes = operator.probes if suite else ()
    on_a_clock = operator.clock_probes if suite and ground.target.means.by_clock else ()
    shapes = tuple(dict.fromkeys((*job.shapes, *probes)))
    if operator.direct and direct_draft(ground, dtype) is not None:  # the smallest are not the dispatch's
        always = operator.direct.always
        shapes = tuple(shape for shape in shapes if work(operator, dtype, shape) > always) or shapes
    beyond_caches = tuple(of(operator, dtype, shape) for shape in on_a_clock)  # large, so in one layout
    found = for_search(operator, dtype, shapes, ground.target.means)
    return (*found, *(problem for problem in beyond_caches if problem not in found))


def large_problems(ground: Ground, dtype: str) -> tuple[Problem, ...]:
    """What the finalists are tried on: the more, the longer they have."""
    share = ground.budget(LARGE_SHARE).seconds
    return large(ground.operator, dtype, ground.job.shapes, ground.target.means, share)


def finalists(
    ground: Ground, dtype: str, kernels: Mapping[str, Kernel], problems: tuple[Problem, ...]
) -> Iterator[loop.Event]:
    """The blockings that did best on the larger problems of the search, on some that were too large for it."""
    chosen = _for_large(ground, dtype, kernels)
    arms = []
    for kernel in kernels.values():
        if first := [variant.blocking for variant in chosen if variant.kernel.id == kernel.id]:
            space = instantiate.blocking_space(ground.operator, ground.target.platform, kernel)
            arms.append(Arm(kernel, space, first))
    share = ground.budget(LARGE_SHARE)
    slowest = max((sum(f.seconds.values()) for f in passed(ground, dtype, Stage.BLOCKING, kernels)), default=0.0)
    budget = Budget(share.seconds, min(len(chosen), share.trials or len(chosen)))
    first_s = max(FIRST_S, share.seconds or 0.0, FACTOR * slowest)  # each is meant to take a tenth of the share
    return conduct(ground, dtype, Stage.FINAL, arms, problems, budget, only_first=True, first_s=first_s)


def _for_large(ground: Ground, dtype: str, kernels: Mapping[str, Kernel]) -> list[Variant]:
    """Those that do best together on the larger problems of the search; none serves all of them."""
    telling = {p.label for p in problems(ground, dtype) if ground.operator.reference.work(p) >= SAYS_LITTLE}
    vlens = ground.target.configurations
    tried = {f.trial.variant.id: f for f in passed(ground, dtype, Stage.BLOCKING, kernels)}
    costs = {
        name: {(p, vlen): s.at(vlen) for p, s in f.score.per_problem.items() if p in telling for vlen in vlens}
        for name, f in tried.items()
    }
    chosen = choose({name: of_one for name, of_one in costs.items() if of_one}, least=LARGE, most=LARGE)
    return [tried[name].trial.variant for name in chosen]


def passed(ground: Ground, dtype: str, stage: Stage, arms: Container[str] | None = None) -> list[Finished]:
    """Trials of a stage that passed, of these arms where they are named."""
    ended = ground.journal.history.ended((stage, dtype, 0))
    return [f for f in ended if f.outcome.ok and (arms is None or f.trial.arm in arms)]


def variants(ground: Ground, dtype: str, kernels: Mapping[str, Kernel]) -> tuple[Finished, ...]:
    """The trials of the few variants that the library may carry."""
    ended = {finished.trial.variant.id: finished for finished in tried(ground, dtype, kernels)}
    vlens = ground.target.configurations
    costs = {
        name: {(p, vlen): merit(s, vlen) for p, s in f.score.per_problem.items() for vlen in vlens}
        for name, f in ended.items()
    }
    shapes = ground.job.shapes + tuple(
        stand_in(ground.operator, dtype, shape, ground.target.means) for shape in ground.job.shapes
    )
    first = [of(ground.operator, dtype, shape).label for shape in shapes]
    weights = {(label, vlen): FIRST_LAYOUT for label in first for vlen in vlens}
    return tuple(ended[name] for name in choose(costs, weights))


def tried(ground: Ground, dtype: str, kernels: Mapping[str, Kernel]) -> list[Finished]:
    """The trial of every blocking that passed; what the finalists' trial adds is among its figures."""
    ended = {f.trial.variant.id: f for f in passed(ground, dtype, Stage.BLOCKING, kernels)}
    for again in passed(ground, dtype, Stage.FINAL, kernels):
        before = ended[again.trial.variant.id]
        both = {**before.score.per_problem, **again.score.per_problem}
        ended[again.trial.variant.id] = replace(before, score=replace(before.score, per_problem=both))
    return list(ended.values())


def conduct(
    ground: Ground,
    dtype: str,
    stage: Stage,
    arms: Sequence[Arm],
    problems: tuple[Problem, ...],
    budget: Budget,
    *,
    only_first: bool = False,
    first_s: float = FIRST_S,
) -> Iterator[loop.Event]:
    """The first points of each arm, then what the job's tuner asks for, unless they are all there is to try.

    budget: a wish; what stages before this one took beyond theirs is missing here
    first_s: what a trial may take while none has passed, in seconds; a board of its own pace has more
    """
    job, target = ground.job, ground.target
    nothing: Callable[[Space, int], strategy.Strategy] = lambda space, seed: Nothing()  # noqa: E731
    compiler = (tool.compiler_version(), *candidate_flags(target.platform))
    digests = {v: digest(ground.operator, target.at(v)) for v in {arm.kernel.vlen for arm in arms}}

    def key_of(variant: Variant) -> str:
        vlen = variant.kernel.vlen
        return trial_key(
            variant,
            stage=stage,
            problems=problems,
            platform=digests[vlen],
            vlens=target.at(vlen).configurations,
            compiler=compiler,
            tool=__version__,
        )

    return loop.search(
        loop.Search(
            stage=stage,
            dtype=dtype,
            arms=arms,
            make_tuner=nothing if only_first else strategy.load(job.tuner, job.plugins).make,
            evaluate=Evaluator(ground.operator, target, dtype, stage, problems, ground.seed, ground.work, ground.texts),
            key_of=key_of,
            journal=ground.journal,
            budget=ground.what_is_left(budget, dtype, stage),
            seed=job.seed,
            jobs=job.jobs,
            shared_clock=not target.side_by_side,
            first_s=first_s * target.runner.patience,
            stopped=lambda: ground.stop.asked,
        )
    )


def digest(operator: Operator, target: Target) -> str:
    """Of everything that is not a draft's or a point's and yet makes a trial what it is: platform, words, templates."""
    parts = [json.dumps([asdict(target.platform), target.name], sort_keys=True, default=str).encode()]
    files = [path for folder in operator.templates for path in sorted(folder.iterdir()) if path.is_file()]
    parts += [path.read_bytes() for path in files]
    return sha256(b"\0".join(parts)).hexdigest()[:16]
