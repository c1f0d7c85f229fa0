"""An evolutionary search: children of the best points so far, crossed and mutated until they are legal and new."""

from __future__ import annotations

from tensorop.space import Space
from tensorop.space.told import Told

DESCRIPTION = "children of two of the best points so far, each tunable from either, with mutations"
OPTIONS: dict[str, tuple[str, int | float | str]] = {
    "initial": ("random points before the first child", 16),
    "parents": ("of how many of the best points the next children are", 12),
    "tries": ("children drawn for each ask, before a random point is taken", 40),
}


class Tuner(Told):
    def __init__(self, space: Space, seed: int, initial: int = 16, parents: int = 12, tries: int = 40) -> None:
        super().__init__(space, seed)
        self._initial, self._parents, self._tries = int(initial), int(parents), int(tries)
        self._order = {space.coordinates(index): index for index in range(space.size)}

    def next(self) -> int:
        rng, best = self.rng, self.ranked()[: self._parents]
        if len(self.told) >= self._initial and len(best) > 1:
            for _ in range(self._tries):
                # the better of two draws, twice
                one, other = (self.space.coordinates(best[min(rng.randrange(len(best)) for _ in "ab")]) for _ in "ab")
                child = [a if rng.random() < 0.5 else b for a, b in zip(one, other, strict=True)]
                for axis, (_, values) in enumerate(self.space.dimensions):
                    if rng.random() < 1.5 / len(child):
                        child[axis] = rng.randrange(len(values))
                index = self._order.get(tuple(child))
                if index is not None and self.left[index]:
                    return index
        return int(rng.choice(self.left.nonzero()[0]))
