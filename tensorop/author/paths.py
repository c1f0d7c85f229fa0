"""The paths of a tile: the outcomes of its conditions and loops that its arguments can bring about together.

What decides a tile's path becomes a function of Python, which is run on numbers: sizes up to MOST_SIZE and around
multiples of `lanes`, strides as an operator's layouts give them, coefficients 0, 1 and another. A path is the outcome
of each comparison, and whether each loop has no turn, one or several, with the paths that its turns take. From each
path found, each argument, and each group of arguments that one comparison depends on, takes all its values. So a path
is missed only if it takes two changes at once of which neither shows alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from tensorop.author.grammar import Broken

MOST_PATHS = 512
MOST_SIZE = 192
MOST_VECTORS = 36  # sizes around multiples of `lanes` up to this are tried too
ANOTHER = 2  # stands for a coefficient that is neither 0 nor 1
_MOST_TOGETHER = 1 << 16  # values of arguments that one comparison depends on
_MOST_TURNS = 1 << 20  # of loops whose turns differ, in all runs of one text

Signature = tuple[Any, ...]  # outcomes in order; of a loop whose turns differ, the set of its turns' signatures
Call = Mapping[str, int]  # the arguments that decide its path
Paths = Mapping[Signature, tuple[Call, ...]]  # calls of each kind that take a path


@dataclass(frozen=True)
class LaidOperand:
    """How an operand of a tile lies: two sides with their strides, of which one is 1."""

    sides: tuple[str, str]  # Python, of the tile's sizes and LANES
    strides: tuple[str, str]  # names, or "1"

    def layouts(self) -> list[tuple[str, str, int]]:
        """Name and length of a stride that is not 1, and how much longer it is than it must be."""
        ends = [one for one in (1, 0) if self.strides[one] == "1" or self.strides[1 - one] != "1"]
        return [(self.strides[1 - one], self.sides[one], more) for one in ends for more in (0, 1)]


@dataclass(frozen=True)
class Tile:
    """What decides the path of a tile. Tiles with equal ones share their paths."""

    code: str  # a function `run` of `given` and `lanes`, in Python
    given: tuple[str, ...]  # sizes, strides and coefficients that decide
    arguments: tuple[str, ...]  # the same, with operands (by number) in place of their strides, and their sizes
    groups: tuple[frozenset[str], ...]  # arguments on which one comparison depends; each argument is in one
    sizes: tuple[str, ...]  # those of `arguments` that are sizes
    operands: tuple[LaidOperand, ...]  # those whose strides decide
    holds: tuple[str, ...]  # facts of its contract, in Python

    def paths(self, lanes: int) -> Paths:
        """Small calls of each path, the likeliest first. Raises Broken if there are too many paths to call."""
        return _searched(self, lanes)


@dataclass(frozen=True)
class KernelPaths:
    """The paths of one kernel's text."""

    tiles: Mapping[str, Tile]  # by the name of their function
    lanes: Mapping[int, int]  # VLEN (bits) -> elements of a vector

    def at(self, vlen: int) -> Iterator[tuple[str, Signature, tuple[Call, ...]]]:
        """Each tile's paths, with calls that take them. Raises Broken if there are too many to call."""
        for name, tile in self.tiles.items():
            for path, calls in tile.paths(self.lanes[vlen]).items():
                yield name, path, calls


@lru_cache(maxsize=1 << 10)
def _searched(tile: Tile, lanes: int) -> Paths:
    search = _Search(tile, lanes)
    found: dict[Signature, dict[Hashable, Call]] = {}
    left: list[Call] = []
    done = set[Hashable]()

    def tried(points: Iterable[Call]) -> None:
        for point in points:
            if (call := search.call(point)) is None:
                continue
            path, kind = search.run(call), search.kind(call)
            if (calls := found.get(path)) is None:
                calls = found[path] = {}
                left.append(point)
                if len(found) > MOST_PATHS:
                    raise Broken("path", f"its conditions and loops take more than {MOST_PATHS} paths")
            if kind not in calls or search.work(call) < search.work(calls[kind]):
                calls[kind] = call

    tried(search.first())
    while left:
        at = left.pop()
        for group in tile.groups:
            key = group, *(item for item in at.items() if item[0] not in group)
            if key not in done:
                done.add(key)
                tried(search.around(at, group))
    return {path: tuple(sorted(calls.values(), key=search.order)) for path, calls in found.items()}


