"""Checks calls of primitives: arguments, preconditions, and the memory that they access."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from tensorop.author.addresses.arithmetic import Arithmetic
from tensorop.author.addresses.linear import ONE, ZERO, Poly, number, symbol
from tensorop.author.addresses.memory import Memory
from tensorop.author.addresses.path import Path
from tensorop.author.addresses.values import Data, Int, PartialVector, Ptr, Value, ring, spelled
from tensorop.author.c_types import SIZE
from tensorop.author.contracts import LANES, CallContract
from tensorop.author.gate import Guard
from tensorop.author.grammar import Refusal
from tensorop.model.primitive import ARGUMENTS, Primitive, shape_of

SHAPES = {argument: shape_of(argument) for argument in ARGUMENTS}
_FORMATS = {argument: kind.partition(" ")[0] for argument, kind in ARGUMENTS.items()}
_UNDISTURBED = re.compile(r"\b(\w+)\[vl:\]")  # the argument whose lanes past vl a result keeps
_ALL = symbol(LANES)
_NEVER = ZERO - ONE
_COMPARED = {ast.Lt: (1, 1, 0), ast.LtE: (0, 1, 0), ast.Gt: (1, 0, 1), ast.GtE: (0, 0, 1), ast.Eq: (0, 1, 1)}


class Calls:
    """The results of primitives."""

    def __init__(self, contract: CallContract, arithmetic: Arithmetic, memory: Memory) -> None:
        self._contract, self._arithmetic, self._memory = contract, arithmetic, memory
        own = contract.primitives
        self._types = {"compute": own.compute, "storage": own.storage, "pointer": own.element}

    def result(self, path: Path, of: Primitive, given: Sequence[Value]) -> Value:
        """The result of a call with these arguments. Raises Refusal for one that is not proved to be allowed."""
        numbers: dict[str, Poly] = {}
        pointers: list[tuple[str, Ptr]] = []
        parts: dict[str, Poly] = {}  # vectors with only so many lanes written
        for argument, value in zip(of.args, given, strict=True):
            match SHAPES[argument]:
                case "vector" | "element":
                    if isinstance(value, PartialVector):
                        parts[argument] = value.lanes
                case "half":
                    if value is not Data.HALF:
                        raise Refusal(Guard.DATA, f"'{of.name}' expects half of a vector as an argument")
                case "pointer" | "matrix":
                    if not isinstance(value, Ptr):
                        raise Refusal(Guard.BOUNDS, f"'{of.name}' expects an address as an argument")
                    pointers.append((argument, value))
                case _:
                    numbers[argument] = self._number(path, of, argument, value)
        if path.checked:
            self._allowed(path, of, numbers)
            self._accessed(path, of, numbers, pointers)
            for argument, lanes in parts.items():
                self._written(path, of, numbers, argument, lanes)
        if of.returns == "pred":
            if (active := {LANES: _ALL, **numbers}.get(of.meaning)) is None:
                raise Refusal(Guard.BOUNDS, f"'{of.name}' makes a predicate of a number that nothing bounds")
            return Int(active, SIZE)
        if of.returns in ("half", "memory", "none", "elem"):
            return Data.HALF if of.returns == "half" else Data.NUMBER
        kept = _UNDISTURBED.search(of.meaning)
        lanes = parts.get(kept[1], _ALL) if kept else numbers.get("vl", _ALL)
        return Data.NUMBER if lanes == _ALL else PartialVector(lanes)

    def _number(self, path: Path, of: Primitive, argument: str, value: Value) -> Poly:
        """An argument that counts: lanes (of a predicate), rows, columns, a leading dimension."""
        found = self._arithmetic.number(value)
        if found.poly is None:
            raise Refusal(Guard.BOUNDS, f"'{of.name}' has an argument whose value cannot be bounded")
        if path.checked and not path.whole(found, signed=False):
            raise Refusal(Guard.BOUNDS, f"'{of.name}' has the argument {spelled(found.poly)}, which may be negative")
        if path.checked and argument == "vl" and not path.prove(_ALL - found.poly):
            raise Refusal(Guard.BOUNDS, f"'{of.name}' has {spelled(found.poly)} lanes, which may be too many")
        return found.poly

    def _written(self, path: Path, of: Primitive, numbers: Mapping[str, Poly], argument: str, lanes: Poly) -> None:
        """Refuses a call that reads more lanes of a vector than were written."""
        if argument == "w" and "lane" in numbers:
            wanted = numbers["lane"] + ONE
        elif "half" in of.args:
            wanted, lanes = _ALL, lanes + lanes
        else:
            wanted = numbers.get("vl", _ALL)
        if re.search(rf"\b{argument}\b", of.meaning) and not path.prove(lanes - wanted):
            what = f"'{of.name}' reads {spelled(wanted)} lanes of a vector with {spelled(lanes)} written lanes"
            how = "use the same predicate for both, and sum with fma_vv_tail, which keeps the other lanes"
            raise Refusal(Guard.LOCALS, f"{what}; {how}")

    def _allowed(self, path: Path, of: Primitive, numbers: Mapping[str, Poly]) -> None:
        """Refuses a call whose preconditions are not proved."""
        known = {**numbers, LANES: _ALL}
        for condition in of.preconditions:
            names, goals = _goals(condition)
            if not names <= known.keys():
                continue  # on vectors
            for goal in goals:
                for name in names:
                    goal = goal.replaced(f"${name}", known[name])
                if not path.prove(goal):
                    what = f"'{of.name}' requires {condition}, which is not proved here; use full for whole vectors"
                    how = "and the _tail primitives with tail(count) for parts, with count from 0 to lanes"
                    raise Refusal(Guard.BOUNDS, f"{what}, {how}")

    def _accessed(
        self, path: Path, of: Primitive, numbers: Mapping[str, Poly], pointers: Sequence[tuple[str, Ptr]]
    ) -> None:
        if of.returns == "none":  # a prefetch has no visible effect, and any address, unless it must be readable
            for _, at in pointers if "readable" in of.preconditions else ():
                self._memory.reach(path, at, (), writes=False)
            return
        rows, columns = numbers.get("rows", _ALL), numbers.get("cols", _ALL)
        for i, (argument, at) in enumerate(pointers):
            places = [(numbers.get("vl", _ALL), numbers.get("lds", ONE))]
            if argument == "src":
                places = [(rows, numbers["lds"]), (columns, ONE)]
            elif argument == "dst":
                places = [(columns, numbers["ldd"]), (rows, ONE)]
            self._memory.near(path, at.offset, *(count for count, _ in places))
            if (at.type, at.operand.stars) != (wanted := self._types[_FORMATS[argument]], 1):
                got = at.type + " *" * (at.operand.stars - 1)
                raise Refusal(Guard.BOUNDS, f"'{of.name}' expects a pointer to {wanted}, got one to {got}")
            self._memory.reach(path, at, places, writes=of.returns == "memory" and i == 0)


@lru_cache(maxsize=256)
def _goals(condition: str) -> tuple[frozenset[str], tuple[Poly, ...]]:
    """The names in a precondition, and what it says to be at least 0 over symbols `$name`.

    A precondition on integers that is no comparison of sums and products is never proved.
    """
    tree = ast.parse(condition, mode="eval").body
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    found: list[Poly] = []
    sides = [tree.left, *tree.comparators] if isinstance(tree, ast.Compare) else []
    for left, operator, right in zip(sides, getattr(tree, "ops", ()), sides[1:], strict=False):
        a, b = _arithmetic(left), _arithmetic(right)
        if a is None or b is None or type(operator) not in _COMPARED:
            return names, (_NEVER,)
        more, up, down = _COMPARED[type(operator)]
        found += [b - a - number(more)] * up + [a - b - number(more)] * down
    return names, tuple(found) or (_NEVER,)


def _arithmetic(tree: ast.expr) -> Poly | None:
    match tree:
        case ast.Constant(value=int(value)):
            return number(value)
        case ast.Name(id=name):
            return symbol(f"${name}")
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as operator, right=right):
            a, b = _arithmetic(left), _arithmetic(right)
            sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}[type(operator)]
            return None if a is None or b is None else ring(sign, a, b)
    return None
