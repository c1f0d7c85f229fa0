"""The two stages of a search: micro-kernels alone, then their blockings on whole problems."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from tensorop import __version__, instantiate, starts
from tensorop.author import offline
from tensorop.build import tool
from tensorop.build.compile import candidate_flags
from tensorop.errors import JobError, TensoropError
from tensorop.model.job import Job
from tensorop.model.kernel import Draft
from tensorop.model.operator import Operator
from tensorop.model.platform import Start
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Measured, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.model.winner import Variant
from tensorop.problems import for_search, large, of, stand_in, work
from tensorop.runners.null import Null
from tensorop.runners.ssh import Ssh
from tensorop.space import Space
from tensorop.stopping import Stop
from tensorop.store.journal import Journal
from tensorop.store.key import trial_key
from tensorop.target import Target, at_vlen, merit
from tensorop.texts import Texts
from tensorop.trial import Candidate, Evaluator, Prepared
from tensorop.tuner import loop, strategy
from tensorop.tuner.budget import Budget
from tensorop.tuner.limits import FACTOR, FIRST_S
from tensorop.tuner.seeded import Nothing, Seeded
from tensorop.tuner.select import choose

KERNELS = 6  # micro-kernels that go on to the second stage, and OTHERS beside those the platform's file names
OTHERS = 2
SEEDS = 3  # drafts that most platforms speak, each with a first start
MICRO_SHARE, BLOCKING_SHARE, LARGE_SHARE = 0.33, 0.42, 0.2  # of the budget; blocking has both where nothing is large
DIRECT_SHARE = 0.05  # of it for what serves the smallest problems
CLOCK = "ns"  # the unit of a real clock
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
        in_seconds = left - (PROBE_SHARE if probed(self.target) else 0.0)
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


def probed(target: Target) -> bool:
    """Whether variants are measured on further shapes inside the library; the null runner builds none."""
    return not isinstance(target.runner, Null)


def single_vlens(target: Target) -> bool:
    """Whether there are several VLENs, and kernels that ask for theirs could be told it."""
    return len(target.vlens) > 1 and target.platform.fixed_vlen is None


def micro(ground: Ground, dtype: str) -> Iterator[loop.Event]:
    """Every draft that this platform can speak, alone on packed operands."""
    platform = ground.target.platform
    drafts = {draft.name: draft for draft in ground.drafts if not instantiate.missing_words(platform, draft, dtype)}
    spaces: dict[str, Space] = {}
    for name, draft in drafts.items():
        try:
            spaces[name] = instantiate.micro_space(ground.operator, platform, draft, dtype)
        except TensoropError:
            if draft.author == offline.AUTHOR:
                raise  # a model's was judged for the first dtype, and may have no legal point for another
    arms = {name: Candidate(drafts[name]) for name in spaces}

    def first(arm: str) -> Sequence[Point]:
        return starts.micro(known_starts(ground, dtype), drafts[arm], spaces[arm])

    def least(arm: str) -> int:
        return max(1, len(starts.named(known_starts(ground, dtype), drafts[arm], spaces[arm])))

    return conduct(ground, dtype, Stage.MICRO, arms, spaces, (), ground.budget(MICRO_SHARE), first, least)


def known_starts(ground: Ground, dtype: str) -> tuple[Start, ...]:
    """What the platform's file says earlier searches found."""
    return ground.target.platform.starts.get(ground.operator.name, {}).get(dtype, ())