class _Search:
    """Runs one tile at one number of lanes."""

    def __init__(self, tile: Tile, lanes: int) -> None:
        self.tile, self.lanes, self.spent = tile, lanes, 0
        space: dict[str, Any] = {"SPEND": self._spend, "LANES": lanes}
        exec(tile.code, space)
        self.function = space["run"]
        self.facts = [compile(one, "contract", "eval") for one in tile.holds]
        self.sizes = frozenset(tile.sizes)
        self.scales = frozenset(tile.arguments) - self.sizes - {of for of in tile.arguments if of.isdigit()}
        self.values = {name: self._values(name) for name in tile.arguments}
        needed = {of for of in tile.arguments if of.isdigit()}
        self.layouts = {
            of: [(name, compile(length, "contract", "eval"), more) for name, length, more in one.layouts()]
            for of, one in ((of, tile.operands[int(of)]) for of in needed)
        }
        strides = {name for of in needed for name in tile.operands[int(of)].strides}
        self.of_strides = [one for one in self.facts if strides.intersection(one.co_names)]
        for group in tile.groups:
            many = math.prod(len(self.values[name]) for name in group)
            if many > _MOST_TOGETHER:
                names = " and ".join(f"'{name}'" for name in sorted(group))
                raise Broken("path", f"a condition compares {names} together, in {many} combinations")

    def _spend(self) -> None:
        self.spent += 1
        if self.spent > _MOST_TURNS:
            raise Broken("path", f"its loops take more than {_MOST_TURNS} turns until their paths are found")

    def _values(self, name: str) -> Sequence[int]:
        if name.isdigit():
            return range(len(self.tile.operands[int(name)].layouts()))
        if name not in self.tile.sizes:
            return (0, 1, ANOTHER)
        lanes = self.lanes
        near = {turns * lanes + more for turns in range(1, MOST_VECTORS) for more in (-1, 0, 1)}
        most = next((x for x in range(MOST_SIZE, 0, -1) if self._may(name, x)), 0)
        last = () if most else range(1, MOST_VECTORS * lanes)
        return [x for x in sorted({*range(1, MOST_SIZE + 1), *near, *last}) if x > 0 and self._may(name, x)]

    def _may(self, name: str, value: int) -> bool:
        """Whether the contract's facts on one size alone admit a value."""
        own = {name, "LANES"}
        known = {name: value, "LANES": self.lanes}
        return all(_number(one, known) for one in self.facts if own.issuperset(one.co_names))

    def first(self) -> Iterator[Call]:
        """Where the search begins: the smallest sizes, in each layout."""
        laid = [self.values[name] if name.isdigit() else self.values[name][:1] for name in self.tile.arguments]
        for point in itertools.product(*laid):
            yield dict(zip(self.tile.arguments, point, strict=True))

    def around(self, at: Call, group: Collection[str]) -> Iterator[Call]:
        names = sorted(group)
        for values in itertools.product(*(self.values[name] for name in names)):
            yield {**at, **dict(zip(names, values, strict=True))}

    def run(self, call: Call) -> Signature:
        path: Signature = self.function(*(call[name] for name in self.tile.given), self.lanes)
        return path

    def call(self, point: Call) -> Call | None:
        """The arguments, with strides in place of layouts; None if the contract excludes the call."""
        if not self.layouts:
            return point
        call = {"LANES": self.lanes} | {name: value for name, value in point.items() if not name.isdigit()}
        for of, layouts in self.layouts.items():
            name, length, more = layouts[point[of]]
            tight = _number(length, call)
            if more and tight > 1:
                return None  # another number that is not 1
            strides = self.tile.operands[int(of)].strides
            call |= {one: 1 for one in strides if one not in (name, "1")} | {name: tight + more}
        if any(call.keys() >= {*one.co_names} and not _number(one, call) for one in self.of_strides):
            return None
        del call["LANES"]
        return call

    def kind(self, call: Call) -> Hashable:
        """Which coefficients a call has, and which strides are 1: an operator may have no call of some kinds."""
        return tuple(
            value if name in self.scales else value == 1 for name, value in call.items() if name not in self.sizes
        )

    def order(self, call: Call) -> tuple[int, int]:
        """Any coefficients first, since an operator may compute without tiles where one is 0; then small sizes."""
        return -sum(call[name] for name in self.scales), self.work(call)

    def work(self, call: Call) -> int:
        return math.prod(call[name] for name in self.sizes)


def _number(of: CodeType, known: Mapping[str, int]) -> int:
    """The value of an expression of a contract, which is the operator's own text."""
    return int(eval(of, {"__builtins__": {}, **known}))
