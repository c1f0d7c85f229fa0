"""The state of knowledge while a kernel is interpreted, and the exception of a refusal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

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
    spelled,
)  # fmt: skip
from tensorop.author.grammar import Broken
from tensorop.author.grammar import Refusal as Refusal
from tensorop.model.primitive import Collective, Primitive, Primitives

MOST_COMPARED = 64  # the largest constant in a condition
MOST_OF_BLOCK = 256  # the length of a tile; for blocks of threads it replaces MOST_COMPARED, twice it MOST_TOGETHER
LANES = "lanes"
_SYMBOL = re.compile(r"(\w+)@t#\d+|\b[a-z]#\d+")  # of what a text does not name
_MOST_NESTED = 8  # quotients of quotients
Callables = Mapping[str, Primitive | Collective]


@dataclass(frozen=True, eq=False)
class Names:
    """The C types of a platform."""

    data: frozenset[str]  # of elements
    vectors: frozenset[str]
    addresses: frozenset[str] = frozenset()  # of numbers that are addresses
    # statements that passed, with the facts, strides of 1 and values there, and the results
    done: dict[tuple[Statement, Facts, frozenset[str], tuple[Value | None, ...]], Value] = field(default_factory=dict)

    @staticmethod
    def of(primitives: Primitives, callables: Callables) -> Names:
        elements = {primitives.element, primitives.compute, primitives.storage}
        collectives = [one for one in callables.values() if isinstance(one, Collective)]
        if collectives:  # a word of 32 bits holds two elements, so it counts as data
            data = frozenset({"float", primitives.element, "uint16_t", "uint32_t"})
            addresses = frozenset().union(*(one.addresses for one in collectives))
            kinds = {kind for one in collectives for kind, _, mark in one.declared if mark != "*"}  # of locals
            kinds |= {one.returns for one in collectives}
            return Names(data, frozenset(kinds) - data - addresses - TYPES.keys() - {"void"}, addresses)
        unsigned = {f"u{name}" for name in elements if name.startswith("int")}
        vectors = {primitives.vector, primitives.compute_vector, primitives.storage_vector}
        return Names(frozenset({"float", "double", *elements, *unsigned}), frozenset(vectors))


@dataclass
class Together:
    """Counters that conditions compare with each other."""

    counters: set[str] = field(default_factory=set)
    numbers: dict[Poly, int] = field(default_factory=dict)  # the largest number by compared counters
    steps: set[int] = field(default_factory=set)  # factors in conditions with the function's arguments


class Knowledge:
    """Everything that is known about one function."""

    def __init__(self, primitives: Primitives, callables: Callables, names: Names) -> None:
        self.callables, self.names = callables, names
        self.data, self.vectors, self.predicate = names.data, names.vectors, primitives.predicate
        self.addresses = names.addresses
        self.element = primitives.element
        self.types = {"compute": primitives.compute, "storage": primitives.storage, "pointer": primitives.element}
        self.fixed: int | None = None  # the number of lanes, if it is a constant
        self.strides: set[str] = set()
        self.given: set[str] = set()
        self.promised: dict[str, Value] = {}  # arguments as they were at the function's begin
        self.paces: set[str] = set()  # distances between a block's tiles
        self.steps: dict[str, int] = {}  # the elements in a step, by argument that counts in steps
        self.made_of: dict[str, set[str]] = {}  # the symbols of the arguments, by symbol of a primitive's result
        # by symbol of a local with few values in a loop: the local, the loop's position, the number of values
        self.ranges: dict[str, tuple[tuple[str, int], int]] = {}
        self.state_counts: dict[tuple[str, int], int] = {}  # values by local and loop, if conditions depend on it
        self.limits: tuple[Poly, ...] = ()
        self.turns: set[str] = set()
        self.loops: dict[str, str] = {}  # by symbol of an iteration's number: the head of its loop
        self.places: set[str] = set()  # threads' numbers in their block, and numbers made of these
        self.highest: dict[Poly, int] = {}  # upper bounds of these
        self.together: dict[str, Together] = {}  # by counter
        self.asked: dict[Poly, dict[str, int]] = {}  # conditions on arguments, and their counters' factors
        self.divided = 1  # conditions distinguish a number at most by its remainder by this
        self.picked: dict[
            str, int
        ] = {}  # by size that an `if` compares with numbers: the largest; 0 for alpha and beta
        self.testing = False  # a loop's test
        self.hidden: set[str] = set()  # symbols that no condition may compare: results of `^`, chosen offsets
        self.choices: dict[str, tuple[Poly, list[tuple[tuple[Poly, ...], Poly]]]] = {}  # the facts for each value
        self.by_choice = 0  # the number of uses of `choices`
        self.quotients: dict[str, tuple[Poly, Poly]] = {}
        self.quotient_of: dict[tuple[Poly, Poly], str] = {}
        self.rest_of: dict[tuple[Poly, int], str] = {}  # symbols of remainders, by dividend and divisor
        self.fresh = 0
        self.scopes: list[dict[str, tuple[str, int]]] = [{}]  # by block: type and stars of each name
        self.statements: dict[int, int] = {}  # the last byte of each, by its first
        self.reached: set[int] = set()  # the first bytes of those that a state reaches
        self.trusted = True  # in the operator's own text, whose conditions and accesses are not checked
        self.operands: dict[str, OperandMemory] = {}

    def readable(self, message: str) -> str:
        """A message with names of the text in place of the proof's symbols."""
        heads: list[str] = []
        rests = {name: of for of, name in self.rest_of.items()}

        def named(found: re.Match[str]) -> str:
            if (name := found[0]) in self.quotients:
                dividend, divisor = map(spelled, self.quotients[name])
                return f"({dividend}) / {f'({divisor})' if ' ' in divisor else divisor}"
            if name in rests:
                return f"({spelled(rests[name][0])}) % {rests[name][1]}"
            if name in self.loops and self.loops[name] not in heads:
                heads.append(self.loops[name])
            return found[1] or ("turn" if name in self.loops else "thread" if name[0] == "n" else "choice")

        for _ in range(_MOST_NESTED):
            message = _SYMBOL.sub(named, message)
        return message + "".join(f"; turn is the iterations of `{head}`" for head in heads)

    @property
    def most(self) -> int:
        return MOST_OF_BLOCK if self.places else MOST_COMPARED

    def _least(self, name: str) -> int:
        """A lower bound of the kernel's argument if a quotient is not 0."""
        dividend, divisor = self.quotients[name]
        wanted = (divisor.constant or self.most) + abs(dividend.terms.get((), 0))
        found = 1
        for monomial, factor in dividend.terms.items():
            for one in monomial:
                if one in self.quotients:
                    found = max(found, self._least(one) * -(-wanted // abs(factor)))
        return max(found, wanted)

    def _near(self, offset: Poly | None) -> None:
        """Refuses the address of an element that depends on a quotient which is 0 for all sizes that are verified."""
        if offset is None or self.trusted or self.places:
            return
        for name in offset.symbols & self.quotients.keys():
            if self._least(name) > self.most:
                raise Broken(
                    "division",
                    f"an element's address depends on {name}, which is 0 for sizes below {self._least(name)}",
                )

    def _value(self, state: State, of: Term) -> Value:
        """The value of an expression."""
        raise NotImplementedError

    def _poly(self, state: State, of: Term) -> Poly:
        found = self._value(state, of)
        assert isinstance(found, Int)
        assert found.poly is not None
        return found.poly

    def _known(self, poly: Poly, state: State) -> Poly:
        """A polynomial with the known values of lanes and strides."""
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
        """Whether a number is proved to equal its polynomial, without overflow; with signed=False also to be >= 0."""
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
        """A result in a type's range; None if it may overflow. Unsigned 64-bit numbers are kept modulo 2 ** 64."""
        return poly if kind == SIZE or self._within(state, poly, *limits_of(kind)) else None
