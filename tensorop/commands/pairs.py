"""`author pairs`: what a change of one idea of a shipped template gains, measured under a board model.

A template's head says which action each of its tunables stands for (`ideas`). Two configurations that differ in one of
them are a pair: the first is the state, the other what the action made of it. Pairs are in both directions, so a row's
gain may be below 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tensorop import backends
from tensorop.author import offline, state
from tensorop.author.state import Measured
from tensorop.commands import prompt
from tensorop.errors import UsageError
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.stage_run import StageRun
from tensorop.model.steering import cost_reward
from tensorop.model.trial import Limit, Outcome, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.render import prior
from tensorop.space import Space
from tensorop.store import durable
from tensorop.trial import judging
from tensorop.trial.evaluator import Evaluator
from tensorop.trial.roof import Roof
from tensorop.trial.trial import FIRST_S, carry_out

_DIGITS = 4  # of numbers in rows


@dataclass(frozen=True)
class PairRow:
    """A state, an action in it, and its gain: the cost before over the cost after."""

    platform: str
    dtype: str
    template: str
    before: str  # configuration
    after: str
    action: str
    region: str
    features: Mapping[str, float]
    gain: float  # 0 if the answer of a language model failed
    reward: float


@dataclass(frozen=True)
class PairCount:
    """The pairs of one action."""

    action: str
    pairs: int
    faster: int  # those with a gain above 1
    reward: float  # mean


def pairs(
    operator: Operator, platform: Platform, dtype: str, trials: int, work: Path, plugins: tuple[Path, ...] = ()
) -> Iterator[PairRow]:
    """The pairs among `trials` configurations of each template with ideas. Raises UsageError without a board model."""
    target = backends.reach(platform, plugins=plugins)
    if not target.measures or not target.deterministic:
        raise UsageError(
            f"platform '{platform.name}' is timed by a clock: pairs would differ from run to run",
            hint="name a platform with a board model; `tensorop platforms list` describes each",
        )
    known = prompt.brief(operator, platform, (dtype,), ()).known
    bound = Roof(target).bound(dtype, target.vlens)
    evaluator = Evaluator(operator, target, StageRun(dtype, Stage.MICRO, (), Seed(0, 0)), work)
    for template in offline.templates(operator.folder, operator.name, operator.added):
        space = judging.legal(operator, platform, template, dtype)
        if not template.ideas or isinstance(space, Outcome):
            continue
        measured: dict[Point, tuple[float, Mapping[str, float]]] = {}
        for point in _walk(template, space, prior.first(platform, template, dtype, space)[:1], trials):
            trial = Trial("pairs", 0, Stage.MICRO, Variant(kernel := Kernel(template, dtype, point)))
            ended = carry_out(evaluator, trial, Limit(FIRST_S, "of a pair"))
            if ended.outcome.ok and ended.score.cost is not None:
                (samples,) = ended.score.per_problem.values()
                planned = judging.planned_at(platform, kernel)
                of = Measured(ended.score.cost, bound, samples.counters, planned=planned)
                measured[point] = ended.score.cost, state.features(of, known)
        for before, after, tunable in _neighbours(measured, template):
            (old, features), (new, _) = measured[before], measured[after]
            action, _, region = template.ideas[tunable].partition(" ")
            rounded = {name: short(value) for name, value in sorted(features.items())}
            where = platform.name, dtype, template.name, str(before), str(after), action, region
            yield PairRow(*where, rounded, short(old / new), short(cost_reward(old, new, bound)))


def short(value: float) -> float:
    """A number as rows have it."""
    return float(f"{value:.{_DIGITS}g}")


def _walk(template: KernelTemplate, space: Space, first: Sequence[Point], count: int) -> Iterator[Point]:
    """Up to `count` points: from each origin backwards, one idea after the other at its first value, and around that.

    first: origins before those that are spread over the space; each origin has at most half of the points
    """
    seen: set[Point] = set()
    for origin in (*first, *(space.at(number) for number in reversed(judging.spread(space, count)))):
        most = min(count, len(seen) + -(-count // 2))
        for point in _backwards(template, space, origin):
            if len(seen) == most:
                break
            if point not in seen:
                seen.add(point)
                yield point


def _backwards(template: KernelTemplate, space: Space, origin: Point) -> Iterator[Point]:
    """The legal points of the way from an origin to the plainest kernel, then those that differ from it in one idea."""
    way = [origin]
    for tunable in template.ideas:
        way.append(Point.of({**way[-1], tunable: template.tunables[tunable][0]}))
        if way[-1] not in space:
            way.pop()
    yield from way
    longest = max((len(template.tunables[tunable]) for tunable in template.ideas), default=0)
    for number in range(longest):
        for tunable in template.ideas:
            values = template.tunables[tunable]
            for point in way if number < len(values) else ():
                if (other := Point.of({**point, tunable: values[number]})) in space:
                    yield other


def _neighbours(measured: Iterable[Point], template: KernelTemplate) -> Iterator[tuple[Point, Point, str]]:
    """Two points that differ in one idea alone, and its tunable; each pair in both directions."""
    points = list(measured)
    for before in points:
        for after in points:
            differing = [name for name, value in dict(before).items() if dict(after)[name] != value]
            if len(differing) == 1 and differing[0] in template.ideas:
                yield before, after, differing[0]


def write(path: Path, rows: Sequence[PairRow]) -> None:
    """Writes rows, one JSON value a line. Raises JobError if that fails."""
    durable.write(path, "".join(json.dumps(asdict(row)) + "\n" for row in rows))


def summary(rows: Sequence[PairRow]) -> list[PairCount]:
    found = []
    for action in dict.fromkeys(row.action for row in rows):
        mine = [row for row in rows if row.action == action]
        faster = sum(row.gain > 1 for row in mine)
        found.append(PairCount(action, len(mine), faster, sum(row.reward for row in mine) / len(mine)))
    return found
