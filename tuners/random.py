"""Legal points in random order."""

from __future__ import annotations

import random

from tensorop.model.point import Point
from tensorop.space import Space

DESCRIPTION = "uniform over the legal points, without repeats; the yardstick for the others"
OPTIONS: dict[str, tuple[str, int | float | str]] = {}


class Tuner:
    """A permutation fixed by the seed; costs change nothing."""

    def __init__(self, space: Space, seed: int) -> None:
        self._order = iter(space.sample(random.Random(seed), space.size))
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
