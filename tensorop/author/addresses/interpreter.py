"""Interprets a kernel's C on every path. Integers are polynomials over the arguments of its function.

Every memory access must be proved to be inside its operand. The proof uses the operator's contract, the conditions on
the path, and the amounts by which each iteration of a loop changes its counters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Sequence
from functools import lru_cache

from tree_sitter import Node

from tensorop.author.addresses.collectives import sentences
from tensorop.author.addresses.knowledge import LANES, Refusal
from tensorop.author.addresses.linear import ONE, ZERO, Facts, Poly, number, symbol
from tensorop.author.addresses.loops import Loops
from tensorop.author.addresses.syntax import Statement, Term, inner, parameters, statement, term, text
from tensorop.author.addresses.values import (
    SIZE,
    TYPES,
    Data,
    Int,
    OperandMemory,
    PartialVector,
    Ptr,
    State,
    joined,
)
from tensorop.author.gate import Guard
from tensorop.model.primitive import MAX_LANES

_GIVEN = 1 << 56  # an upper bound of a kernel's arguments
_MOST_WAYS = 16
_CONTRACT = "/*@"
_NAMES = re.compile(rb"[A-Za-z_]\w*")
_MOST_DONE = 1 << 15
_OPERANDS: dict[Hashable, OperandMemory] = {}  # equal operands are one object


class Interpreter(Loops):
    """One region of a template, in its function."""

    def run(self, function: Node, body: Node, first: int, last: int) -> None:
        """Interprets the function up to the region's end. Raises Refusal."""
        state = State({}, Facts.none())
        for name, stars, kind in parameters(function):
            self.scopes[0][name] = kind, stars
            if stars or kind in self.addresses:
                operand = self.operands[name] = OperandMemory(name, kind, max(stars, 1), None, False)
                state.env[name] = Ptr(operand, ZERO, kind, operand.stars)
            elif kind in TYPES and kind not in self.data:
                self.given.add(name)
                state.env[name] = Int(symbol(name), TYPES[kind])
                if kind == "bool":
                    state.facts = state.facts.known([ONE - symbol(name)])
            else:
                state.env[name] = Data.SCALE
        self.limits = _limits(tuple(sorted(self.given)))
        lanes = self.callables.get(LANES)
        fixed = constant_of(lanes.c) if lanes is not None else None
        self.fixed = fixed
        if fixed is None:
            state.facts = state.facts.known([symbol(LANES) - ONE, number(MAX_LANES) - symbol(LANES)])
        states = [state]
        for node in body.children:
            if node.start_byte >= last:
                break
            inside = node.start_byte >= first
            self.trusted = not inside
            if node.type == "comment":
                if not inside and (comment := text(node)).startswith(_CONTRACT):
                    self._contract(comment[len(_CONTRACT) : -2], state)
                continue
            if not node.is_named:
                continue
            states = self._statement(node, states)
            if len(states) > 1:
                states = self._merged(states, set(_NAMES.findall(body.text or b"", node.end_byte - body.start_byte)))

    def _contract(self, contract: str, state: State) -> None:
        """Reads the operator's contract: `holds(condition)`, `reads(p, extent, stride, ...)`, `writes(...)`.

        An additional last number is the room: elements beyond the end in which a vector that begins inside may end.
        `counts(thread, n)`: thread is a number below n. `shared(p)`: p is the block's shared memory.
        `aligned(p, n)`: p is a multiple of n bytes. `paces(step)`: the distance between a block's tiles, which
        conditions may use like lanes. `steps(k, n)`: k counts steps of n elements.
        """
        state.env[LANES] = Int(symbol(LANES), SIZE)
        for name, args in sentences(contract):
            if name == "counts":
                self._counted(state, self._poly(state, args[0]), self._poly(state, args[1]))
                continue
            if name == "shared":
                self.operands[args[0][1]].shared = True
                continue
            if name == "aligned":
                self.operands[args[0][1]].aligned = self._poly(state, args[1]).constant or 0
                continue
            if name == "steps":
                self.steps[args[0][1]] = self._poly(state, args[1]).constant or 1
                continue
            if name == "paces":
                self.paces.add(args[0][1])
                continue
            if name == "holds":
                match args[0]:
                    case "two", "==", ("name", given), value if given in self.given:
                        state.env[given] = Int(self._poly(state, value), SIZE)
                    case condition:
                        for way in self._decide(state, condition)[0][:1]:
                            state.facts = state.facts.known(way.facts)
                continue
            room = self._poly(state, args[-1]) if len(args) % 2 == 0 else ZERO
            places = list(zip(args[1::2], args[2::2], strict=False))
            extents = [(self._poly(state, extent), self._stride(state, stride)) for extent, stride in places]
            of = args[0][1] if args[0][0] == "at" else args[0]
            operand = self.operands[of[1]]
            if of is not args[0]:
                operand.of = operand.of or OperandMemory(
                    f"*{operand.name}", operand.type, operand.stars - 1, None, False
                )
                operand = operand.of
            operand.dims = tuple(extents)
            operand.writes = name == "writes"
            operand.room = room
        for name, operand in self.operands.items():
            operand = _OPERANDS.setdefault(operand.key, operand)
            state.env[name] = Ptr(operand, ZERO, operand.type, operand.stars)
        if len(_OPERANDS) > _MOST_DONE:
            _OPERANDS.clear()
        del state.env[LANES]
        self.promised = {name: state.env[name] for name in self.given}

    def _stride(self, state: State, stride: Term) -> str:
        poly = self._poly(state, stride)
        if poly == ONE:
            return ""
        (monomial,) = poly.terms
        self.strides.add(monomial[0])
        return monomial[0]

    def _statement(self, node: Node, states: list[State]) -> list[State]:
        """The states after a statement. One that no state reaches is not read (`unreached`)."""
        if node.type != "comment":
            self.statements[node.start_byte] = node.end_byte
        if not states:
            return states
        self.reached.add(node.start_byte)
        if len(states) > _MOST_WAYS:
            raise Refusal(Guard.BOUNDS, f"more than {_MOST_WAYS} paths with different values lead here", node)
        match node.type:
            case "comment":
                return states
            case "expression_statement" | "declaration" | "comma_expression":
                return self._simple(node, states)
            case "compound_statement":
                return self._block(inner(node), states)
            case "if_statement":
                return self._if(node, states)
            case "for_statement" | "while_statement":
                self.scopes.append({})
                first = node.child_by_field_name("initializer") if node.type == "for_statement" else None
                if first is not None:
                    states = self._simple(first, states)
                states = [exit_ for state in self._merged(states) for exit_ in self._loop(node, state)]
                return self._merged(self._left(states))
            case _:
                raise Refusal(Guard.BOUNDS, f"its C has {node.type.replace('_', ' ')}", node)

    def _simple(self, node: Node, states: list[State]) -> list[State]:
        parts = inner(node) if node.type == "expression_statement" else [node]
        for part in parts:
            stmt = statement(part)
            try:
                for state in states:
                    self._once(state, stmt)
            except Refusal as refusal:
                refusal.node = refusal.node or node
                raise
        return states

    def _once(self, state: State, stmt: Statement) -> None:
        """Interprets one statement; a plain one that passed with the same facts and values is not checked again."""
        of, env = stmt.of, state.env
        key = None
        if stmt.plain and not self.trusted:
            values = tuple([env.get(name) for name in stmt.names])
            key = stmt, state.facts, state.ones, values
            if (done := self.names.done.get(key)) is not None:  # one lookup: another thread may clear it
                if stmt.kind:
                    self._named(state, stmt.to, stmt.kind, 0)
                if stmt.to:
                    env[stmt.to] = done
                return
        before, by_choice = state.facts, self.by_choice
        if of[0] == "declare":
            self._declare(state, of)
        else:
            self._value(state, of)
        if (
            key is not None
            and state.facts is before
            and self.by_choice == by_choice
            and ((made := env[stmt.to] if stmt.to else Data.NUMBER) is Data.NUMBER or isinstance(made, PartialVector))
            and all(env.get(name) is value or name == stmt.to for name, value in zip(stmt.names, key[3], strict=True))
            and not any(type(value) is Ptr and value.operand.flag for value in key[3])
        ):
            if len(self.names.done) >= _MOST_DONE:
                self.names.done.clear()
            self.names.done[key] = made

    def _block(self, nodes: Sequence[Node], states: list[State]) -> list[State]:
        self.scopes.append({})
        for node in nodes:
            states = self._statement(node, states)
        return self._left(states)

    def _left(self, states: list[State]) -> list[State]:
        """The states after a block, without its names."""
        states = [self._out(state, len(self.scopes) - 1) for state in states]
        self.scopes.pop()
        return states

    def _out(self, state: State, depth: int) -> State:
        """A state without the names of the blocks past the first `depth`; names that they hid are visible again."""
        for at in range(len(self.scopes) - 1, depth - 1, -1):
            arrays = False
            for name in self.scopes[at]:
                arrays = state.env.pop(name, None) is not None and (arrays or name.endswith("]"))
                if (hidden := state.env.pop(f"{name} {at}", None)) is not None:
                    state.env[name] = hidden
            for name, value in list(state.env.items()) if arrays else ():
                if isinstance(value, Ptr) and value.operand.flag in self.scopes[at]:
                    state.env[name] = Data.UNSET  # its array is out of scope
        return state

    def _if(self, node: Node, states: list[State]) -> list[State]:
        condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        otherwise = node.child_by_field_name("alternative")
        assert condition is not None
        assert then is not None
        ends = []
        for state in states:
            try:
                yes_states, no_states = (self._apart(state, ways) for ways in self._decide(state, term(condition)))
            except Refusal as refusal:
                refusal.node = refusal.node or condition
                raise
            ends += self._block([then], yes_states)
            ends += self._block(inner(otherwise), no_states) if otherwise is not None else no_states
        return self._merged(ends)

    def _merged(self, states: list[State], used: set[bytes] | None = None) -> list[State]:
        """The states, with those merged whose numbers are equal. used: names that the text can still use."""
        made: list[State] = []
        for state in states:
            if used is not None:
                for name in [name for name, value in state.env.items() if not isinstance(value, Data)]:
                    if name.encode() not in used:
                        state.env[name] = Data.UNSET
            for i, other in enumerate(made):
                if (env := joined(state.env, other.env)) is not None:
                    made[i] = State(env, other.facts.shared(state.facts), other.ones & state.ones)
                    break
            else:
                made.append(state)
        return made


@lru_cache(maxsize=64)
def _limits(names: tuple[str, ...]) -> tuple[Poly, ...]:
    return tuple(number(_GIVEN) - symbol(name) for name in names)


def constant_of(expression: str) -> int | None:
    """The number of lanes if its C expression is a constant, else None."""
    if not re.fullmatch(r"[0-9 +*/()-]+", expression):
        return None
    tree = ast.parse(expression.strip(), mode="eval").body

    def value(of: ast.expr) -> int:
        match of:
            case ast.Constant(value=int(found)):
                return found
            case ast.BinOp(left=left, op=operator, right=right):
                a, b = value(left), value(right)
                return {ast.Add: a + b, ast.Sub: a - b, ast.Mult: a * b, ast.Div: a // max(b, 1)}[type(operator)]
        raise ValueError(ast.dump(of))

    return value(tree)
