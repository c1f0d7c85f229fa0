"""Tries a new template at a few points, by the path of a trial."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from tensorop.author import plans
from tensorop.author.llm import machine
from tensorop.author.plans import Counted, PlanStatement
from tensorop.errors import JobError, SpecError, TensoropError
from tensorop.model.kernel import Kernel, KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.trial import Kind, Limit, Outcome
from tensorop.process import barrier
from tensorop.render import instantiate, prior
from tensorop.space import Space, seeds

PLANNED_POINTS = 32  # at which a plan is checked
PATIENT = Limit(3600.0, "an hour")


def legal(operator: Operator, platform: Platform, template: KernelTemplate, dtype: str) -> Space | Outcome:
    """The template's legal points for a dtype, or the refusal of one without primitives or points."""
    return barrier.guarded("author", _legal, operator, platform, template, dtype)


def _legal(operator: Operator, platform: Platform, template: KernelTemplate, dtype: str) -> Space | Outcome:
    missing = instantiate.missing_primitives(platform, template, dtype)
    if missing:
        return Outcome(Kind.REFUSED, "author", f"it needs {', '.join(missing)}, which {platform.name} does not have")
    try:
        space = instantiate.micro_space(platform, template, dtype)
        prior.first(platform, template, dtype, space)
        with contextlib.suppress(JobError):  # no blocking fits its tile
            instantiate.blocking_space(operator, platform, Kernel(template, dtype, space.at(0)))
    except TensoropError as error:
        return Outcome(Kind.REFUSED, "author", str(error))
    return space


def chosen(template: KernelTemplate, space: Space, count: int) -> tuple[Point, ...]:
    """`count` points: the template's seed configurations, then points spread over its space."""
    own = seeds.named(seeds.own(template, space), template, space)
    others = [space.at(index) for index in spread(space, count)]
    return tuple(dict.fromkeys([*own, *others]))[:count]


def planned(platform: Platform, template: KernelTemplate, dtype: str, space: Space) -> Outcome | None:
    """The refusal of a plan that holds at none of the points that are checked; None for one that holds, or for none."""
    if not (plan := plans.parse(template.plan, f"template '{template.name}'")):
        return None
    points = chosen(template, space, PLANNED_POINTS)
    try:
        found = [_counted(plan, platform, dtype, point) for point in points]
    except SpecError as error:
        return Outcome(Kind.REFUSED, "author", f"plan: {error}")
    if any(not one.wrong for one in found):
        return None
    message = f"plan: at {points[0]}, {found[0].wrong}; no other of {len(points)} configurations holds either"
    return Outcome(Kind.REFUSED, "author", message)


def planned_at(platform: Platform, kernel: Kernel) -> Counted | None:
    """What a template's plan counts at a kernel's configuration; None without a plan."""
    template = kernel.template
    plan = plans.parse(template.plan, f"template '{template.name}'")
    return _counted(plan, platform, kernel.dtype, kernel.configuration) if plan else None


def _counted(plan: Sequence[PlanStatement], platform: Platform, dtype: str, point: Point) -> Counted:
    values = {**instantiate.facts(platform, dtype, point), **point}
    return plans.counted(plan, values, machine.machine(platform, dtype))


def configured(template: KernelTemplate, space: Space) -> Outcome:
    """Whether a seed configuration is legal; the refusal says what is wrong with the first one."""
    if seeds.named(seeds.own(template, space), template, space):
        return Outcome(Kind.OK, "author")
    first, values = template.seed_configurations[0], dict(space.dimensions)
    unknown = [f"{name}={value}" for name, value in first.items() if value not in values.get(name, ())]
    why = f"the space has no {', '.join(unknown)}" if unknown else "its constraints exclude it"
    many = len(template.seed_configurations)
    message = f"none of the {many} configurations of {template.name} is legal: of {first}, {why}"
    return Outcome(Kind.REFUSED, "author", message)


def spread(space: Space, count: int) -> list[int]:
    """Numbers of `count` points, evenly over the space; fewer in a smaller space."""
    return sorted({space.size * i // count for i in range(count)})


def evenly(of: int, count: int) -> list[int]:
    """At most `count` numbers from 0 to `of` - 1, evenly and with both ends."""
    return sorted({round(i * (of - 1) / max(1, count - 1)) for i in range(count)}) if of else []
