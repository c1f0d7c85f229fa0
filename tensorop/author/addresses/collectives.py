"""Checks calls of collective primitives, which a group of threads executes together. Contracts are per thread."""

from __future__ import annotations

from collections.abc import Sequence

from tensorop.author.addresses.arithmetic import Arithmetic
from tensorop.author.addresses.linear import ZERO, Poly, symbol
from tensorop.author.addresses.memory import Memory
from tensorop.author.addresses.path import Decide, Evaluate, Path, Scopes
from tensorop.author.addresses.symbols import Symbols
from tensorop.author.addresses.values import Data, Int, Ptr, Value, Way
from tensorop.author.c_types import TYPES
from tensorop.author.contracts import CallContract, sentences
from tensorop.author.gate import Guard
from tensorop.author.grammar import Refusal
from tensorop.author.terms import Term
from tensorop.model.primitive import Collective

Parts = tuple[Arithmetic, Memory, Symbols, Scopes]
_RESULTS = ("gives", "counts", "points")


class Collectives:
    """The results of collective primitives. value: of an expression on a path."""

    def __init__(self, contract: CallContract, value: Evaluate, decide: Decide, parts: Parts) -> None:
        self._contract, self._value, self._decide = contract, value, decide
        self._arithmetic, self._memory, self._symbols, self._scopes = parts

    def result(self, path: Path, of: Collective, arguments: Sequence[Term]) -> Value:
        """The result of one thread's call; checks its reads and writes, by the set's contract."""
        accesses = sentences(of.accesses) if of.accesses else ()
        env = self._given_to(path, of, arguments, {args[0][1] for name, args in accesses if name == "sets"})
        within = Path(path.promises, {**path.promises.numbers, **env}, path.facts, path.ones)
        result: Value | None = None
        for name, args in sorted(accesses, key=lambda one: one[0] in _RESULTS):  # the result after the checks
            if not path.checked and name not in _RESULTS:
                continue
            match name:
                case "holds":
                    otherwise = self._decide(within, args[0])[1]
                    path.facts = within.facts
                    if not all(path.excludes(way.facts) for way in otherwise):
                        raise Refusal(Guard.BOUNDS, f"a condition of '{of.name}' is not proved here: {of.accesses}")
                case "gives":
                    low, high = (self._number(path, within, of, one) for one in args)
                    found = self._symbols.chosen(path, [low], [high])
                    numbers = [one.poly for one in env.values() if isinstance(one, Int)]
                    if numbers:
                        made_of = {name for poly in numbers if poly is not None for name in poly.symbols}
                        self._symbols.made_of.update(dict.fromkeys(found.symbols, made_of))
                    result = Int(found, TYPES[of.returns])
                case "counts":
                    thread = symbol(self._symbols.fresh("n"))
                    self._symbols.thread(path, thread, self._number(path, within, of, args[0]))
                    result = Int(thread, TYPES[of.returns])
                case "points":
                    result = self._place(within, args[0])._replace(type=of.returns)
                case "shared" | "outside" | "aligned":
                    self._lies(of, name, args[0], self._place(within, args[0]), args[1:])
                case "reads" | "writes":
                    numbers_ = [self._number(path, within, of, one) for one in args[1:]]
                    places = list(zip(numbers_[::2], numbers_[1::2], strict=True))
                    if not all(path.prove(apart) for _, apart in places):
                        raise Refusal(Guard.BOUNDS, f"'{of.name}' has a stride that may be negative")
                    self._memory.reach(path, self._place(within, args[0]), places, writes=name == "writes", some=True)
        if result is not None:
            return result
        if of.returns not in TYPES or of.returns in self._contract.data:
            return Data.NUMBER
        return self._symbols.either(path, [Way()], [Way()]) if of.returns == "bool" else Int(None, TYPES[of.returns])

    def _given_to(self, path: Path, of: Collective, arguments: Sequence[Term], unset: set[str]) -> dict[str, Value]:
        """A call's arguments by name, converted to the declared types. unset: names that need no value before."""
        env: dict[str, Value] = {}
        for (kind, name, mark), argument in zip(of.declared, arguments, strict=True):
            if mark == "&":
                if argument[0] != "name" or self._scopes.type_of(argument[1]) != (kind, 0):
                    raise Refusal(Guard.BOUNDS, f"'{of.name}' changes '{name}': pass a local variable of type {kind}")
                if name not in unset:
                    self._value(path, argument)
                path.env[argument[1]] = Data.NUMBER
                continue
            value = self._value(path, argument)
            if mark in ("*", "@"):
                if not (isinstance(value, Ptr) and (value.type, value.operand.stars) == (kind, 1)):
                    raise Refusal(Guard.BOUNDS, f"'{of.name}' expects an address of {kind} as '{name}'")
                env[name] = value._replace(type=value.operand.type) if mark == "@" else value
            else:
                env[name] = self._arithmetic.converted(path, value, kind, 0)
        return env

    def _number(self, path: Path, within: Path, of: Collective, expression: Term) -> Poly:
        """A number in a sentence; `size(p)` is the size of p's operand in elements."""
        if expression[:2] == ("call", "size"):
            operand = self._place(within, expression[2][0]).operand
            return operand.dims[0][0] if operand.dims else ZERO
        value = self._value(within, expression)
        path.facts = within.facts
        if isinstance(value, Int) and value.poly is not None:
            return value.poly
        if path.checked:
            raise Refusal(Guard.BOUNDS, f"'{of.name}' has an argument whose value cannot be bounded")
        return ZERO

    def _place(self, within: Path, expression: Term) -> Ptr:
        at = self._value(within, expression)
        assert isinstance(at, Ptr), expression
        return at

    def _lies(self, of: Collective, name: str, expression: Term, at: Ptr, by: Sequence[Term]) -> None:
        """Refuses an address in the wrong kind of memory, or one that is not proved to be aligned."""
        if by:
            bytes_ = by[0][1]
            multiple = at.offset is not None and not any(factor % bytes_ for factor in at.offset.terms.values())
            if not (multiple and at.operand.aligned and at.operand.aligned % bytes_ == 0):
                raise Refusal(Guard.BOUNDS, f"'{of.name}' requires a multiple of {bytes_} bytes, not proved here")
        elif at.operand.shared != (name == "shared") or at.operand.flag:
            kind = "the block's shared memory" if name == "shared" else "an operand's memory"
            raise Refusal(Guard.BOUNDS, f"'{of.name}' expects an address of {kind} as '{expression[1]}'")
