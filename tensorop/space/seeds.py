"""Starting points of a search: winners of earlier searches, seed configurations, and points near a prior."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tensorop.model.kernel import Kernel, KernelTemplate
from tensorop.model.point import Point
from tensorop.model.winner import StartPoint
from tensorop.space import Space


def own(template: KernelTemplate, space: Space) -> tuple[StartPoint, ...]:
    """The template's seed configurations as starting points."""
    names = {name for name, _ in space.dimensions}
    return tuple(StartPoint(template.name, point) for point in template.seed_configurations if names.issuperset(point))


def named(known: Sequence[StartPoint], template: KernelTemplate, space: Space) -> list[Point]:
    """The legal points of a template's space that agree with a starting point."""
    return _completed(space, [_part(one.point, space) for one in known if one.template == template.name])


def unlike(known: Sequence[StartPoint], template: KernelTemplate, space: Space) -> list[Point]:
    """The first starting point for each value of the tunables that show only in whole problems."""
    first: dict[tuple[int | str, ...], Point] = {}
    for point in named(known, template, space):
        first.setdefault(unseen(template, point), point)
    return list(first.values())


def unseen(template: KernelTemplate, point: Point) -> tuple[int | str, ...]:
    """A configuration's values of the tunables that show only in whole problems."""
    apart = template.prior.apart if template.prior else ()
    return tuple(point[name] for name in (*template.unseen, *apart) if name in point)


def blockings(known: Sequence[StartPoint], kernel: Kernel, space: Space) -> list[Point]:
    """The legal blockings of a kernel that agree with a starting point."""
    return _completed(space, [_part(one.point, space) for one in known if agrees(one, kernel)])


def agrees(one: StartPoint, kernel: Kernel) -> bool:
    """Whether a kernel agrees with a starting point, which may leave tunables open."""
    own = kernel.configuration.items()
    return one.template == kernel.template.name and all(one.point.get(name, value) == value for name, value in own)


def around(prior: Callable[[Mapping[str, int | str]], Point], space: Space, nothing_first: bool = False) -> list[Point]:
    """The legal points nearest to the prior, one for each combination of the two-valued tunables.

    First all of the prior's choices, then none of them (or the reverse with `nothing_first`), then mixed ones. Every
    second kernel of a template begins with the reverse, so that few trials show both ends.
    """
    switches = [name for name, values in space.dimensions if len(values) == 2]
    numbers = [name for name, values in space.dimensions if name not in switches]
    points = list(space.points())

    def far(point: Point, wanted: Point) -> float:
        return sum(abs(math.log(max(1, int(point[name])) / max(1, int(wanted[name])))) for name in numbers)

    found: dict[bool, list[Point]] = {True: [], False: []}
    choices = (tuple(int(v) for v in dict(space.dimensions)[name]) for name in switches)
    for combination in sorted(itertools.product(*choices), key=lambda c: [-sum(c), *(-v for v in c)]):
        choice = dict(zip(switches, combination, strict=True))
        wanted = prior(choice)
        if fitting := [p for p in points if all(p[n] == v for n, v in choice.items())]:
            expected = all(wanted[name] == value for name, value in choice.items())
            found[expected].append(min(fitting, key=partial(far, wanted=wanted)))
    usual = [*found[True][:1], *found[True][:0:-1][:1], *found[True][1:-1]]
    return [*(usual[1::-1] if nothing_first else usual[:2]), *usual[2:], *found[False]]


def _part(point: Point, space: Space) -> Point:
    """The part of a point that lies in this space's dimensions."""
    names = {name for name, _ in space.dimensions}
    return Point.of({name: value for name, value in point.items() if name in names})


def _completed(space: Space, wanted: Sequence[Point]) -> list[Point]:
    """For each starting point the first legal point that agrees with it; none for unknown dimensions or values."""
    found = (space.first(start) for start in wanted)
    return list(dict.fromkeys(point for point in found if point is not None))
