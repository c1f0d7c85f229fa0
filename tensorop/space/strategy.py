"""Search strategies: what a tuner is, and finding one by its file's name.

A strategy is one Python file in a `tuners/` folder with

    DESCRIPTION: str                     one line
    class Tuner:                         see `Strategy`; `IndexedTuner` is most of one
        def __init__(self, space, seed)

It imports `tensorop.model` and `tensorop.space` only. What it asks for depends on space, seed and the costs so far, so
that a search resumes by telling it the journal.
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tensorop.errors import SpecError, UsageError
from tensorop.model.point import Point
from tensorop.space import Space
from tensorop.specs import catalog, pymodule

FAILURE = 1.5  # a failed trial counts as the worst cost seen times this


class Strategy(Protocol):
    """Asks for points and is told their cost."""

    def ask(self, n: int = 1) -> list[Point]:
        """Up to n legal points never asked before; [] when the space is exhausted."""

    def tell(self, point: Point, cost: float | None) -> None:
        """The cost (> 0, lower is better) of a point, asked for or not; None when its trial failed."""


class IndexedTuner(ABC):
    """A strategy that works on the numbers of legal points: `next` chooses one of those that are untried."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self.seed = space, seed
        self.costs: dict[int, float | None] = {}  # by number, in order of telling; None: the trial failed
        self.pending: dict[int, None] = {}  # asked for, without a cost yet
        self.untried = np.ones(space.size, dtype=bool)  # by number, whether it was never asked for nor told

    def ask(self, n: int = 1) -> list[Point]:
        """Up to n legal points that are untried; [] when there is none."""
        found: list[Point] = []
        while len(found) < n and self.untried.any():
            index = int(self.next())
            self.pending[index] = None
            self.untried[index] = False
            found.append(self.space.at(index))
        return found

    def tell(self, point: Point, cost: float | None) -> None:
        index = self.space.index(point)
        self.pending.pop(index, None)
        self.untried[index] = False
        self.costs[index] = cost

    @abstractmethod
    def next(self) -> int:
        """The number of a point that is untried; there is one."""

    @property
    def rng(self) -> random.Random:
        """Numbers that depend on the seed and on how many points are no longer untried, so that a search may go on."""
        return random.Random(f"{self.seed} {len(self.costs) + len(self.pending)}")

    @property
    def varied(self) -> bool:
        """Whether two trials that passed differ in cost."""
        return len({cost for cost in self.costs.values() if cost is not None}) > 1

    def ranked(self) -> list[int]:
        """The points with a cost, the best first, failed ones last."""
        costs = {index: math.inf if cost is None else cost for index, cost in self.costs.items()}
        return sorted(costs, key=lambda index: (costs[index], index))

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        return np.array([self.space.coordinates(index) for index in range(self.space.size)], dtype=np.int64)

    def nearest(self, row: NDArray[np.float64]) -> int:
        """The untried point that is nearest to these value numbers, in shares of each dimension's length."""
        lengths = np.maximum(1, self._rows.max(axis=0))
        numbers = np.flatnonzero(self.untried)
        far = (np.abs(self._rows[numbers] - row) / lengths).sum(axis=1)
        return int(numbers[int(np.argmin(far))])

    def remembered(self, memory: int, pending: Iterable[int] = ()) -> dict[int, float]:
        """What a model is fitted to, number -> logarithm of the cost: the best half of `memory` trials and the newest.

        A failed trial counts as the worst cost seen times FAILURE, a pending one as the best cost seen (constant
        liar), which sends the next one elsewhere. Some trial has to have passed.
        """
        costs = [cost for cost in self.costs.values() if cost is not None]
        worst = math.log(max(costs) * FAILURE)
        known = {index: worst if cost is None else math.log(cost) for index, cost in self.costs.items()}
        if len(known) > memory:
            newest = list(known)[-memory // 2 :]
            best = sorted(known, key=lambda index: (known[index], index))[: memory - len(newest)]
            known = {index: known[index] for index in dict.fromkeys([*best, *newest])}
        return known | dict.fromkeys(pending, math.log(min(costs)))


@dataclass(frozen=True)
class Tuner:
    """A strategy's file, loaded."""

    name: str
    path: Path
    description: str
    factory: Any

    def make(self, space: Space, seed: int) -> Strategy:
        """A fresh strategy; raises UsageError where a library is missing."""
        try:
            strategy: Strategy = self.factory(space, seed)
        except ImportError as error:
            raise UsageError(f"the tuner {self.name}: {error}", hint="install that, or choose another") from error
        return strategy


def names(extra: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """The tuners there are, the user's folders included."""
    return catalog.names("tuners", extra)


def load(name: str, extra: tuple[Path, ...] = ()) -> Tuner:
    """The tuner of that name. Raises UsageError when there is none, SpecError when its file breaks the contract."""
    path = catalog.find("tuners", name, extra)
    module = pymodule.load(path, f"tensorop_tuner_{name}")
    description = getattr(module, "DESCRIPTION", None)
    factory = getattr(module, "Tuner", None)
    if not isinstance(description, str):
        raise SpecError(f"{path}: DESCRIPTION is {description!r}; expected a line of text")
    if not callable(getattr(factory, "ask", None)) or not callable(getattr(factory, "tell", None)):
        raise SpecError(f"{path}: no class Tuner with ask(n) and tell(point, cost)")
    return Tuner(name, path, description, factory)
