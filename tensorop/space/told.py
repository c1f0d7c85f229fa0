"""What most search strategies share: the points told and asked for, by number, and the next one of those left."""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tensorop.model.point import Point
from tensorop.space.space import Space


class Told(ABC):
    """A strategy that says which legal point is next, by number, from what was told.

    told: number -> cost, None where the trial failed, in order of telling; pending: asked, not told; left: by number,
    whether a point is neither
    """

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self.seed = space, seed
        self.told: dict[int, float | None] = {}
        self.pending: dict[int, None] = {}
        self.left = np.ones(space.size, dtype=bool)
        self.rows: NDArray[np.int64] = np.array([space.coordinates(i) for i in range(space.size)], dtype=np.int64)

    def ask(self, n: int = 1) -> list[Point]:
        """Up to n legal points never asked or told before; [] when none is left."""
        found: list[Point] = []
        while len(found) < n and self.left.any():
            index = int(self.next())
            self.pending[index] = None
            self.left[index] = False
            found.append(self.space.at(index))
        return found

    def tell(self, point: Point, cost: float | None) -> None:
        index = self.space.index(point)
        self.pending.pop(index, None)
        self.left[index] = False
        self.told[index] = cost

    @abstractmethod
    def next(self) -> int:
        """The number of a point that is left, of which there is one."""

    @property
    def rng(self) -> random.Random:
        """Numbers that depend on the seed and on how many points were asked and told, so that a search may go on."""
        return random.Random(f"{self.seed} {len(self.told) + len(self.pending)}")

    @property
    def varied(self) -> bool:
        """Whether two trials that passed differ in cost."""
        return len({cost for cost in self.told.values() if cost is not None}) > 1

    def ranked(self) -> list[int]:
        """The points told, the best first, failed ones last."""
        costs = {index: math.inf if cost is None else cost for index, cost in self.told.items()}
        return sorted(costs, key=lambda index: (costs[index], index))

    def nearest(self, row: NDArray[np.float64]) -> int:
        """The point left that is nearest to these value numbers, in shares of each dimension's length."""
        lengths = np.maximum(1, self.rows.max(axis=0))
        numbers = np.flatnonzero(self.left)
        far = (np.abs(self.rows[numbers] - row) / lengths).sum(axis=1)
        return int(numbers[int(np.argmin(far))])

    def remembered(self, memory: int, failure: float, pending: Iterable[int] = ()) -> dict[int, float]:
        """What a model is fitted to, number -> logarithm of the cost: the best half of `memory` trials and the newest.

        A failed trial counts as the worst cost seen times `failure`, a pending one as the best cost seen (constant
        liar), which sends the next one elsewhere. Some trial has to have passed.
        """
        costs = [cost for cost in self.told.values() if cost is not None]
        worst = math.log(max(costs) * failure)
        known = {index: worst if cost is None else math.log(cost) for index, cost in self.told.items()}
        if len(known) > memory:
            newest = list(known)[-memory // 2 :]
            best = sorted(known, key=lambda index: (known[index], index))[: memory - len(newest)]
            known = {index: known[index] for index in dict.fromkeys([*best, *newest])}
        return known | dict.fromkeys(pending, math.log(min(costs)))