def kernels(ground: Ground, dtype: str) -> dict[str, Candidate]:
    """The micro-kernels that go on: those the platform's file names; each draft's best and its first start that passed,
    since what a draft is for may not show in this stage; then other tiles, the best of each VLEN in turn."""
    drafts = {draft.name: draft for draft in ground.drafts}
    ended = [f for f in passed(ground, dtype, Stage.MICRO, drafts) if f.score.cost is not None]
    ranked = [f.trial for f in sorted(ended, key=lambda f: f.score.cost or 0.0)]
    others = _in_turn(ended, ground.target.vlens, _micro_cost)
    best_of = {name: next(t for t in ranked if t.draft == name) for name in dict.fromkeys(t.draft for t in ranked)}
    own = [t for t in ranked if starts.is_own(drafts[t.draft], t.point)]
    named = [next((t for t in own if t.draft == name), best) for name, best in best_of.items()]
    known = [
        next((t for t in ranked if starts.agrees(start, t.draft, t.point)), None)
        for start in known_starts(ground, dtype)
    ]
    chosen = list(dict.fromkeys((trial.draft, trial.point) for trial in known if trial is not None))
    most = max(KERNELS, len(chosen) + OTHERS)
    shapes = {(name, *_shape(ground, dtype, drafts[name], point)) for name, point in chosen}
    for trial in [*best_of.values(), *named, *others]:
        shape = (trial.draft, *_shape(ground, dtype, drafts[trial.draft], trial.point))
        if shape not in shapes and len(chosen) < most:
            shapes.add(shape)
            chosen.append((trial.draft, trial.point))
    return {f"{name} {point}": Candidate(drafts[name], point) for name, point in chosen}


def _micro_cost(finished: Finished, vlen: int) -> float:
    """A first-stage trial's cost at one VLEN, up to a factor all share: the problem grows as the vectors do."""
    (samples,) = finished.score.per_problem.values()
    return (finished.score.cost or 0.0) * at_vlen(samples, vlen) / samples.value


def _in_turn(ended: Sequence[Finished], vlens: Sequence[int], cost: Callable[[Finished, int], float]) -> list[Trial]:
    """Each trial once: the best at each VLEN, then the second best at each, and so on."""

    def ranked(vlen: int) -> list[Finished]:
        return sorted(ended, key=lambda finished: cost(finished, vlen))

    return list(dict.fromkeys(f.trial for at_once in zip(*map(ranked, vlens), strict=True) for f in at_once))


def _shape(ground: Ground, dtype: str, draft: Draft, point: Point) -> tuple[int, ...]:
    vlen = ground.target.vlens[0]
    sizes = instantiate.tile(ground.operator, ground.target.platform, draft, point, dtype, vlen)
    return sizes["mr"], sizes["nr"]


def blocking(
    ground: Ground, dtype: str, candidates: Mapping[str, Candidate], problems: tuple[Problem, ...]
) -> Iterator[loop.Event]:
    """Block sizes and packing for each of these kernels, on whole problems; first those that the platform's file names
    with a kernel, or the neighbours of the defaults."""
    platform = ground.target.platform
    spaces: dict[str, Space] = {}
    for name, candidate in candidates.items():
        with contextlib.suppress(JobError):  # a tile that no blocking fits has lost
            spaces[name] = instantiate.blocking_space(
                ground.operator, platform, candidate.draft, candidate.point, dtype
            )

    def named(arm: str) -> list[Point]:
        draft, point = candidates[arm].draft, candidates[arm].point
        return starts.blockings(known_starts(ground, dtype), draft, point, spaces[arm])

    def first(arm: str) -> Sequence[Point]:
        point = candidates[arm].point
        full = instantiate.defaults(ground.operator, platform, dtype, point)
        return named(arm) or starts.around({name: full[name] for name in ground.operator.blocking.values}, spaces[arm])

    wait = large_problems(ground, dtype)
    budget = ground.budget(BLOCKING_SHARE if wait else BLOCKING_SHARE + LARGE_SHARE)
    if (
        budget.trials is not None and direct_draft(ground, dtype) is not None
    ):  # each stage has one, all together no more
        others = [MICRO_SHARE, DIRECT_SHARE, *([LARGE_SHARE] if wait else [])]
        rest = (ground.budget(1.0).trials or 1) - sum(ground.budget(share).trials or 0 for share in others)
        budget = replace(budget, trials=max(1, min(budget.trials, rest)))
    return conduct(
        ground, dtype, Stage.BLOCKING, candidates, spaces, problems, budget, first, lambda arm: max(1, len(named(arm)))
    )


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
    on_a_clock = operator.clock_probes if suite and ground.target.unit == CLOCK else ()
    shapes = tuple(dict.fromkeys((*job.shapes, *probes)))
    if operator.direct and direct_draft(ground, dtype) is not None:  # the smallest are not the dispatch's
        always = operator.direct.always
        shapes = tuple(shape for shape in shapes if work(operator, dtype, shape) > always) or shapes
    beyond_caches = tuple(of(operator, dtype, shape) for shape in on_a_clock)  # large, so in one layout
    found = for_search(operator, dtype, shapes, ground.target.unit)
    return (*found, *(problem for problem in beyond_caches if problem not in found))


