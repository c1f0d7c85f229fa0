"""The search of what serves the smallest problems: one draft, without packing, blocks or choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorop import instantiate, starts
from tensorop import search as searching
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.trial import Stage
from tensorop.model.winner import Variant
from tensorop.problems import for_search, work
from tensorop.search import Ground
from tensorop.trial import Candidate
from tensorop.tuner import loop


def search(ground: Ground, dtype: str) -> Iterator[loop.Event]:
    """Tries the draft on its suite and the job's own smallest shapes, in every layout; nothing where there is none."""
    draft = searching.direct_draft(ground, dtype)
    if draft is None:
        return iter(())
    space = instantiate.micro_space(ground.operator, ground.target.platform, draft, dtype)

    def first(arm: str) -> Sequence[Point]:
        return starts.micro(searching.known_starts(ground, dtype), draft, space)

    return searching.conduct(
        ground,
        dtype,
        Stage.DIRECT,
        {draft.name: Candidate(draft)},
        {draft.name: space},
        problems(ground, dtype),
        ground.budget(searching.DIRECT_SHARE),
        first,
        lambda arm: 1,
    )


def problems(ground: Ground, dtype: str) -> tuple[Problem, ...]:
    """What the direct way is tried on."""
    operator = ground.operator
    if operator.direct is None:
        return ()
    own = operator.suites[operator.direct.suite]
    most = max(work(operator, dtype, shape) for shape in own)
    small = tuple(shape for shape in dict.fromkeys((*own, *ground.job.shapes)) if work(operator, dtype, shape) <= most)
    return for_search(operator, dtype, small, ground.target.unit)


def winner(ground: Ground, dtype: str) -> Variant | None:
    """The best of that search; None where it had nothing to try or nothing passed."""
    draft = searching.direct_draft(ground, dtype)
    if draft is None:
        return None
    ended = searching.passed(ground, dtype, Stage.DIRECT, {draft.name: draft})
    best = min((f for f in ended if f.score.cost is not None), key=lambda f: f.score.cost or 0.0, default=None)
    return None if best is None else Variant(draft, best.trial.point)
