"""A new template before the judge: is there a legal point, and does it pass where a trial would take it."""

from __future__ import annotations

import contextlib

from tensorop.errors import JobError, TensoropError
from tensorop.model.kernel import Kernel, KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.trial import Kind, Outcome
from tensorop.process import barrier
from tensorop.render import instantiate, prior
from tensorop.space import Space, seeds
from tensorop.trial.trial import Limit

PATIENT = Limit(3600.0, "an hour")


def legal(operator: Operator, platform: Platform, template: KernelTemplate, dtype: str) -> Space | Outcome:
    """The template's legal points for a dtype; the refusal of one that lacks primitives or has no such point."""
    return barrier.guarded("author", _legal, operator, platform, template, dtype)


def _legal(operator: Operator, platform: Platform, template: KernelTemplate, dtype: str) -> Space | Outcome:
    missing = instantiate.missing_primitives(platform, template, dtype)
    if missing:
        return Outcome(Kind.REFUSED, "author", f"it needs {', '.join(missing)}, which {platform.name} does not have")
    try:
        space = instantiate.micro_space(platform, template, dtype)
        prior.first(platform, template, dtype, space)
        with contextlib.suppress(JobError):  # a tile that no blocking fits has lost
            instantiate.blocking_space(operator, platform, Kernel(template, dtype, space.at(0)))
    except TensoropError as error:
        return Outcome(Kind.REFUSED, "author", str(error))
    return space


def chosen(template: KernelTemplate, space: Space, count: int) -> tuple[Point, ...]:
    """A template's own seed configurations, then points spread over its space, as many as `count`."""
    own = seeds.named(seeds.own(template, space), template, space)
    others = [space.at(index) for index in spread(space, count)]
    return tuple(dict.fromkeys([*own, *others]))[:count]


def spread(space: Space, count: int) -> list[int]:
    """Numbers of so many points, evenly over the space; fewer where it has fewer."""
    return sorted({space.size * i // count for i in range(count)})
