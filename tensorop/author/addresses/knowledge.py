"""What is known while a kernel is read, and who refuses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from tensorop.author.addresses.linear import ONE, Facts, Poly, number
from tensorop.author.addresses.syntax import Statement, Term
from tensorop.author.addresses.values import (
    LARGEST,
    SIZE,
    TYPES,
    Int,
    OperandMemory,
    Pred,
    Ptr,
    State,
    Type,
    Value,
    limits_of,
)  # fmt: skip
from tensorop.author.gate import Guard
from tensorop.model.primitive import Collective, Primitive, Primitives

LANES = "lanes"
Callables = Mapping[str, Primitive | Collective]


class Refusal(Exception):
    """Who refuses, why, and where."""

    def __init__(self, guard: Guard, message: str, node: Node | None = None) -> None:
        super().__init__(message)
        self.guard, self.message, self.node = guard, message, node


@dataclass(frozen=True, eq=False)
class Names:
    """The C types of a platform's numbers and vectors, and of numbers that are addresses.

    done: statements that were found harmless, what was known there, and what they give
    """

    data: frozenset[str]
    vectors: frozenset[str]
    addresses: frozenset[str] = frozenset()
    done: dict[tuple[Statement, Facts, frozenset[str], tuple[Value | None, ...]], Value] = field(default_factory=dict)

    @staticmethod
    def of(primitives: Primitives, callables: Callables) -> Names:
        elements = {primitives.element, primitives.compute, primitives.storage}
        collectives = [one for one in callables.values() if isinstance(one, Collective)]
        if collectives:  # a word of 32 bits holds two elements, and is no number
            data = frozenset({"float", primitives.element, "uint16_t", "uint32_t"})
            addresses = frozenset().union(*(one.addresses for one in collectives))
            kinds = {kind for one in collectives for kind, _, mark in one.declared if mark != "*"}  # what locals may be
            kinds |= {one.returns for one in collectives}
            return Names(data, frozenset(kinds) - data - addresses - TYPES.keys() - {"void"}, addresses)
        unsigned = {f"u{name}" for name in elements if name.startswith("int")}
        vectors = {primitives.vector, primitives.compute_vector, primitives.storage_vector}
        return Names(frozenset({"float", "double", *elements, *unsigned}), frozenset(vectors))


@dataclass
class Together:
    """Counters that conditions compare with each other: with which numbers, and by which factors with what is given."""

    counters: set[str] = field(default_factory=set)
    numbers: dict[Poly, int] = field(default_factory=dict)
    steps: set[int] = field(default_factory=set)


class Knowledge:
    """What one function's names are, and what of them is proved.

    trusted: while the operator's own text is read, whose conditions and accesses are not looked at
    """

    def __init__(self, primitives: Primitives, callables: Callables, names: Names) -> None:
        self.callables, self.names = callables, names
        self.data, self.vectors, self.predicate = names.data, names.vectors, primitives.predicate
        self.addresses = names.addresses
        self.element = primitives.element
        self.types = {"compute": primitives.compute, "storage": primitives.storage, "pointer": primitives.element}
        self.fixed: int | None = None  # lanes, where they are a number
        self.strides: set[str] = set()
        self.given: set[str] = set()
        self.promised: dict[str, Value] = {}  # what the function was given, whatever its names hold later
        self.paces: set[str] = set()  # by what blocks go on
        self.steps: dict[str, int] = {}  # what counts in steps, and of how many elements these are
        self.made_of: dict[str, set[str]] = {}  # what primitives' numbers were made of
        self.ranges: dict[str, tuple[tuple[str, int], int]] = {}  # symbols of locals that stay within a few numbers:
        # whose they are, and how many numbers
        self.state_counts: dict[tuple[str, int], int] = {}  # numbers of each of these that conditions compare
        self.limits: tuple[Poly, ...] = ()
        self.turns: set[str] = set()
        self.places: set[str] = set()  # a thread's numbers within its block
        self.highest: dict[Poly, int] = {}  # of these
        self.together: dict[str, Together] = {}  # by counter
        self.asked: dict[Poly, dict[str, int]] = {}  # conditions on what is given, and their counters' factors
        self.divided = 1  # no condition tells more of a number than its remainder by this
        self.hidden: set[str] = set()  # what addresses were chosen by: no number that may be compared
        self.choices: dict[str, tuple[Poly, list[tuple[tuple[Poly, ...], Poly]]]] = {}  # what is known for each value
        self.by_choice = 0  # how often that was looked up
        self.quotients: dict[str, tuple[Poly, Poly]] = {}
        self.quotient_of: dict[tuple[Poly, Poly], str] = {}
        self.rest_of: dict[tuple[Poly, int], str] = {}  # names of what is left
        self.fresh = 0
        self.scopes: list[dict[str, tuple[str, int]]] = [{}]  # of each block the names it declares: type and stars
        self.breaks: list[tuple[int, list[State]]] = []  # how many blocks are around, and the ways out
        self.continues: list[tuple[int, list[State]]] = []
        self.trusted = True
        self.operands: dict[str, OperandMemory] = {}

    def _value(self, state: State, of: Term) -> Value:
        """What an expression gives."""
        raise NotImplementedError

    def _poly(self, state: State, of: Term) -> Poly:
        found = self._value(state, of)
        assert isinstance(found, Int)
        assert found.poly is not None
        return found.poly

    def _known(self, poly: Poly, state: State) -> Poly:
        """With the lanes and strides that are numbers here."""
        if self.fixed is not None:
            poly = poly.fixed(LANES, self.fixed)
        for name in state.ones:
            poly = poly.replaced(name, ONE)
        return poly

    def _prove(self, state: State, goal: Poly) -> bool:
        return state.facts.prove(self._known(goal, state))

    def _within(self, state: State, poly: Poly, low: int, high: int) -> bool:
        poly = self._known(poly, state)
        if (value := poly.constant) is not None:
            return low <= value <= high
        if not state.facts.prove(poly - number(low)):
            return False
        return state.facts.bounded(self.limits).prove(number(high) - poly)

    def _whole(self, state: State, value: Value | None, signed: bool | None = None, most: int = LARGEST) -> bool:
        """Whether a number is what its polynomial says, and (signed: False) not negative."""
        if isinstance(value, Pred):
            return True
        if isinstance(value, Ptr) and value.offset is not None and not value.offset.symbols & self.strides:
            value = Int(value.offset, SIZE)
        if not isinstance(value, Int) or value.poly is None:
            return False
        signed = value.type.signed if signed is None else signed
        low, high = limits_of(value.type, most)
        return self._within(state, value.poly, low if signed else 0, high)

    def _fit(self, state: State, poly: Poly, kind: Type) -> Poly | None:
        """What arithmetic of a type gives; None where that may be something else."""
        return poly if kind == SIZE or self._within(state, poly, *limits_of(kind)) else None
