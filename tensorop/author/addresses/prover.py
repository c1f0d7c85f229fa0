"""Interprets a function's C on every path. Integers are polynomials over the arguments of its function.

Every memory access must be proved to be inside its operand. The proof uses the operator's contract, the conditions on
the path, and the amounts by which each iteration of a loop changes its counters.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import lru_cache

from tree_sitter import Node

from tensorop.author.addresses.admission import Admission
from tensorop.author.addresses.expressions import Expressions
from tensorop.author.addresses.linear import ONE, ZERO, Facts, Poly, number, symbol
from tensorop.author.addresses.loops import Loop, Trace
from tensorop.author.addresses.path import Path, Promises, Scopes
from tensorop.author.addresses.symbols import Symbols
from tensorop.author.addresses.values import Data, Int, OperandMemory, PartialVector, Ptr, joined, poly_of
from tensorop.author.c_types import SIZE, TYPES
from tensorop.author.contracts import LANES, CallContract, sentences
from tensorop.author.gate import Guard
from tensorop.author.grammar import Refusal
from tensorop.author.terms import Statement, Term, field, inner, parameters, statements, term, text
from tensorop.model.primitive import MAX_LANES

_GIVEN = 1 << 56  # an upper bound of a kernel's arguments
_MOST_WAYS = 16
_CONTRACT = "/*@"
_NAMES = re.compile(rb"[A-Za-z_]\w*")
_MOST_DONE = 1 << 15
_OPERANDS: dict[Hashable, OperandMemory] = {}  # equal operands are one object


class Prover:
    """The proof of one template's text in its function."""

    def __init__(self, contract: CallContract) -> None:
        self._contract, self._promises, self.symbols = contract, Promises(contract.lanes), Symbols()
        self._scopes, self.trace = Scopes(), Trace()
        admission = Admission(self._promises, self.symbols)
        self._expressions = Expressions(contract, self.symbols, self._scopes, admission)

    def run(self, function: Node, body: Node, first: int, last: int) -> None:
        """Interprets the function up to the end of the text, which has the bytes from first to last. Raises Refusal."""
        paths = [self._entered(function)]
        for node in body.children:
            if node.start_byte >= last:
                break
            if node.type == "comment" and node.start_byte < first and text(node).startswith(_CONTRACT):
                self._promised(text(node)[len(_CONTRACT) : -2], paths[0])
            if node.type == "comment" or not node.is_named:
                continue
            for path in paths:
                path.checked = node.start_byte >= first
            paths = self._statement(node, paths)
            if len(paths) > 1:
                paths = self._merged(paths, set(_NAMES.findall(body.text or b"", node.end_byte - body.start_byte)))
        if crowded := self._expressions.admission.asked.crowded:
            raise crowded

    # ---- promises

    def _entered(self, function: Node) -> Path:
        """The path at the function's begin."""
        promises, path = self._promises, Path(self._promises, {}, Facts.none())
        for name, stars, kind in parameters(function):
            self._scopes.blocks[0][name] = kind, stars
            path.env[name] = Data.SCALE
            if stars or kind in self._contract.addresses:
                operand = promises.operands[name] = OperandMemory(name, kind, max(stars, 1), None, False)
                path.env[name] = Ptr(operand, ZERO, kind)
            elif kind in TYPES and kind not in self._contract.data:
                promises.given.add(name)
                path.env[name] = Int(symbol(name), TYPES[kind])
                if kind == "bool":
                    path.learn([ONE - symbol(name)])
        promises.limits = _limits(tuple(sorted(promises.given)))
        if promises.lanes is None:
            path.learn([symbol(LANES) - ONE, number(MAX_LANES) - symbol(LANES)])
        return path

    def _promised(self, contract: str, path: Path) -> None:
        """Reads the operator's contract: `holds(condition)`, `reads(p, extent, stride, ...)`, `writes(...)`.

        An additional last number is the room: elements beyond the end in which a vector that begins inside may end.
        `counts(thread, n)`: thread is a number below n. `shared(p)`: p is the block's shared memory.
        `aligned(p, n)`: p is a multiple of n bytes. `paces(step)`: the distance between a block's tiles, which
        conditions may use like lanes. `steps(k, n)`: k counts steps of n elements; a third argument is the size that
        they are of. `tile(row, n)`: the block's tile has n rows from this one on.
        """
        promises = self._promises
        path.env[LANES] = Int(symbol(LANES), SIZE)
        for name, args in sentences(contract):
            of = args[0]
            match name:
                case "counts":
                    self.symbols.thread(path, self._number(path, of), self._number(path, args[1]))
                case "shared":
                    promises.operands[of[1]].shared = True
                case "aligned":
                    promises.operands[of[1]].aligned = self._number(path, args[1]).constant or 0
                case "steps":
                    promises.steps[of[1]] = self._number(path, args[1]).constant or 1
                    promises.counted[of[1]] = args[2][1] if len(args) > 2 else of[1]
                case "tile":
                    promises.tiles[of[1]] = self._number(path, args[1]).constant or 0
                case "paces":
                    promises.paces.add(of[1])
                case "holds" if of[:2] == ("two", "==") and of[2][0] == "name" and of[2][1] in promises.given:
                    path.env[of[2][1]] = Int(self._number(path, of[3]), SIZE)
                case "holds":
                    for way in self._expressions.decide(path, of)[0][:1]:
                        path.learn(way.facts)
                case _:
                    operand = promises.operands[of[1][1]].pointed if of[0] == "at" else promises.operands[of[1]]
                    operand.writes = name == "writes"
                    operand.room = self._number(path, args[-1]) if len(args) % 2 == 0 else ZERO
                    places = zip(args[1::2], args[2::2], strict=False)
                    operand.dims = tuple((self._number(path, count), self._stride(path, by)) for count, by in places)
        for name, operand in promises.operands.items():
            path.env[name] = Ptr(_OPERANDS.setdefault(operand.key, operand), ZERO, operand.type)
        if len(_OPERANDS) > _MOST_DONE:
            _OPERANDS.clear()
        del path.env[LANES]
        promises.numbers = {name: path.env[name] for name in promises.given}

    def _number(self, path: Path, of: Term) -> Poly:
        poly = poly_of(self._expressions.value(path, of))
        assert poly is not None
        return poly

    def _stride(self, path: Path, stride: Term) -> str:
        poly = self._number(path, stride)
        if poly == ONE:
            return ""
        (monomial,) = poly.terms
        self._promises.strides.add(monomial[0])
        return monomial[0]

    # ---- statements

    def _statement(self, node: Node, paths: list[Path]) -> list[Path]:
        """The paths after a statement. One that no path reaches is not read (`Trace.unreached`)."""
        if node.type == "comment":
            return paths
        self.trace.statements[node.start_byte] = node.end_byte
        if not paths:
            return paths
        self.trace.reached.add(node.start_byte)
        self._expressions.admission.at = node
        try:
            if len(paths) > _MOST_WAYS:
                raise Refusal(Guard.BOUNDS, f"more than {_MOST_WAYS} paths with different values lead here")
            match node.type:
                case "expression_statement" | "declaration":
                    return self._simple(node, paths)
                case "compound_statement":
                    return self._block(inner(node), paths)
                case "if_statement":
                    return self._if(node, paths)
                case "for_statement" | "while_statement":
                    return self._loop(node, paths)
            raise Refusal(Guard.GRAMMAR, f"its C has {node.type.replace('_', ' ')}")
        except Refusal as refusal:
            refusal.node = refusal.node or node
            raise

    def _block(self, nodes: Sequence[Node], paths: list[Path]) -> list[Path]:
        self._scopes.blocks.append({})
        for node in nodes:
            paths = self._statement(node, paths)
        return self._scopes.leave(paths)

    def _if(self, node: Node, paths: list[Path]) -> list[Path]:
        condition, then = term(field(node, "condition")), field(node, "consequence")
        other = node.child_by_field_name("alternative")
        ends = []
        for path in paths:
            self._expressions.admission.at = node
            yes, no = (path.ways(ways) for ways in self._expressions.decide(path, condition))
            ends += self._block([then], yes)
            ends += self._block(inner(other), no) if other is not None else no
        return self._merged(ends)

    def _loop(self, node: Node, paths: list[Path]) -> list[Path]:
        update, body = node.child_by_field_name("update"), field(node, "body")

        def turn(begins: list[Path]) -> list[Path]:
            return self._simple(update, self._block([body], begins))

        self._scopes.blocks.append({})
        before = self._merged(self._simple(node.child_by_field_name("initializer"), paths))
        ends = [end for path in before for end in Loop(node, path, self._expressions, self.trace, turn).exits()]
        return self._merged(self._scopes.leave(ends))

    def _simple(self, node: Node | None, paths: list[Path]) -> list[Path]:
        for one in statements(node):
            for path in paths:
                self._once(path, one)
        return paths

    def _once(self, path: Path, one: Statement) -> None:
        """Interprets one statement; a plain one that passed with the same facts and values is not checked again."""
        env, to, done = path.env, one.to, self._contract.done
        key = None
        if one.plain and path.checked:
            values = tuple([env.get(name) for name in one.names])
            key = one, path.facts, path.ones, values
            if (result := done.get(key)) is not None:  # one lookup: another thread may clear it
                if one.kind:
                    self._scopes.declare(path, to, one.kind, 0)
                if to:
                    env[to] = result
                return
        before, by_choice = path.facts, self.symbols.by_choice
        self._expressions.execute(path, one.of)
        if (
            key is not None
            and path.facts is before
            and self.symbols.by_choice == by_choice
            and ((made := env[to] if to else Data.NUMBER) is Data.NUMBER or isinstance(made, PartialVector))
            and all(env.get(name) is value or name == to for name, value in zip(one.names, key[3], strict=True))
            and not any(type(value) is Ptr and value.operand.flag for value in key[3])
        ):
            if len(done) >= _MOST_DONE:
                done.clear()
            done[key] = made

    def _merged(self, paths: list[Path], used: set[bytes] | None = None) -> list[Path]:
        """The paths, with those merged whose numbers are equal. used: names that the text can still use."""
        made: list[Path] = []
        for path in paths:
            if used is not None:
                for name in [name for name, value in path.env.items() if not isinstance(value, Data)]:
                    if name.encode() not in used:
                        path.env[name] = Data.UNSET
            for i, other in enumerate(made):
                if (env := joined(path.env, other.env)) is not None:
                    shared = other.facts.shared(path.facts)
                    made[i] = Path(path.promises, env, shared, other.ones & path.ones, path.checked)
                    break
            else:
                made.append(path)
        return made


@lru_cache(maxsize=64)
def _limits(names: tuple[str, ...]) -> tuple[Poly, ...]:
    return tuple(number(_GIVEN) - symbol(name) for name in names)