def large_problems(ground: Ground, dtype: str) -> tuple[Problem, ...]:
    """What the finalists are tried on: the more, the longer they have."""
    share = ground.budget(LARGE_SHARE).seconds
    return large(ground.operator, dtype, ground.job.shapes, ground.target.unit, share)


def finalists(
    ground: Ground, dtype: str, candidates: Mapping[str, Candidate], problems: tuple[Problem, ...]
) -> Iterator[loop.Event]:
    """The blockings that did best on the larger problems of the search, on some that were too large for it."""
    chosen = _for_large(ground, dtype, candidates)
    spaces = {
        arm: instantiate.blocking_space(
            ground.operator, ground.target.platform, candidates[arm].draft, candidates[arm].point, dtype
        )
        for arm, candidate in candidates.items()
        if any(arm == wanted for wanted, _ in chosen)
    }
    arms = {arm: candidates[arm] for arm in spaces}
    share = ground.budget(LARGE_SHARE)
    slowest = max((sum(f.seconds.values()) for f in passed(ground, dtype, Stage.BLOCKING, candidates)), default=0.0)
    budget = Budget(share.seconds, min(len(chosen), share.trials or len(chosen)))
    return conduct(
        ground,
        dtype,
        Stage.FINAL,
        arms,
        spaces,
        problems,
        budget,
        lambda wanted: [point for arm, point in chosen if arm == wanted],
        then=lambda space, seed: Nothing(),
        first_s=max(FIRST_S, share.seconds or 0.0, FACTOR * slowest),  # each is meant to take a tenth of the share
    )


def _for_large(ground: Ground, dtype: str, candidates: Mapping[str, Candidate]) -> list[tuple[str, Point]]:
    """Arms and points that do best together on the larger problems of the search; none serves all of them."""
    telling = {p.label for p in problems(ground, dtype) if ground.operator.reference.work(p) >= SAYS_LITTLE}
    vlens = ground.target.vlens
    tried = {f"{f.trial.draft} {f.trial.point}": f for f in passed(ground, dtype, Stage.BLOCKING, candidates)}
    costs = {
        name: {(p, vlen): at_vlen(s, vlen) for p, s in f.score.per_problem.items() if p in telling for vlen in vlens}
        for name, f in tried.items()
    }
    chosen = choose({name: of_one for name, of_one in costs.items() if of_one}, least=LARGE, most=LARGE)
    return [(tried[name].trial.draft, tried[name].trial.point) for name in chosen]


def passed(ground: Ground, dtype: str, stage: Stage, candidates: Mapping[str, object]) -> list[Finished]:
    ended = ground.journal.history.ended((stage, dtype, 0))
    return [f for f in ended if f.outcome.ok and f.trial.draft in candidates]


def variants(ground: Ground, dtype: str, candidates: Mapping[str, Candidate]) -> tuple[tuple[Variant, Finished], ...]:
    """The few blockings that the library may carry, with the trial that measured each."""
    ended = {f"{f.trial.draft} {f.trial.point}": (v, f) for v, f in tried(ground, dtype, candidates)}
    vlens = ground.target.vlens
    costs = {
        name: {(p, vlen): merit(s, vlen) for p, s in f.score.per_problem.items() for vlen in vlens}
        for name, (_, f) in ended.items()
    }
    shapes = ground.job.shapes + tuple(
        stand_in(ground.operator, dtype, shape, ground.target.unit) for shape in ground.job.shapes
    )
    first = [of(ground.operator, dtype, shape).label for shape in shapes]
    weights = {(label, vlen): FIRST_LAYOUT for label in first for vlen in vlens}
    return tuple(ended[name] for name in choose(costs, weights))


