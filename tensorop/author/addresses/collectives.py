"""Checks calls of collective primitives, which a group of threads executes together. Contracts are per thread."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import tree_sitter
import tree_sitter_c

from tensorop.author.addresses.conditions import Conditions
from tensorop.author.addresses.knowledge import Refusal
from tensorop.author.addresses.linear import ONE, ZERO, Poly, symbol
from tensorop.author.addresses.syntax import Term, inner, term, text
from tensorop.author.addresses.values import TYPES, Data, Int, Ptr, State, Value, Way
from tensorop.author.gate import Guard
from tensorop.model.primitive import Collective

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language()))
# The sentences of a contract on one thread's call, with its arguments. docs/reference/template.md has those of an
# operator's pointers; a primitive's contract also has:
#   holds(ld % 8 == 0)         each call must be shown to satisfy it
#   reads(p + 8192 * i, n, 1)  a computed address; no access if an extent is 0 or less
#   writes(to, size(map), 1)   as many elements as a box of the tensor map's operand
#   shared(p), outside(p)      p must be the block's shared memory; must be an operand's memory
#   aligned(p, 128)            p must be a multiple of 128 bytes, by the operator's contract and the offset
#   sets(x)                    the local x needs no value before the call
#   gives(0, 7), counts(128)   the result is in 0..7; is the number of one of 128 threads
#   points(p)                  the result is p, of the type that the primitive returns
_SENTENCES = (
    "holds", "counts", "reads", "writes", "shared", "outside", "aligned", "paces", "steps", "sets", "gives", "points",
)  # fmt: skip


class Collectives(Conditions):
    """The results of collective primitives."""

    def _collective(self, state: State, of: Collective, arguments: Sequence[Term]) -> Value:
        """The result of one thread's call; checks its reads and writes, by the set's contract."""
        accesses = sentences(of.accesses) if of.accesses else ()
        env = self._given_to(state, of, arguments, {args[0][1] for name, args in accesses if name == "sets"})
        within = State({**self.promised, **env}, state.facts, state.ones)
        result: tuple[str, list[Poly]] | Ptr | None = None
        for name, args in accesses:
            if self.trusted and name not in ("gives", "counts", "points"):
                continue
            match name:
                case "holds":
                    self._wanted(state, within, of, args[0])
                case "gives" | "counts":
                    result = name, [self._number_of(state, within, of, one) for one in args]
                case "points":
                    result = self._place_of(within, args[0])._replace(type=of.returns)
                case "shared" | "outside" | "aligned":
                    self._lies(of, name, args[0], self._place_of(within, args[0]), args[1:])
                case "reads" | "writes":
                    numbers = [self._number_of(state, within, of, one) for one in args[1:]]
                    places = list(zip(numbers[::2], numbers[1::2], strict=True))
                    if not self.trusted and not all(self._prove(state, apart) for _, apart in places):
                        raise Refusal(Guard.BOUNDS, f"'{of.name}' has a stride that may be negative")
                    self._reach(state, self._place_of(within, args[0]), places, writes=name == "writes", some=True)
        match result:
            case Ptr():
                return result
            case "gives", numbers:
                found = self._chosen(state, numbers[:1], numbers[1:])
                if of_numbers := [one.poly for one in env.values() if isinstance(one, Int)]:
                    names = {name for poly in of_numbers if poly is not None for name in poly.symbols}
                    self.made_of.update(dict.fromkeys(found.symbols, names))
                return Int(found, TYPES[of.returns])
            case "counts", numbers:
                return Int(self._thread(state, numbers[0]), TYPES[of.returns])
        if of.returns == "void":
            return Data.NOTHING
        if of.returns not in TYPES or of.returns in self.data:
            return Data.NUMBER
        return self._either(state, [Way()], [Way()]) if of.returns == "bool" else Int(None, TYPES[of.returns])

    def _given_to(self, state: State, of: Collective, arguments: Sequence[Term], unset: set[str]) -> dict[str, Value]:
        """A call's arguments by name, converted to the declared types. unset: names that need no value before."""
        env: dict[str, Value] = {}
        for (kind, name, mark), argument in zip(of.declared, arguments, strict=True):
            if mark == "&":
                if argument[0] != "name" or self._declared_as(argument[1]) != (kind, 0):
                    raise Refusal(Guard.BOUNDS, f"'{of.name}' changes '{name}': pass a local variable of type {kind}")
                if name not in unset:
                    self._value(state, argument)
                state.env[argument[1]] = Data.NUMBER
                continue
            value = self._value(state, argument)
            if mark in ("*", "@"):
                if not (isinstance(value, Ptr) and (value.type, value.stars) == (kind, 1)):
                    raise Refusal(Guard.BOUNDS, f"'{of.name}' expects an address of {kind} as '{name}'")
                env[name] = value._replace(type=value.operand.type) if mark == "@" else value
            else:
                env[name] = self._converted(state, value, kind, 0)
        return env

    def _wanted(self, state: State, within: State, of: Collective, condition: Term) -> None:
        """Refuses a call unless the set's condition is proved."""
        trusted, self.trusted = self.trusted, True  # the condition is the set's own text
        otherwise = self._decide(within, condition)[1]
        self.trusted, state.facts = trusted, within.facts
        never = (any(self._prove(state, ZERO - fact - ONE) for fact in way.facts) for way in otherwise)
        if not trusted and not all(never):
            raise Refusal(Guard.BOUNDS, f"a condition of '{of.name}' is not proved here: {of.accesses}")

    def _number_of(self, state: State, within: State, of: Collective, expression: Term) -> Poly:
        """A number in a sentence; `size(p)` is the size of p's operand in elements."""
        if expression[:2] == ("call", "size"):
            operand = self._place_of(within, expression[2][0]).operand
            return operand.dims[0][0] if operand.dims else ZERO
        trusted, self.trusted = self.trusted, True
        value = self._value(within, expression)
        self.trusted, state.facts = trusted, within.facts
        if isinstance(value, Int) and value.poly is not None:
            return value.poly
        if not trusted:
            raise Refusal(Guard.BOUNDS, f"'{of.name}' has an argument whose value cannot be bounded")
        return ZERO

    def _place_of(self, within: State, expression: Term) -> Ptr:
        trusted, self.trusted = self.trusted, True
        at = self._value(within, expression)
        self.trusted = trusted
        assert isinstance(at, Ptr), expression
        return at

    def _lies(self, of: Collective, name: str, expression: Term, at: Ptr, by: Sequence[Term]) -> None:
        """Refuses an address in the wrong kind of memory, or one that is not proved to be aligned."""
        if by:
            bytes_ = by[0][1]
            multiple = at.offset is not None and not any(factor % bytes_ for factor in at.offset.terms.values())
            if not (self.trusted or (multiple and at.operand.aligned and at.operand.aligned % bytes_ == 0)):
                raise Refusal(Guard.BOUNDS, f"'{of.name}' requires a multiple of {bytes_} bytes, not proved here")
        elif at.operand.shared != (name == "shared") or at.operand.flag:
            kind = "the block's shared memory" if name == "shared" else "an operand's memory"
            raise Refusal(Guard.BOUNDS, f"'{of.name}' expects an address of {kind} as '{text_of(expression)}'")

    def _thread(self, state: State, count: Poly) -> Poly:
        """The number of one of `count` threads."""
        self.fresh += 1
        thread = symbol(f"n#{self.fresh}")
        self._counted(state, thread, count)
        return thread

    def _counted(self, state: State, thread: Poly, count: Poly) -> None:
        (name,) = thread.symbols
        self.places.add(name)
        self.turns.add(name)
        state.facts = state.facts.known([count - ONE - thread])
        self.highest[thread] = (count.constant or 0) - 1

    def _declared_as(self, name: str) -> tuple[str, int]:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), ("", 0))


def text_of(expression: Term) -> str:
    return str(expression[1])


@lru_cache(maxsize=512)
def sentences(contract: str) -> tuple[tuple[str, tuple[Term, ...]], ...]:
    """The sentences of a contract: each is a name and its arguments as terms. Raises Refusal for an unknown one."""
    source = f"void f(void) {{ {contract.strip().removesuffix(';')}; }}".encode("ascii", "replace")
    body = _PARSER.parse(source).root_node.named_children[0].child_by_field_name("body")
    found = []
    for node in inner(body) if body is not None else ():
        match term(inner(node)[0]) if node.type == "expression_statement" else ():
            case ("call", name, arguments) if name in _SENTENCES:
                found.append((name, arguments))
            case _:
                raise Refusal(Guard.BOUNDS, f"a contract has an unknown sentence: '{text(node)}'")
    return tuple(found)
