"""Where searches begin: at what a platform's file and a draft name, and around an operator's defaults."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from tensorop.model.kernel import Draft
from tensorop.model.platform import Start
from tensorop.model.point import Point
from tensorop.space import Space


def micro(known: Sequence[Start], draft: Draft, space: Space) -> list[Point]:
    """Points of a draft's own space: those of the platform's starts, then the draft's own."""
    return list(dict.fromkeys([*named(known, draft, space), *_completed(space, draft.starts)]))


def unlike(known: Sequence[Start], draft: Draft, space: Space) -> list[Point]:
    """The first of `micro`'s points for each choice of the tunables that only whole problems show."""
    first: dict[tuple[int | str, ...], Point] = {}
    for point in micro(known, draft, space):
        first.setdefault(unseen(draft, point), point)
    return list(first.values())


def unseen(draft: Draft, point: Point) -> tuple[int | str, ...]:
    """A kernel's values of the tunables that only whole problems show."""
    return tuple(point[name] for name in draft.unseen)


def named(known: Sequence[Start], draft: Draft, space: Space) -> list[Point]:
    """Those of the platform's starts alone."""
    return _completed(space, [_part(start.point, space) for start in known if start.draft == draft.name])


def blockings(known: Sequence[Start], draft: Draft, point: Point, space: Space) -> list[Point]:
    """Those of the platform's starts that name this kernel: the legal points that agree with them."""
    return _completed(space, [_part(start.point, space) for start in known if agrees(start, draft.name, point)])


def agrees(start: Start, draft: str, point: Point) -> bool:
    """Whether a kernel is that of a start, which may leave tunables open."""
    return start.draft == draft and all(start.point.get(name, value) == value for name, value in point.items())


def is_own(draft: Draft, point: Point) -> bool:
    """Whether a kernel is one of its draft's own starts."""
    return any(set(start.items()) <= set(point.items()) for start in draft.starts)


def around(default: Mapping[str, int | str], space: Space, nothing_first: bool = False) -> list[Point]:
    """The legal points nearest to the default, one for each combination of the two-valued tunables: everything packed
    first, then nothing, or the other way round, then the mixed ones. Of a template's kernels every other one begins
    with the other end, so that however few trials there are show both."""
    switches = [name for name, values in space.dimensions if len(values) == 2]
    numbers = [name for name, values in space.dimensions if name not in switches]
    points = list(space.points())

    def far(point: Point) -> float:
        return sum(
            abs(int(point[name]).bit_length() - int(default[name]).bit_length()) for name in numbers
        ) + 1e-9 * sum(abs(int(point[name]) - int(default[name])) for name in numbers)

    found = []
    choices = [tuple(int(v) for v in dict(space.dimensions)[name]) for name in switches]
    for combination in sorted(itertools.product(*choices), key=lambda c: (len(set(c)) > 1, [-int(v) for v in c])):
        fitting = [p for p in points if all(p[n] == v for n, v in zip(switches, combination, strict=True))]
        if fitting:
            found.append(min(fitting, key=far))
    return [*found[1::-1], *found[2:]] if nothing_first else found


def _part(point: Point, space: Space) -> Point:
    """What of a point lies in this space's dimensions."""
    names = {name for name, _ in space.dimensions}
    return Point.of({name: value for name, value in point.items() if name in names})


def _completed(space: Space, wanted: Sequence[Point]) -> list[Point]:
    """For each of these the first legal point that agrees with it; none where it names what this space has not."""
    found = (space.first(start) for start in wanted)
    return list(dict.fromkeys(point for point in found if point is not None))
