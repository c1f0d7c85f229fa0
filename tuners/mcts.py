"""Monte Carlo tree search: a level of the tree chooses one tunable's value, a leaf is a legal point."""

from __future__ import annotations

import math
from collections import defaultdict

from tensorop.model.point import Point
from tensorop.space import Space
from tensorop.space.strategy import FAILURE, IndexedTuner

DESCRIPTION = "a tree of choices, one tunable a level, descended by UCT with the logarithm of the cost as reward"
EXPLORE = 0.3  # weight of what was tried seldom
_Prefix = tuple[int, ...]


class Tuner(IndexedTuner):
    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed)
        self._below: dict[_Prefix, list[int]] = defaultdict(list)  # the legal points below each choice
        for index in range(space.size):
            row = space.coordinates(index)
            for depth in range(len(row) + 1):
                self._below[row[:depth]].append(index)
        self._children: dict[_Prefix, list[_Prefix]] = defaultdict(list)
        for prefix in self._below:
            if prefix:
                self._children[prefix[:-1]].append(prefix)
        self._tried: dict[_Prefix, list[float]] = defaultdict(lambda: [0, math.inf, 0.0])  # trials, best, sum of logs
        self._range = [math.inf, -math.inf]

    def tell(self, point: Point, cost: float | None) -> None:
        fresh = self.space.index(point) not in self.costs
        super().tell(point, cost)
        if not fresh:
            return
        low, high = self._range
        log = math.log(cost) if cost is not None else (high if high > -math.inf else 0.0) + math.log(FAILURE)
        if cost is not None:
            self._range = [min(low, log), max(high, log)]
        row = self.space.coordinates(self.space.index(point))
        for depth in range(len(row) + 1):
            trials, best, total = self._tried[row[:depth]]
            self._tried[row[:depth]] = [trials + 1, min(best, log), total + log]

    def next(self) -> int:
        rng = self.rng
        here: _Prefix = ()
        while True:
            children = [c for c in self._children[here] if any(self.untried[index] for index in self._below[c])]
            fresh = [child for child in children if not self._tried[child][0]]
            if not children or fresh:  # a leaf, or a choice not tried: the rest by chance
                below = self._below[rng.choice(fresh) if fresh else here]
                return int(rng.choice([index for index in below if self.untried[index]]))
            here = max(children, key=lambda child: self._worth(child, self._tried[here][0]))

    def _worth(self, child: _Prefix, above: float) -> float:
        low, high = self._range
        trials, best, total = self._tried[child]
        if high <= low:
            return 1 / trials
        reward = (high - (best + total / trials) / 2) / (high - low)
        return reward + EXPLORE * math.sqrt(math.log(above + 1) / trials)
