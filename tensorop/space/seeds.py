"""Starting points of a search: winners of earlier searches, seed configurations, and the best expected points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def of_each_choice(ranked: Iterable[Point], space: Space) -> list[Point]:
    """The first of the ranked points for each combination of the space's two-valued tunables."""
    switches = [name for name, values in space.dimensions if len(values) == 2]
    first: dict[tuple[int | str, ...], Point] = {}
    for point in ranked:
        first.setdefault(tuple(point[name] for name in switches), point)
    return list(first.values())


def _part(point: Point, space: Space) -> Point:
    """The part of a point that lies in this space's dimensions."""
    names = {name for name, _ in space.dimensions}
    return Point.of({name: value for name, value in point.items() if name in names})


def _completed(space: Space, wanted: Sequence[Point]) -> list[Point]:
    """For each starting point the first legal point that agrees with it; none for unknown dimensions or values."""
    found = (space.first(start) for start in wanted)
    return list(dict.fromkeys(point for point in found if point is not None))
