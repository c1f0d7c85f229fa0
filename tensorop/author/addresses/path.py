"""What a function's contract promises, what is known on one path to a point of its text, and proofs from both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tensorop.author.addresses.linear import ONE, ZERO, Facts, Poly, number
from tensorop.author.addresses.values import Data, Int, OperandMemory, Ptr, Value, Way, Ways, poly_of, spelled
from tensorop.author.c_types import LARGEST, SIZE, Type, limits_of
from tensorop.author.contracts import LANES
from tensorop.author.gate import Guard
from tensorop.author.grammar import Refusal
from tensorop.author.terms import Term


@dataclass
class Promises:
    """The promises of one function, from its signature and its contract."""

    lanes: int | None  # the number of lanes, if it is a constant
    given: set[str] = field(default_factory=set)  # arguments that are numbers
    strides: set[str] = field(default_factory=set)
    paces: set[str] = field(default_factory=set)  # distances between a block's tiles
    steps: dict[str, int] = field(default_factory=dict)  # the elements in a step, by argument that counts in steps
    counted: dict[str, str] = field(default_factory=dict)  # by such an argument, the size whose steps it counts
    tiles: dict[str, int] = field(default_factory=dict)  # rows or columns of the block's tile, by its first one
    operands: dict[str, OperandMemory] = field(default_factory=dict)
    numbers: dict[str, Value] = field(default_factory=dict)  # of `given`, at the function's begin
    limits: tuple[Poly, ...] = ()  # upper bounds of `given`


@dataclass
class Path:
    """The values and the facts on one path."""

    promises: Promises
    env: dict[str, Value]
    facts: Facts
    ones: frozenset[str] = frozenset()  # strides that are 1 here
    checked: bool = False  # whether accesses and conditions are checked: not in the operator's own text

    def under(self, facts: Iterable[Poly] = (), ones: frozenset[str] = frozenset()) -> Path:
        """A copy on which more is known."""
        made = Path(self.promises, dict(self.env), self.facts, self.ones | ones, self.checked)
        made.learn(facts)
        return made

    def ways(self, ways: list[Way]) -> list[Path]:
        """Copies for the ways that can be taken, as far as the facts show."""
        return [self.under(way.facts, way.ones) for way in ways if not self.excludes(way.facts)]

    def learn(self, facts: Iterable[Poly]) -> None:
        self.facts = self.facts.known(map(self.settled, facts))

    def settled(self, poly: Poly) -> Poly:
        """A polynomial with the known values of lanes and strides."""
        if self.promises.lanes is not None:
            poly = poly.fixed(LANES, self.promises.lanes)
        for name in self.ones:
            poly = poly.replaced(name, ONE)
        return poly

    def prove(self, goal: Poly) -> bool:
        """Whether the goal is proved to be at least 0."""
        return self.facts.prove(self.settled(goal))

    def excludes(self, facts: Iterable[Poly]) -> bool:
        """Whether one of these is proved to be below 0."""
        return any(self.prove(ZERO - fact - ONE) for fact in facts)

    def within(self, poly: Poly, low: int, high: int) -> bool:
        poly = self.settled(poly)
        if (value := poly.constant) is not None:
            return low <= value <= high
        most = self.facts.bounded(self.promises.limits)
        return self.facts.prove(poly - number(low)) and most.prove(number(high) - poly)

    def whole(self, value: Value | None, signed: bool | None = None, most: int = LARGEST) -> bool:
        """Whether a number is proved to equal its polynomial, without overflow; with signed=False also to be >= 0."""
        if isinstance(value, Ptr) and value.offset is not None and not value.offset.symbols & self.promises.strides:
            value = Int(value.offset, SIZE)
        if not isinstance(value, Int) or value.poly is None:
            return False
        low, high = limits_of(value.type, most)
        return self.within(value.poly, low if (value.type.signed if signed is None else signed) else 0, high)

    def fit(self, poly: Poly | None, kind: Type) -> Int:
        """A result in a type's range; unknown if it may wrap around. 64 unsigned bits are kept modulo 2 ** 64.

        Raises Refusal for a signed one that may overflow: C does not define what a program does then.
        """
        if poly is not None and (kind == SIZE or self.within(poly, *limits_of(kind))):
            return Int(poly, kind)
        if kind.signed and self.checked:
            what = "a result" if poly is None else spelled(poly)
            raise Refusal(Guard.BOUNDS, f"{what} may overflow {kind.bits} signed bits; count in size_t, or test before")
        return Int(None, kind)

    @property
    def symbols(self) -> set[str]:
        polys = map(poly_of, self.env.values())
        return {name for poly in polys if poly is not None for name in poly.symbols}


class Scopes:
    """The blocks, the innermost last. Only data may hide data (rule `hiding`); the hidden value is kept in a path."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, tuple[str, int]]] = [{}]  # type and stars of each name

    def type_of(self, name: str) -> tuple[str, int]:
        return next((block[name] for block in reversed(self.blocks) if name in block), ("", 0))

    def declare(self, path: Path, name: str, kind: str, stars: int) -> None:
        if name not in self.blocks[-1] and name in path.env:
            path.env[f"{name} {len(self.blocks) - 1}"] = path.env[name]
        self.blocks[-1][name] = kind, stars

    def leave(self, paths: list[Path]) -> list[Path]:
        """The paths after the innermost block, without its names; what these hid is visible again."""
        block = self.blocks.pop()
        for env in [path.env for path in paths]:
            for name in block:
                env.pop(name, None)
                if (hidden := env.pop(f"{name} {len(self.blocks)}", None)) is not None:
                    env[name] = hidden
            for name, value in list(env.items()) if any(name.endswith("]") for name in block) else ():
                if isinstance(value, Ptr) and value.operand.flag in block:
                    env[name] = Data.UNSET  # its array is out of scope
        return paths


Evaluate = Callable[[Path, Term], Value]
Decide = Callable[[Path, Term], tuple[Ways, Ways]]
