"""The values of names while a kernel is interpreted, and the states of the interpreter."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from tensorop.author.addresses.linear import ONE, ZERO, Facts, Poly, number, symbol


class Type(NamedTuple):
    """A C integer type."""

    signed: bool
    bits: int


SIZE, INT = Type(False, 64), Type(True, 32)
SIGNED_SIZE, UNSIGNED = Type(True, 64), Type(False, 32)
TYPES = {
    **dict.fromkeys(("size_t", "uint64_t", "unsigned long", "unsigned long long", "unsigned long int"), SIZE),
    **dict.fromkeys(("ptrdiff_t", "int64_t", "long", "long long", "long int", "signed long"), SIGNED_SIZE),
    **dict.fromkeys(("int", "int32_t", "signed", "signed int"), INT),
    **dict.fromkeys(("unsigned", "unsigned int", "uint32_t"), UNSIGNED),
    **dict.fromkeys(("short", "int16_t", "short int", "signed short"), Type(True, 16)),
    **dict.fromkeys(("unsigned short", "uint16_t"), Type(False, 16)),
    **dict.fromkeys(("signed char", "int8_t"), Type(True, 8)),
    **dict.fromkeys(("unsigned char", "uint8_t", "bool"), Type(False, 8)),
}


class Data(Enum):
    """Values from which no address may be computed."""

    NUMBER = "number"  # an element or a vector, computed from operands
    SCALE = "scale"  # alpha or beta, unchanged
    HALF = "half"  # an operand's bits, from one primitive to another
    UNSET = "unset"  # an unwritten local
    NOTHING = "nothing"
    ODD = "odd"  # unsupported, e.g. a computed address in the operator's own text


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
    def key(self) -> Hashable:
        own = self.name, self.type, self.stars, self.dims, self.writes, self.shared, self.aligned, self.room
        return *own, self.of.key if self.of else None


class Int(NamedTuple):
    """An integer."""

    poly: Poly | None  # None: unknown; for unsigned 64 bits it is modulo 2 ** 64
    type: Type


class Ptr(NamedTuple):
    """An address in an operand."""

    operand: OperandMemory
    offset: Poly | None  # in elements; None: unknown
    type: str  # of the pointer
    stars: int


class Pred(NamedTuple):
    """A predicate that is true for the first `lanes` lanes."""

    lanes: Poly


class PartialVector(NamedTuple):
    """A vector with only the first `lanes` lanes written; the others may hold data of an earlier call."""

    lanes: Poly


Value = Int | Ptr | Pred | PartialVector | Data


@dataclass
class State:
    """The state on one path to a point of the text."""

    env: dict[str, Value]
    facts: Facts
    ones: frozenset[str] = field(default_factory=frozenset)  # strides that are 1 here

    def copy(self) -> State:
        return State(dict(self.env), self.facts, self.ones)


LARGEST = 1 << 62  # limit of a number that is compared or divided
KEPT = 1 << 58  # limit of a counter in every iteration


def literal(value: int, text: str) -> Int:
    """An integer literal of C; its type depends on suffix, base and size."""
    suffix = text.lower()[len(text.rstrip("uUlL")) :]
    kinds = (INT, UNSIGNED, SIGNED_SIZE, SIZE)
    of_base = kinds if text[:1] == "0" else (INT, SIGNED_SIZE)
    fits = [
        kind
        for kind in ((UNSIGNED, SIZE) if "u" in suffix else of_base)
        if value < 1 << kind.bits - kind.signed and ("l" not in suffix or kind.bits == 64)
    ]
    return Int(number(value), fits[0]) if fits else Int(None, SIZE)


@dataclass(frozen=True)
class Way:
    """The additional facts on one path after a condition."""

    facts: tuple[Poly, ...] = ()
    ones: frozenset[str] = frozenset()  # strides that are 1
    unequal: tuple[Poly, ...] = ()  # polynomials that are not 0, of unknown sign

    def and_then(self, other: Way) -> Way:
        return Way(self.facts + other.facts, self.ones | other.ones, self.unequal + other.unequal)


Ways = list[Way]


def limits_of(kind: Type, most: int = LARGEST) -> tuple[int, int]:
    if kind.bits == 64:
        return (-most if kind.signed else 0), most
    return (-(1 << kind.bits - 1), (1 << kind.bits - 1) - 1) if kind.signed else (0, (1 << kind.bits) - 1)


def common(a: Type, b: Type) -> Type:
    """The common type of two operands, by C's usual arithmetic conversions."""
    a, b = (INT if one.bits < 32 else one for one in (a, b))
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return Type(a.signed and b.signed, a.bits)


def joined(a: Mapping[str, Value], b: Mapping[str, Value]) -> dict[str, Value] | None:
    """The values that hold on both of two paths; None if their numbers differ."""
    made: dict[str, Value] = {}
    for name, value in a.items():
        other = b.get(name)
        if value is other or value == other:
            made[name] = value
        elif isinstance(value, Data) and isinstance(other, Data):
            made[name] = Data.UNSET if Data.UNSET in (value, other) else Data.NUMBER
        elif (
            isinstance(value, (Data, PartialVector))
            and isinstance(other, (Data, PartialVector))
            and Data.UNSET not in (value, other)
        ):
            made[name] = PartialVector(ZERO)
        elif value is Data.UNSET or other is Data.UNSET or other is None:
            made[name] = Data.UNSET
        else:
            return None
    return made


def replaced(value: Value, name: str, by: Poly) -> Value:
    match value:
        case Int(Poly() as poly, kind):
            return Int(poly.replaced(name, by), kind)
        case Ptr(_, Poly() as offset):
            return value._replace(offset=offset.replaced(name, by))
        case Pred(count) | PartialVector(count):
            return type(value)(count.replaced(name, by))
    return value


def next_turn(value: Value, turn: str) -> Value:
    return replaced(value, turn, symbol(turn) + ONE)


def nothing_known(value: Value) -> bool:
    return (isinstance(value, Int) and value.poly is None) or (isinstance(value, Ptr) and value.offset is None)


def step_between(before: Value, after: Value | None, turn: str) -> Poly | None:
    """The step of a name in one iteration; None if it depends on the iteration's number or is unknown."""
    match before, after:
        case Int(Poly() as old, _), Int(Poly() as new, _):
            step = new - old
        case Ptr(one, Poly() as old), Ptr(other, Poly() as new) if one is other:
            step = new - old
        case _:
            return None
    return None if turn in step.symbols else step


def change(fact: Poly, turn: str) -> Poly | None:
    """The amount that each iteration adds to a polynomial; None if it differs between iterations."""
    split = fact.by(turn)
    return None if split is None or turn in split[0].symbols else split[0]


def symbols_of(state: State) -> set[str]:
    found: set[str] = set()
    for value in state.env.values():
        match value:
            case Int(Poly() as poly, _) | Ptr(_, Poly() as poly) | Pred(poly) | PartialVector(poly):
                found |= poly.symbols
    return found


def nowhere(at: Ptr) -> OperandMemory:
    return OperandMemory(f"*{at.operand.name}", at.type, at.stars - 1, None, False)


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
