"""The search of what serves the smallest problems: one draft, without packing, blocks or choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tensorop import instantiate, starts
from tensorop import search as searching
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.problem import Problem
from tensorop.model.trial import Stage
from tensorop.problems import for_search, work
from tensorop.search import Ground
from tensorop.tuner import loop
from tensorop.tuner.loop import Arm

CLOSE = 1.05  # times the least cost: trials of a few ms on a clock tell no less apart


def search(ground: Ground, dtype: str) -> Iterator[loop.Event]:
    """Tries the draft on its suite and the job's own smallest shapes, in every layout; nothing where there is none."""
    draft = searching.direct_draft(ground, dtype)
    if draft is None:
        return iter(())
    space = instantiate.micro_space(ground.target.platform, draft, dtype)
    first = starts.micro(searching.known_starts(ground, dtype), draft, space)
    arms = [Arm(Kernel(draft, dtype), space, first, 1)]
    budget = ground.budget(searching.DIRECT_SHARE)
    return searching.conduct(ground, dtype, Stage.DIRECT, arms, problems(ground, dtype), budget)


def problems(ground: Ground, dtype: str) -> tuple[Problem, ...]:
    """What the direct way is tried on."""
    operator = ground.operator
    if operator.direct is None:
        return ()
    own = operator.suites[operator.direct.suite]
    most = max(work(operator, dtype, shape) for shape in own)
    small = tuple(shape for shape in dict.fromkeys((*own, *ground.job.shapes)) if work(operator, dtype, shape) <= most)
    return for_search(operator, dtype, small, ground.target.means)


def winner(ground: Ground, dtype: str) -> Variant | None:
    """Of those of that search that are hardly dearer than the cheapest the one that is least bad on any of the
    problems, against the best there; None where there was nothing to try or nothing passed."""
    draft = searching.direct_draft(ground, dtype)
    if draft is None:
        return None
    passed = searching.passed(ground, dtype, Stage.DIRECT, [Kernel(draft, dtype).id])
    costs = [{p: s.value for p, s in f.score.per_problem.items()} for f in passed]
    whole = [(f.score.cost, number) for number, f in enumerate(passed) if f.score.cost is not None]
    if not whole:
        return None
    close = [(worst(costs, number), cost, number) for cost, number in whole if cost <= CLOSE * min(whole)[0]]
    return passed[min(close)[2]].trial.variant


def worst(costs: Sequence[Mapping[str, float]], number: int) -> float:
    """How many times the least cost of all one of them takes where it does worst. costs: each one's, by problem."""
    own = costs[number]
    return max((cost / min(other.get(p, cost) for other in costs) for p, cost in own.items()), default=1.0)
