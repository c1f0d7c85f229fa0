"""The two stages of a search: micro-kernels alone, then their blockings on whole problems."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

from tensorop import __version__, instantiate, starts
from tensorop.build import tool
from tensorop.build.compile import candidate_flags
from tensorop.errors import JobError
from tensorop.model.job import Job
from tensorop.model.kernel import Draft
from tensorop.model.operator import Operator
from tensorop.model.platform import Start
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Measured, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.model.winner import Variant
from tensorop.problems import for_search, large, of, stand_in
from tensorop.space import Space
from tensorop.specs import catalog
from tensorop.store.journal import Journal
from tensorop.store.key import trial_key
from tensorop.target import Target, at_vlen, merit
from tensorop.trial import Candidate, Evaluator, Prepared
from tensorop.tuner import loop, strategy
from tensorop.tuner.budget import Budget
from tensorop.tuner.seeded import Nothing, Seeded
from tensorop.tuner.select import choose

KERNELS = 6  # micro-kernels that go on to the second stage, and OTHERS beside those the platform's file names
OTHERS = 2
MICRO_SHARE, BLOCKING_SHARE, LARGE_SHARE = 0.35, 0.45, 0.2  # of the budget; blocking has both where nothing is large
FORM_SHARE = 0.15  # of it where variants are also written for single VLENs; the stages before share the rest
LARGE = 10  # candidates that are tried on the large problems
SAYS_LITTLE = 1e7  # flops below which a problem's cost says little of a larger one's
FIRST_LAYOUT = 2.0  # weight of the layout that figures are reported in, against 1 for each other


@dataclass(frozen=True)
class Ground:
    """What both stages stand on. operator, platform and drafts are resolved; work: folder for candidates."""

    job: Job
    operator: Operator
    target: Target
    drafts: tuple[Draft, ...]
    journal: Journal
    seed: Seed
    work: Path

    def budget(self, share: float) -> Budget:
        """A stage's share of one dtype's part of the budget, less what is for single VLENs."""
        return self.share(share * (1 - FORM_SHARE) if single_vlens(self.target) else share)

    def share(self, share: float) -> Budget:
        """A share of one dtype's part of the budget."""
        return Budget(self.job.budget_s, self.job.trials).share(share / len(self.job.dtypes))


def single_vlens(target: Target) -> bool:
    """Whether there are several VLENs, and kernels that ask for theirs could be told it."""
    return len(target.vlens) > 1 and target.platform.fixed_vlen is None


def micro(ground: Ground, dtype: str) -> Iterator[loop.Event]:
    """Every draft that this platform can speak, alone on packed operands."""
    job, platform = ground.job, ground.target.platform
    drafts = {
        draft.name: draft
        for draft in ground.drafts
        if not instantiate.missing_words(platform, draft, dtype, job.plugins)
    }
    spaces = {
        name: instantiate.micro_space(ground.operator, platform, draft, dtype, job.plugins)
        for name, draft in drafts.items()
    }
    arms = {name: Candidate(draft) for name, draft in drafts.items()}

    def first(arm: str) -> Sequence[Point]:
        return starts.micro(_known(ground, dtype), drafts[arm], spaces[arm])

    return conduct(ground, dtype, Stage.MICRO, arms, spaces, (), ground.budget(MICRO_SHARE), first)


def _known(ground: Ground, dtype: str) -> tuple[Start, ...]:
    """What the platform's file says earlier searches found."""
    return ground.target.platform.starts.get(ground.operator.name, {}).get(dtype, ())


