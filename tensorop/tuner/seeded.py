"""A strategy that starts from given points."""

from __future__ import annotations

from collections.abc import Sequence

from tensorop.model.point import Point
from tensorop.space import Space
from tensorop.tuner.strategy import Strategy


class Nothing:
    """A strategy without ideas of its own: with `Seeded`, the given points and no others."""

    def ask(self, n: int = 1) -> list[Point]:
        return []

    def tell(self, point: Point, cost: float | None) -> None:
        return None


class Seeded:
    """Asks for `first` (those of them that are legal), then for what the inner strategy asks; never a point twice.

    The inner strategy is told everything, so it learns from the first points too.
    """

    def __init__(self, inner: Strategy, space: Space, first: Sequence[Point]) -> None:
        self._inner = inner
        self._queue = [point for point in dict.fromkeys(first) if point in space]
        self._seen: set[Point] = set()

    def ask(self, n: int = 1) -> list[Point]:
        wanted: list[Point] = []
        while len(wanted) < n:
            points = self._queue[:1] or self._inner.ask(1)
            if not points:
                break
            self._queue = self._queue[1:]
            wanted += [point for point in points if point not in self._seen]
            self._seen.update(points)
        return wanted

    def tell(self, point: Point, cost: float | None) -> None:
        self._seen.add(point)
        self._queue = [waiting for waiting in self._queue if waiting != point]
        self._inner.tell(point, cost)
