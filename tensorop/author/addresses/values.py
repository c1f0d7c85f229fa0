"""The values of names while a function is interpreted."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tensorop.author.addresses.linear import ZERO, Poly
from tensorop.author.c_types import Type


class Data(Enum):
    """Values from which no address may be computed."""

    NUMBER = "number"  # an element or a vector, computed from operands
    SCALE = "scale"  # alpha or beta, unchanged
    HALF = "half"  # an operand's bits, from one primitive to another
    UNSET = "unset"  # an unwritten local


@dataclass(eq=False)
class OperandMemory:
    """Memory that a kernel may access: an operand, or a local array."""

    name: str
    type: str
    stars: int
    dims: tuple[tuple[Poly, str], ...] | None  # extent and stride's symbol ("" for 1) by dimension; None: not declared
    writes: bool  # whether it may be written
    flag: str = ""  # for a local array: the name in a state's env that records whether it was written
    shared: bool = False  # a block's shared memory
    aligned: int = 0  # bytes that the first address is a multiple of; 0: unknown
    room: Poly = ZERO  # elements past the end in which a vector that begins inside may end
    of: OperandMemory | None = None  # the memory that its pointers point to

    @property
    def pointed(self) -> OperandMemory:
        """The memory that its pointers point to; without a size if none is declared."""
        self.of = self.of or OperandMemory(f"*{self.name}", self.type, self.stars - 1, None, False)
        return self.of

    @property
    def key(self) -> Hashable:
        own = self.name, self.type, self.stars, self.dims, self.writes, self.shared, self.aligned, self.room
        return *own, self.of.key if self.of else None


class Int(NamedTuple):
    """An integer; or a predicate, by the number of its first lanes that are true."""

    poly: Poly | None  # None: unknown; for unsigned 64 bits it is modulo 2 ** 64
    type: Type


class Ptr(NamedTuple):
    """An address in an operand."""

    operand: OperandMemory
    offset: Poly | None  # in elements; None: unknown
    type: str  # of the pointer; unlike the operand's for a descriptor


class PartialVector(NamedTuple):
    """A vector with only the first `lanes` lanes written; the others may hold data of an earlier call."""

    lanes: Poly


Value = Int | Ptr | PartialVector | Data


@dataclass(frozen=True)
class Way:
    """The additional facts on one path after a condition."""

    facts: tuple[Poly, ...] = ()
    ones: frozenset[str] = frozenset()  # strides that are 1
    unequal: tuple[Poly, ...] = ()  # polynomials that are not 0, of unknown sign

    def and_then(self, other: Way) -> Way:
        return Way(self.facts + other.facts, self.ones | other.ones, self.unequal + other.unequal)


Ways = list[Way]


def joined(a: Mapping[str, Value], b: Mapping[str, Value]) -> dict[str, Value] | None:
    """The values that hold on both of two paths; None if their numbers differ."""
    made: dict[str, Value] = {}
    for name, value in a.items():
        other = b.get(name)
        if value is other or value == other:
            made[name] = value
        elif other is None or Data.UNSET in (value, other):
            made[name] = Data.UNSET
        elif isinstance(value, (Data, PartialVector)) and isinstance(other, (Data, PartialVector)):
            made[name] = Data.NUMBER if isinstance(value, Data) and isinstance(other, Data) else PartialVector(ZERO)
        else:
            return None
    return made


def replaced(value: Value, name: str, by: Poly) -> Value:
    if isinstance(value, Data) or (poly := poly_of(value)) is None:
        return value
    poly = poly.replaced(name, by)
    return value._replace(offset=poly) if isinstance(value, Ptr) else type(value)(poly, *value[1:])


def poly_of(value: Value | None) -> Poly | None:
    """A number, or the offset of an address; None if it is unknown or the value has none."""
    match value:
        case Int(poly, _) | Ptr(_, poly, _) | PartialVector(poly):
            return poly
    return None


def spelled(poly: Poly) -> str:
    """A polynomial in C syntax."""
    parts = []
    for monomial, factor in sorted(poly.terms.items(), key=lambda term: (not term[0], term[0])):
        name = " * ".join(monomial)
        times = str(abs(factor)) if not name else name if abs(factor) == 1 else f"{abs(factor)} * {name}"
        parts.append(f"{'-' if factor < 0 else '+'} {times}")
    text = " ".join(parts).removeprefix("+ ") or "0"
    return text.replace("- ", "-", 1) if text.startswith("- ") else text


def ring(operator: str, a: Poly, b: Poly) -> Poly:
    return a + b if operator == "+" else a - b if operator == "-" else a * b