def kernels(ground: Ground, dtype: str) -> dict[str, Candidate]:
    """The micro-kernels that go on: those the platform's file names; each draft's best and its first start that passed,
    since what a draft is for may not show in this stage; then other tiles, the best of each VLEN in turn."""
    drafts = {draft.name: draft for draft in ground.drafts}
    ended = [f for f in _passed(ground, dtype, Stage.MICRO, drafts) if f.score.cost is not None]
    ranked = [f.trial for f in sorted(ended, key=lambda f: f.score.cost or 0.0)]
    others = _in_turn(ended, ground.target.vlens, _micro_cost)
    best_of = {name: next(t for t in ranked if t.draft == name) for name in dict.fromkeys(t.draft for t in ranked)}
    own = [t for t in ranked if starts.is_own(drafts[t.draft], t.point)]
    named = [next((t for t in own if t.draft == name), best) for name, best in best_of.items()]
    known = [
        next((t for t in ranked if starts.agrees(start, t.draft, t.point)), None) for start in _known(ground, dtype)
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
    sizes = instantiate.tile(ground.operator, ground.target.platform, draft, point, dtype, vlen, ground.job.plugins)
    return sizes["mr"], sizes["nr"]


def blocking(
    ground: Ground, dtype: str, candidates: Mapping[str, Candidate], problems: tuple[Problem, ...]
) -> Iterator[loop.Event]:
    """Block sizes and packing for each of these kernels, on whole problems; first those that the platform's file names
    with a kernel, or the neighbours of the defaults."""
    job, platform = ground.job, ground.target.platform
    spaces: dict[str, Space] = {}
    for name, candidate in candidates.items():
        with contextlib.suppress(JobError):  # a tile that no blocking fits has lost
            spaces[name] = instantiate.blocking_space(
                ground.operator, platform, candidate.draft, candidate.point, dtype, job.plugins
            )

    def first(arm: str) -> Sequence[Point]:
        draft, point = candidates[arm].draft, candidates[arm].point
        named = starts.blockings(_known(ground, dtype), draft, point, spaces[arm])
        full = instantiate.defaults(ground.operator, platform, dtype, point, job.plugins)
        return named or starts.around({name: full[name] for name in ground.operator.blocking.values}, spaces[arm])

    wait = large_problems(ground, dtype)
    budget = ground.budget(BLOCKING_SHARE if wait else BLOCKING_SHARE + LARGE_SHARE)
    return conduct(ground, dtype, Stage.BLOCKING, candidates, spaces, problems, budget, first)


def problems(ground: Ground, dtype: str) -> tuple[Problem, ...]:
    """What a dtype's blockings are tried on: the job's shapes and, beside a suite, the operator's probes."""
    job, operator = ground.job, ground.operator
    probes = operator.probes if job.suite in operator.suites else ()
    shapes = tuple(dict.fromkeys((*job.shapes, *probes)))
    return for_search(operator, dtype, shapes, ground.target.unit)


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
            ground.operator,
            ground.target.platform,
            candidates[arm].draft,
            candidates[arm].point,
            dtype,
            ground.job.plugins,
        )
        for arm, candidate in candidates.items()
        if any(arm == wanted for wanted, _ in chosen)
    }
    arms = {arm: candidates[arm] for arm in spaces}
    share = ground.budget(LARGE_SHARE)
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
        lambda space, seed: Nothing(),
    )


def _for_large(ground: Ground, dtype: str, candidates: Mapping[str, Candidate]) -> list[tuple[str, Point]]:
    """Arms and points that do best together on the larger problems of the search; none serves all of them."""
    telling = {p.label for p in problems(ground, dtype) if ground.operator.reference.work(p) >= SAYS_LITTLE}
    vlens = ground.target.vlens
    tried = {f"{f.trial.draft} {f.trial.point}": f for f in _passed(ground, dtype, Stage.BLOCKING, candidates)}
    costs = {
        name: {(p, vlen): at_vlen(s, vlen) for p, s in f.score.per_problem.items() if p in telling for vlen in vlens}
        for name, f in tried.items()
    }
    chosen = choose({name: of_one for name, of_one in costs.items() if of_one}, least=LARGE, most=LARGE)
    return [(tried[name].trial.draft, tried[name].trial.point) for name in chosen]


