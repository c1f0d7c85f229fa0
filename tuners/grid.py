"""Legal points one after the other."""

from __future__ import annotations

from tensorop.model.point import Point
from tensorop.space import Space

DESCRIPTION = "every legal point in the order of the tunables' values; for small spaces and for looking at all"
OPTIONS: dict[str, tuple[str, int | float | str]] = {}


class Tuner:
    """The space's own order; neither seed nor costs change anything."""

    def __init__(self, space: Space, seed: int) -> None:
        self._order = space.points()
        self._seen: set[Point] = set()

    def ask(self, n: int = 1) -> list[Point]:
        found: list[Point] = []
        while len(found) < n and (point := next(self._order, None)) is not None:
            if point not in self._seen:
                self._seen.add(point)
                found.append(point)
        return found

    def tell(self, point: Point, cost: float | None) -> None:
        self._seen.add(point)
