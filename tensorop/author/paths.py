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
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
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
def compiled(code: str) -> CodeType:
    """A tile's code, or a search's. Raises the errors of `compile`."""
    return compile(code, "tile", "exec")


class Beyond(Broken):
    """More than is tried. names: the arguments that one comparison depends on; loop: the number of a loop, from 1."""

    def __init__(self, what: str, names: frozenset[str] = frozenset(), loop: int = 0) -> None:
        super().__init__("path", what)
        self.names, self.loop = names, loop


@lru_cache(maxsize=1 << 10)
def _searched(tile: Tile, lanes: int) -> Paths:
    search = _Search(tile, lanes)
    found: dict[Signature, dict[Hashable, tuple[int, Call]]] = {}
    left: list[Point] = []
    done = set[Hashable]()

    def tried(points: Iterable[Point]) -> None:
        for point in points:
            if (taken := search.take(*point)) is None:
                continue
            path, kind, work, strides = taken
            if (calls := found.get(path)) is None:
                calls = found[path] = {}
                left.append(point)
                if len(found) > MOST_PATHS:
                    raise Beyond(f"its conditions and loops take more than {MOST_PATHS} paths")
            if kind not in calls or work < calls[kind][0]:
                calls[kind] = work, search.call(point, strides)

    tried(itertools.product(*search.first))
    while left:
        at = left.pop()
        for group in search.groups:
            key = group, *(value for i, value in enumerate(at) if i not in group)
            if key not in done:
                done.add(key)
                one = [values if i in group else (at[i],) for i, values in enumerate(search.values)]
                tried(itertools.product(*one))
    return {path: search.in_order(calls.values()) for path, calls in found.items()}


Point = tuple[int, ...]  # a value of each of a tile's arguments


class _Search:
    """Runs one tile at one number of lanes.

    take: of a value of each argument, the path, the kind of the call (which coefficients it has, and which strides are
    1: an operator may have no call of some kinds), the product of the sizes, and the strides; None if the contract
    excludes the call
    """

    def __init__(self, tile: Tile, lanes: int) -> None:
        self.tile, self.lanes, self.spent = tile, lanes, 0
        self.laid = [name for name in tile.arguments if name.isdigit()]
        self.named = [name for name in tile.arguments if not name.isdigit()]
        self.scales = [name for name in self.named if name not in tile.sizes]
        of_operands = (name for of in self.laid for name in tile.operands[int(of)].strides if name != "1")
        self.strides = list(dict.fromkeys(of_operands))
        self.facts = {one: frozenset(compile(one, "contract", "eval").co_names) for one in tile.holds}
        self.values = [self._values(name) for name in tile.arguments]
        self.first = [v if n.isdigit() else v[:1] for n, v in zip(tile.arguments, self.values, strict=True)]
        self.groups: list[frozenset[int]] = []
        for group in tile.groups:
            self.groups.append(frozenset(map(tile.arguments.index, group)))
            many = math.prod(len(self.values[i]) for i in self.groups[-1])
            if many > _MOST_TOGETHER:
                each = (tile.operands[int(one)].strides if one.isdigit() else (one,) for one in sorted(group))
                names = " and ".join(f"'{name}'" for names in each for name in names if name != "1")
                raise Beyond(f"a condition compares {names} together, in {many} combinations", group)
        space: dict[str, Any] = {"SPEND": self._spend, "KNOWN": {}, "LANES": lanes}
        exec(compiled(tile.code), space)
        exec(compiled("\n    ".join(self._taking())), space)
        self.take: Callable[..., tuple[Signature, Hashable, int, list[int]] | None] = space["take"]

    def _taking(self) -> Iterator[str]:
        """The Python of `take`. What is of a contract in it is the operator's own text."""
        tile = self.tile
        yield f"def take({', '.join(f'_{name}' if name.isdigit() else name for name in tile.arguments)}):"
        for of in self.laid:
            strides = [name for name in tile.operands[int(of)].strides if name != "1"]
            for number, (name, length, more) in enumerate(tile.operands[int(of)].layouts()):
                yield f"if _{of} == {number}:"
                yield f"    {' = '.join(strides)} = 1"
                yield f"    {name} = {length}"
                if more:
                    yield f"    if {name} > 1: return None"  # another number that is not 1
                    yield f"    {name} += 1"
        known = {*self.named, *self.strides, "LANES"}
        for one, names in self.facts.items():
            if known >= names and names.intersection(self.strides):
                yield f"if not ({one}): return None"
        kind = [*self.scales, *(f"{name} == 1" for name in self.strides)]
        work = " * ".join(["1", *(name for name in self.named if name in tile.sizes)])
        path = f"run({', '.join([*tile.given, 'LANES'])})"
        yield f"return {path}, ({', '.join(kind)}{',' * bool(kind)}), {work}, [{', '.join(self.strides)}]"

    def _spend(self, loop: int, turns: int) -> int:
        self.spent += turns
        if self.spent > _MOST_TURNS:
            what = f"its loops take more than {_MOST_TURNS} turns until their paths are found"
            raise Beyond(what, loop=loop)
        return self.spent

    def _values(self, name: str) -> Sequence[int]:
        if name.isdigit():
            return range(len(self.tile.operands[int(name)].layouts()))
        if name not in self.tile.sizes:
            return (0, 1, ANOTHER)
        own = " and ".join(f"({one})" for one, names in self.facts.items() if names <= {name, "LANES"})
        may = eval(f"lambda {name}: {own or True}", {"LANES": self.lanes})  # the contract's facts on this size alone
        lanes = self.lanes
        near = {turns * lanes + more for turns in range(1, MOST_VECTORS) for more in (-1, 0, 1)}
        most = next((x for x in range(MOST_SIZE, 0, -1) if may(x)), 0)
        last = () if most else range(1, MOST_VECTORS * lanes)
        return [x for x in sorted({*range(1, MOST_SIZE + 1), *near, *last}) if x > 0 and may(x)]

    def call(self, point: Point, strides: Sequence[int]) -> Call:
        """The arguments, with strides in place of layouts."""
        sizes = ((name, value) for name, value in zip(self.tile.arguments, point, strict=True) if not name.isdigit())
        return dict(sizes) | dict(zip(self.strides, strides, strict=True))

    def in_order(self, calls: Iterable[tuple[int, Call]]) -> tuple[Call, ...]:
        """Any coefficients first, since an operator may compute without tiles where one is 0; then small sizes."""
        order = sorted(calls, key=lambda one: (-sum(one[1][name] for name in self.scales), one[0]))
        return tuple(call for _, call in order)
