"""An evolutionary search: children of the best points so far, crossed and mutated until they are legal and new."""

from __future__ import annotations

from tensorop.space import Space
from tensorop.space.strategy import IndexedTuner

DESCRIPTION = "children of two of the best points so far, each tunable from either, with mutations"
INITIAL = 16  # random points before the first child
PARENTS = 12  # of so many of the best points the next children are made
TRIES = 40  # children drawn for each ask, before a random point is taken


class Tuner(IndexedTuner):
    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed)
        self._order = {space.coordinates(index): index for index in range(space.size)}

    def next(self) -> int:
        rng, best = self.rng, self.ranked()[:PARENTS]
        if len(self.costs) >= INITIAL and len(best) > 1:
            for _ in range(TRIES):
                # the better of two draws, twice
                one, other = (self.space.coordinates(best[min(rng.randrange(len(best)) for _ in "ab")]) for _ in "ab")
                child = [a if rng.random() < 0.5 else b for a, b in zip(one, other, strict=True)]
                for axis, (_, values) in enumerate(self.space.dimensions):
                    if rng.random() < 1.5 / len(child):
                        child[axis] = rng.randrange(len(values))
                index = self._order.get(tuple(child))
                if index is not None and self.untried[index]:
                    return index
        return int(rng.choice(self.untried.nonzero()[0]))
