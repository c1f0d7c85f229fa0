"""Calls of what a group of threads executes together: what its set says that one thread's call reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import tree_sitter
import tree_sitter_c

from tensorop.author.addresses.conditions import Conditions
from tensorop.author.addresses.knowledge import Refusal
from tensorop.author.addresses.linear import ONE, ZERO, Poly
from tensorop.author.addresses.syntax import Term, inner, term, text
from tensorop.author.addresses.values import TYPES, Data, Int, Ptr, State, Value, Way
from tensorop.author.gate import Guard
from tensorop.model.primitive import Collective

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language()))
_SENTENCES = ("holds", "counts", "reads", "writes", "shared", "outside", "sets", "gives")


class Collectives(Conditions):
    """What collective primitives give."""

    def _collective(self, state: State, of: Collective, arguments: Sequence[Term]) -> Value:
        """What one thread's call reads, writes and gives, by what the set says of it."""
        said = sentences(of.accesses) if of.accesses else ()
        unset = {args[0][1] for name, args in said if name == "sets"}
        env: dict[str, Value] = {}
        for (kind, name, mark), argument in zip(of.declared, arguments, strict=True):
            if mark == "&":
                if argument[0] != "name" or self._declared_as(argument[1]) != (kind, 0):
                    raise Refusal(Guard.BOUNDS, f"'{of.name}' changes '{name}': give it a local {kind}")
                if name not in unset:
                    self._value(state, argument)
                state.env[argument[1]] = Data.NUMBER
                continue
            value = env[name] = self._value(state, argument)
            if mark == "*" and not (isinstance(value, Ptr) and (value.type, value.stars) == (kind, 1)):
                raise Refusal(Guard.BOUNDS, f"'{of.name}' takes an address of {kind} as '{name}'")
            if not mark:
                env[name] = value = self._converted(state, value, kind, 0)
        limits: list[Poly] = []
        within, trusted = State(env, state.facts, state.ones), self.trusted
        for name, args in said:
            at = env.get(args[0][1])
            self.trusted = True  # it is the set's text that is read
            otherwise = self._decide(within, args[0])[1] if name == "holds" else []
            asked = args[isinstance(at, Ptr) :] if name not in ("holds", "sets") else ()
            given = [self._value(within, one) for one in asked]
            numbers = [one.poly for one in given if isinstance(one, Int) and one.poly is not None]
            self.trusted, state.facts = trusted, within.facts
            if len(numbers) < len(given) and not trusted:
                raise Refusal(Guard.BOUNDS, f"'{of.name}' is given a number of which nothing is known")
            never = (any(self._prove(state, ZERO - fact - ONE) for fact in way.facts) for way in otherwise)
            if not trusted and not all(never):
                raise Refusal(Guard.BOUNDS, f"'{of.name}' wants what nothing shows here: {of.accesses}")
            if name == "gives":
                limits = numbers
            elif isinstance(at, Ptr) and (name in ("shared", "outside")):
                if at.operand.shared != (name == "shared") or at.operand.flag:
                    kind = "the block's shared memory" if name == "shared" else "an operand's memory"
                    raise Refusal(Guard.BOUNDS, f"'{of.name}' takes an address of {kind} as '{args[0][1]}'")
            elif isinstance(at, Ptr):
                places = list(zip(numbers[::2], numbers[1::2], strict=True))
                if not trusted and not all(self._prove(state, apart) for _, apart in places):
                    raise Refusal(Guard.BOUNDS, f"'{of.name}' goes backwards, or nothing shows that it does not")
                self._reach(state, at, places, writes=name == "writes", some=True)
        if of.returns == "void":
            return Data.NOTHING
        if of.returns not in TYPES or of.returns in self.data:
            return Data.NUMBER
        if of.returns == "bool":
            return self._either(state, [Way()], [Way()])
        return Int(self._chosen(state, limits[:1], limits[1:]) if limits else None, TYPES[of.returns])

    def _declared_as(self, name: str) -> tuple[str, int]:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), ("", 0))


@lru_cache(maxsize=512)
def sentences(said: str) -> tuple[tuple[str, tuple[Term, ...]], ...]:
    """The calls of a contract, as expressions."""
    source = f"void f(void) {{ {said.strip().removesuffix(';')}; }}".encode("ascii", "replace")
    body = _PARSER.parse(source).root_node.named_children[0].child_by_field_name("body")
    found = []
    for node in inner(body) if body is not None else ():
        match term(inner(node)[0]) if node.type == "expression_statement" else ():
            case ("call", name, arguments) if name in _SENTENCES:
                found.append((name, arguments))
            case _:
                raise Refusal(Guard.BOUNDS, f"a contract says '{text(node)}', which is none")
    return tuple(found)
