"""Search strategies: the interface of a tuner, and loading one by its file's name.

A strategy is one Python file in a `tuners/` folder with

    DESCRIPTION: str                     one line
    class Tuner:                         see `Strategy`; `IndexedTuner` is most of one
        def __init__(self, space, seed)

It imports only `tensorop.model` and `tensorop.space`. Its requests depend on space, seed and earlier costs alone, so
that a resumed search can replay the journal to it.
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

FAILURE = 1.5  # a failed trial counts as this factor over the worst cost


class Strategy(Protocol):
    """Requests points and gets their costs."""

    def ask(self, n: int = 1) -> list[Point]:
        """Up to n legal points that were not requested before; [] when the space is exhausted."""

    def tell(self, point: Point, cost: float | None) -> None:
        """Gives the cost (> 0, lower is better) of a point, requested or not; None: its trial failed."""


class IndexedTuner(ABC):
    """A strategy over the numbers of legal points; `next` chooses one of the untried numbers."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self.seed = space, seed
        self.costs: dict[int, float | None] = {}  # number -> cost, in the order of `tell`; None: the trial failed
        self.pending: dict[int, None] = {}  # requested numbers without a cost yet
        self.untried = np.ones(space.size, dtype=bool)  # for each number: neither requested nor given

    def ask(self, n: int = 1) -> list[Point]:
        """Up to n untried points; [] when there is none."""
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
        """The number of an untried point; at least one exists."""

    @property
    def rng(self) -> random.Random:
        """A generator seeded by the seed and the number of tried points, so that a resumed search draws the same."""
        return random.Random(f"{self.seed} {len(self.costs) + len(self.pending)}")

    @property
    def varied(self) -> bool:
        """Whether two passed trials have different costs."""
        return len({cost for cost in self.costs.values() if cost is not None}) > 1

    def ranked(self) -> list[int]:
        """The points with a cost, the best first, failed ones last."""
        costs = {index: math.inf if cost is None else cost for index, cost in self.costs.items()}
        return sorted(costs, key=lambda index: (costs[index], index))

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        return np.array([self.space.coordinates(index) for index in range(self.space.size)], dtype=np.int64)

    def nearest(self, row: NDArray[np.float64]) -> int:
        """The untried point nearest to these value numbers; distances are shares of each dimension's length."""
        lengths = np.maximum(1, self._rows.max(axis=0))
        numbers = np.flatnonzero(self.untried)
        far = (np.abs(self._rows[numbers] - row) / lengths).sum(axis=1)
        return int(numbers[int(np.argmin(far))])

    def remembered(self, memory: int, pending: Iterable[int] = ()) -> dict[int, float]:
        """Training data of a model, number -> logarithm of the cost: the best half of `memory` trials and the newest.

        A failed trial counts as FAILURE times the worst cost. A pending one counts as the best cost (constant liar), so
        that the next request goes elsewhere. At least one trial must have passed.
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
    """A loaded strategy file."""

    name: str
    path: Path
    description: str
    factory: Any

    def make(self, space: Space, seed: int) -> Strategy:
        """A new strategy. Raises UsageError if a package is missing."""
        try:
            strategy: Strategy = self.factory(space, seed)
        except ImportError as error:
            raise UsageError(
                f"the tuner {self.name} cannot start: {error}",
                hint="install the missing package, or choose another --tuner",
            ) from error
        return strategy

    def check(self) -> None:
        """Raises UsageError if a package is missing."""
        self.make(Space.of({"a": (0, 1), "b": (0, 1, 2)}, (), {}), 0)


def names(extra: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """Names of all tuners, including those in the user's folders."""
    return catalog.names("tuners", extra)


def load(name: str, extra: tuple[Path, ...] = ()) -> Tuner:
    """The tuner of that name. Raises UsageError if there is none, SpecError if its file breaks the contract."""
    path = catalog.find("tuners", name, extra)
    module = pymodule.load(path, f"tensorop_tuner_{name}")
    description = getattr(module, "DESCRIPTION", None)
    factory = getattr(module, "Tuner", None)
    if not isinstance(description, str):
        raise SpecError(f"{path}: DESCRIPTION is {description!r}; expected a line of text")
    if not callable(getattr(factory, "ask", None)) or not callable(getattr(factory, "tell", None)):
        raise SpecError(f"{path}: expected a class Tuner with ask(n) and tell(point, cost), got none")
    return Tuner(name, path, description, factory)