def _passed(ground: Ground, dtype: str, stage: Stage, candidates: Mapping[str, object]) -> list[Finished]:
    ended = ground.journal.history.ended((stage, dtype, 0))
    return [f for f in ended if f.outcome.ok and f.trial.draft in candidates]


def variants(ground: Ground, dtype: str, candidates: Mapping[str, Candidate]) -> tuple[tuple[Variant, Finished], ...]:
    """The few blockings the library carries, with the trial that measured each."""
    ended = {f"{f.trial.draft} {f.trial.point}": f for f in _passed(ground, dtype, Stage.BLOCKING, candidates)}
    for again in _passed(ground, dtype, Stage.FINAL, candidates):
        name = f"{again.trial.draft} {again.trial.point}"
        both = {**ended[name].score.per_problem, **again.score.per_problem}
        ended[name] = replace(ended[name], score=replace(ended[name].score, per_problem=both))
    vlens = ground.target.vlens
    costs = {
        name: {(p, vlen): merit(s, vlen) for p, s in f.score.per_problem.items() for vlen in vlens}
        for name, f in ended.items()
    }
    found = []
    shapes = ground.job.shapes + tuple(
        stand_in(ground.operator, dtype, shape, ground.target.unit) for shape in ground.job.shapes
    )
    first = [of(ground.operator, dtype, shape).label for shape in shapes]
    weights = {(label, vlen): FIRST_LAYOUT for label in first for vlen in vlens}
    for name in choose(costs, weights):
        trial = ended[name].trial
        candidate = candidates[trial.draft]
        found.append((Variant(candidate.draft, Point.of({**candidate.point, **trial.point})), ended[name]))
    return tuple(found)


def conduct(
    ground: Ground,
    dtype: str,
    stage: Stage,
    arms: Mapping[str, Candidate],
    spaces: Mapping[str, Space],
    problems: tuple[Problem, ...],
    budget: Budget,
    first: Callable[[str], Sequence[Point]],
    then: Callable[[Space, int], strategy.Strategy] | None = None,
    targets: Mapping[str, Target] | None = None,
) -> Iterator[loop.Event]:
    """`first` points of each arm, then what the job's tuner asks for, or another strategy in its place.

    targets: of all arms, where they do not stand on the ground's.
    """
    job = ground.job
    make_inner = then or strategy.load(job.tuner, job.plugins).make
    own = Evaluator(ground.operator, ground.target, dtype, stage, arms, problems, ground.seed, ground.work, job.plugins)
    elsewhere = {arm: replace(own, target=target, built={}) for arm, target in (targets or {}).items()}
    names = {id(space): name for name, space in spaces.items()}

    def make(space: Space, seed: int) -> strategy.Strategy:
        return Seeded(make_inner(space, seed), space, first(names[id(space)]))

    compiler = (tool.compiler_version(), *candidate_flags(ground.target.platform))
    stands_on = {arm: targets[arm] if targets else ground.target for arm in arms}
    digests = {arm: digest(ground.operator, target, job.plugins) for arm, target in stands_on.items()}

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
            budget=budget,
            seed=job.seed,
            jobs=job.jobs,
            shared_clock=not ground.target.side_by_side,
            floor={arm: count for arm in spaces if (count := len(first(arm)))},  # without starts: the usual
            needed=stage in (Stage.MICRO, Stage.BLOCKING),
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


def digest(operator: Operator, target: Target, plugins: tuple[Path, ...] = ()) -> str:
    """Of everything that is not a draft's or a point's and yet makes a trial what it is: platform, words, templates."""
    parts = [json.dumps([asdict(target.platform), target.runner.name], sort_keys=True, default=str).encode()]
    files = [path for path in sorted(operator.folder.iterdir()) if path.is_file()]
    files += [catalog.find("primitives", name, plugins) for name in target.platform.primitives]
    parts += [path.read_bytes() for path in files]
    return sha256(b"\0".join(parts)).hexdigest()[:16]