def tried(ground: Ground, dtype: str, candidates: Mapping[str, Candidate]) -> list[tuple[Variant, Finished]]:
    """Every blocking that passed, with its trial; what the finalists' trial adds is among its figures."""
    ended = {f"{f.trial.draft} {f.trial.point}": f for f in passed(ground, dtype, Stage.BLOCKING, candidates)}
    for again in passed(ground, dtype, Stage.FINAL, candidates):
        name = f"{again.trial.draft} {again.trial.point}"
        both = {**ended[name].score.per_problem, **again.score.per_problem}
        ended[name] = replace(ended[name], score=replace(ended[name].score, per_problem=both))
    found = []
    for finished in ended.values():
        candidate = candidates[finished.trial.draft]
        point = Point.of({**candidate.point, **finished.trial.point})
        found.append((Variant(candidate.draft, point), finished))
    return found


def conduct(
    ground: Ground,
    dtype: str,
    stage: Stage,
    arms: Mapping[str, Candidate],
    spaces: Mapping[str, Space],
    problems: tuple[Problem, ...],
    budget: Budget,
    first: Callable[[str], Sequence[Point]],
    least: Callable[[str], int] = lambda arm: 0,
    then: Callable[[Space, int], strategy.Strategy] | None = None,
    targets: Mapping[str, Target] | None = None,
    first_s: float = FIRST_S,
) -> Iterator[loop.Event]:
    """`first` points of each arm, then what the job's tuner asks for, or another strategy in its place.

    budget: a wish; what stages before this one took beyond theirs is missing here
    least: of an arm's `first` points, how many are tried however long they take
    targets: of all arms, where they do not stand on the ground's
    first_s: what a trial may take while none has passed, in seconds; a board of its own pace has more
    """
    job, runner = ground.job, ground.target.runner
    make_inner = then or strategy.load(job.tuner, job.plugins).make
    own = Evaluator(
        ground.operator,
        ground.target,
        dtype,
        stage,
        arms,
        problems,
        ground.seed,
        ground.work,
        ground.texts,
    )
    elsewhere = {arm: replace(own, target=target, built={}) for arm, target in (targets or {}).items()}
    names = {id(space): name for name, space in spaces.items()}

    def make(space: Space, seed: int) -> strategy.Strategy:
        return Seeded(make_inner(space, seed), space, first(names[id(space)]))

    compiler = (tool.compiler_version(), *candidate_flags(ground.target.platform))
    stands_on = {arm: targets[arm] if targets else ground.target for arm in arms}
    digests = {arm: digest(ground.operator, target) for arm, target in stands_on.items()}

    def key_of(arm: str, point: Point) -> str:
        candidate = arms[arm]
        return trial_key(
            draft=candidate.draft.digest,
            point=Point.of({**candidate.point, **point}),
            stage=stage,
            problems=problems,
            dtype=dtype,
            platform=digests[arm],
            vlens=stands_on[arm].vlens,
            compiler=compiler,
            tool=__version__,
        )

    return loop.search(
        loop.Search(
            stage=stage,
            dtype=dtype,
            spaces=spaces,
            make_tuner=make,
            evaluate=_Split(elsewhere) if targets else own,
            key_of=key_of,
            journal=ground.journal,
            budget=ground.what_is_left(budget, dtype, stage),
            seed=job.seed,
            jobs=job.jobs,
            shared_clock=not ground.target.side_by_side,
            floor={arm: count for arm in spaces if (count := len(first(arm)))},  # without starts: the usual
            least={arm: least(arm) for arm in spaces},
            template_of={arm: candidate.draft.name for arm, candidate in arms.items()},
            first_s=first_s * (runner.patience if isinstance(runner, Ssh) else 1.0),
            stopped=lambda: ground.stop.asked,
        )
    )


@dataclass(frozen=True)
class _Split:
    """Trials, each by its arm's evaluator."""

    by_arm: Mapping[str, Evaluator]

    def prepare(self, trial: Trial) -> Prepared | Measured:
        return self.by_arm[trial.draft].prepare(trial)

    def measure(self, trial: Trial, prepared: Prepared) -> Measured:
        return self.by_arm[trial.draft].measure(trial, prepared)


def digest(operator: Operator, target: Target) -> str:
    """Of everything that is not a draft's or a point's and yet makes a trial what it is: platform, words, templates."""
    parts = [json.dumps([asdict(target.platform), target.runner.name], sort_keys=True, default=str).encode()]
    files = [path for path in sorted(operator.folder.iterdir()) if path.is_file()]
    parts += [path.read_bytes() for path in files]
    return sha256(b"\0".join(parts)).hexdigest()[:16]
