"""One check of a grid: a problem, its kind of inputs, and the placement of its buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tensorop.model.call import Placement
from tensorop.model.point import Point, Value
from tensorop.model.problem import Problem


@dataclass(frozen=True)
class Case:
    """One check."""

    problem: Problem
    distribution: str = "normal"  # kind of inputs, as the operator names it (normal, integer, wide, special)
    placement: Placement = Placement.END
    start: str = "poison"  # contents of an output that is not read, as the operator names them

    @property
    def label(self) -> str:
        output = "" if self.start == "poison" else f", output begins as {self.start}"
        guard = f"guard page at the {self.placement.value}"
        return f"{self.problem.label}, {self.distribution} inputs{output}, {guard}"


def distinct(*sizes: int) -> tuple[Value, ...]:
    """The sizes over 0, each once."""
    return tuple(dict.fromkeys(size for size in sizes if size > 0))


def edges(tile: Mapping[str, int], rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Each number of columns that may be left after whole tiles, with numbers of rows in turn. tile: mr, nr"""
    rows = rng.permutation(np.arange(1, tile["mr"] + 1))
    for number in range(max(tile["nr"], 1)):
        yield int(rows[number % len(rows)]), number + 1


def cover(factors: Mapping[str, Sequence[Value]], rng: np.random.Generator) -> tuple[Point, ...]:
    """Points in which every pair of values of two factors occurs at least once (pairwise testing).

    Greedy, after AETG (Cohen et al., IEEE TSE 23(7), 1997): each point starts from an uncovered pair, and every other
    factor takes the value that covers the most pairs. The number of points is about the product of the lengths of the
    two longest factors.
    """
    names = list(factors)
    if len(names) < 2:
        return tuple(Point.of({name: value}) for name in names for value in factors[name])
    # a dict keeps the order of the factors, so that equal seeds give equal grids
    missing = {(a, x, b, y): None for a, b in combinations(names, 2) for x in factors[a] for y in factors[b]}
    points: list[Point] = []
    while missing:
        a, x, b, y = next(iter(missing))
        chosen: dict[str, Value] = {a: x, b: y}
        rest = [name for name in names if name not in chosen]
        for i in rng.permutation(len(rest)):
            name = rest[i]
            values = factors[name]
            order = rng.permutation(len(values))
            gains = [sum(_pair(names, name, values[j], *other) in missing for other in chosen.items()) for j in order]
            chosen[name] = values[order[int(np.argmax(gains))]]
        for c, d in combinations(names, 2):
            missing.pop((c, chosen[c], d, chosen[d]), None)
        points.append(Point.of(chosen))
    return tuple(points)


def _pair(names: list[str], a: str, x: Value, b: str, y: Value) -> tuple[str, Value, str, Value]:
    return (a, x, b, y) if names.index(a) < names.index(b) else (b, y, a, x)
