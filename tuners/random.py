"""Legal points in random order."""

from __future__ import annotations

import random

from tensorop.space import Space
from tensorop.space.strategy import IndexedTuner

DESCRIPTION = "uniform over the legal points, without repeats; the yardstick for the others"


class Tuner(IndexedTuner):
    """A permutation fixed by the seed; costs change nothing."""

    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed)
        self._order = iter(random.Random(seed).sample(range(space.size), space.size))

    def next(self) -> int:
        return next(number for number in self._order if self.untried[number])
