"""The search of what serves the smallest problems: one draft, without packing, blocks or choice."""

from __future__ import annotations

from collections.abc import Iterator

from tensorop import instantiate, starts
from tensorop import search as searching
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.problem import Problem
from tensorop.model.trial import Stage
from tensorop.problems import for_search, work
from tensorop.search import Ground
from tensorop.tuner import loop
from tensorop.tuner.loop import Arm


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
    """The best of that search; None where it had nothing to try or nothing passed."""
    draft = searching.direct_draft(ground, dtype)
    if draft is None:
        return None
    ended = searching.passed(ground, dtype, Stage.DIRECT, [Kernel(draft, dtype).id])
    best = min((f for f in ended if f.score.cost is not None), key=lambda f: f.score.cost or 0.0, default=None)
    return None if best is None else best.trial.variant
