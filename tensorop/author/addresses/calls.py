"""Checks calls of primitives: arguments, preconditions, and the memory that they access."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tensorop.author.addresses.arithmetic import Arithmetic
from tensorop.author.addresses.knowledge import LANES, Refusal
from tensorop.author.addresses.linear import ONE, Poly, number, symbol
from tensorop.author.addresses.syntax import Term
from tensorop.author.addresses.values import (
    INT,
    SIZE,
    TYPES,
    Data,
    Int,
    PartialVector,
    Pred,
    Ptr,
    State,
    Value,
    ring,
    spelled,
)
from tensorop.author.gate import Guard
from tensorop.model.primitive import ARGUMENTS, Collective, Primitive, shape_of

SHAPES = {argument: shape_of(argument) for argument in ARGUMENTS}
_FORMATS = {argument: kind.partition(" ")[0] for argument, kind in ARGUMENTS.items()}
_UNDISTURBED = re.compile(r"\b(\w+)\[vl:\]")  # the argument whose lanes past vl a result keeps
_OF_NUMBERS = ("vector", "element")


class Calls(Arithmetic):
    """The results of primitives."""

    def _call(self, state: State, name: str, arguments: Sequence[Term]) -> Value:
        primitive = self.callables.get(name)
        if name == LANES and not arguments:
            return Int(symbol(LANES), SIZE if self.fixed is None else INT)
        given = [self._value(state, argument) for argument in arguments]
        if primitive is None or isinstance(primitive, Collective) or len(given) != len(primitive.args):
            if self.trusted:
                return Data.ODD
            raise Refusal(Guard.CALLS, f"its C calls '{name}', which is not a primitive")
        numbers: dict[str, Poly] = {}
        pointers: list[tuple[str, Ptr]] = []
        parts: dict[str, Poly] = {}
        for argument, value in zip(primitive.args, given, strict=True):
            shape = SHAPES[argument]
            if value is Data.NUMBER and shape in _OF_NUMBERS:
                continue
            if isinstance(value, PartialVector) and shape == "vector":
                parts[argument] = value.lanes
                continue
            if type(value) is Pred and shape == "predicate":
                numbers[argument] = value.lanes
                continue
            self._argument(state, name, argument, value, numbers, pointers)
        if not self.trusted:
            if (numbers or primitive.preconditions) and not self._anywhere(primitive, numbers):
                self._allowed(state, primitive, numbers)
            if pointers:
                self._accessed(state, primitive, numbers, pointers)
            for argument, lanes in parts.items():
                self._written(state, primitive, numbers, argument, lanes)
        match primitive.returns:
            case "pred":
                found = symbol(LANES) if primitive.meaning == LANES else numbers.get(primitive.meaning)
                return Data.ODD if found is None else Pred(found)
            case "half":
                return Data.HALF
            case "memory" | "none":
                return Data.NOTHING
            case "elem":
                return Data.NUMBER
        lanes = numbers.get("vl", symbol(LANES))
        if kept := _UNDISTURBED.search(primitive.meaning):
            lanes = parts.get(kept[1], symbol(LANES))
        return Data.NUMBER if lanes == symbol(LANES) or self.trusted else PartialVector(lanes)

    def _written(
        self, state: State, primitive: Primitive, numbers: Mapping[str, Poly], argument: str, lanes: Poly
    ) -> None:
        """Refuses a call that reads more lanes of a vector than were written."""
        if argument == "w" and "lane" in numbers:
            wanted = numbers["lane"] + ONE
        elif "half" in primitive.args:
            wanted, lanes = symbol(LANES), lanes + lanes
        else:
            wanted = numbers.get("vl", symbol(LANES))
        if re.search(rf"\b{argument}\b", primitive.meaning) and not self._prove(state, lanes - wanted):
            raise Refusal(
                Guard.LOCALS,
                f"'{primitive.name}' reads {spelled(wanted)} lanes of a vector with {spelled(lanes)} written lanes; "
                "use the same predicate for both, and sum with fma_vv_tail, which keeps the other lanes",
            )

    def _argument(
        self,
        state: State,
        name: str,
        argument: str,
        value: Value,
        numbers: dict[str, Poly],
        pointers: list[tuple[str, Ptr]],
    ) -> None:
        match SHAPES[argument]:
            case "vector" | "element":
                if value in (Data.HALF, Data.NOTHING) or isinstance(value, (Ptr, Pred)):
                    raise Refusal(Guard.DATA, f"'{name}' expects {ARGUMENTS[argument]} as an argument")
            case "half":
                if value is not Data.HALF:
                    raise Refusal(Guard.DATA, f"'{name}' expects half of a vector as an argument")
            case "pointer" | "matrix":
                if isinstance(value, Ptr):
                    pointers.append((argument, value))
                elif not self.trusted:
                    raise Refusal(Guard.BOUNDS, f"'{name}' expects an address as an argument")
            case "predicate" if not (isinstance(value, Pred) or (isinstance(value, Int) and self.predicate in TYPES)):
                if not self.trusted:
                    raise Refusal(Guard.BOUNDS, f"'{name}' expects full, or a predicate made by tail(count)")
            case _:
                if self.trusted and isinstance(value, Data):
                    return
                poly = self._as_int(value).poly if not isinstance(value, Pred) else value.lanes
                if poly is None:
                    if self.trusted:
                        return
                    raise Refusal(Guard.BOUNDS, f"'{name}' has an argument whose value cannot be bounded")
                if not self.trusted and isinstance(value, Int):
                    if not self._whole(state, value, signed=False):
                        raise Refusal(Guard.BOUNDS, f"'{name}' has the argument {spelled(poly)}, which may be negative")
                    if argument == "vl" and not self._prove(state, symbol(LANES) - poly):
                        raise Refusal(Guard.BOUNDS, f"'{name}' has {spelled(poly)} lanes, which may be too many")
                numbers[argument] = poly

    def _anywhere(self, primitive: Primitive, numbers: Mapping[str, Poly]) -> bool:
        """Whether a call is allowed everywhere: its numbers are `lanes`, and its preconditions hold for that."""
        if any(value is not symbol(LANES) for value in numbers.values()):
            return False
        return all(
            goal.of({**numbers, LANES: symbol(LANES)}).terms == {}
            for condition in primitive.preconditions
            for goal in _goals(condition, (*numbers, LANES))
        )

    def _allowed(self, state: State, primitive: Primitive, numbers: Mapping[str, Poly]) -> None:
        """Refuses a call whose preconditions are not proved."""
        numbers = {**numbers, LANES: symbol(LANES)}
        for condition in primitive.preconditions:
            for goal in _goals(condition, tuple(numbers)):
                if not self._prove(state, goal.of(numbers)):
                    raise Refusal(
                        Guard.BOUNDS,
                        f"'{primitive.name}' requires {condition}, which is not proved here; use full for whole "
                        "vectors, and the _tail primitives with tail(count) for parts, with count from 0 to lanes",
                    )

    def _accessed(
        self, state: State, primitive: Primitive, numbers: Mapping[str, Poly], pointers: Sequence[tuple[str, Ptr]]
    ) -> None:
        if primitive.returns == "none" and "readable" not in primitive.preconditions:
            return  # a prefetch has no visible effect, and every address is valid for it
        lanes = symbol(LANES)
        rows, columns = numbers.get("rows", lanes), numbers.get("cols", lanes)
        for i, (argument, at) in enumerate(pointers):
            if primitive.returns == "none":
                places: list[tuple[Poly, Poly]] = []
            elif argument == "src":
                places = [(rows, numbers["lds"]), (columns, ONE)]
            elif argument == "dst":
                places = [(columns, numbers["ldd"]), (rows, ONE)]
            else:
                places = [(numbers.get("vl", lanes), numbers.get("lds", ONE))]
            if primitive.returns != "none":
                for number_ in (at.offset, *(count for count, _ in places)):
                    self._near(number_)
            wanted = self.types[_FORMATS[argument]]
            if primitive.returns != "none" and at.type != wanted:
                raise Refusal(Guard.BOUNDS, f"'{primitive.name}' expects a pointer to {wanted}, got one to {at.type}")
            self._reach(state, at, places, writes=primitive.returns == "memory" and i == 0)


@dataclass(frozen=True)
class _Goal:
    """The inequality left - right + more >= 0."""

    left: ast.expr
    right: ast.expr
    more: int

    def of(self, numbers: Mapping[str, Poly]) -> Poly:
        return _arithmetic(self.left, numbers) - _arithmetic(self.right, numbers) + number(self.more)


@lru_cache(maxsize=256)
def _goals(condition: str, known: tuple[str, ...]) -> tuple[_Goal, ...]:
    """The inequalities that a precondition on integers consists of; none for any other precondition."""
    tree = ast.parse(condition, mode="eval").body
    if not isinstance(tree, ast.Compare):
        return ()
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if not names <= set(known):
        return ()
    found = []
    sides = [tree.left, *tree.comparators]
    for a, operator, b in zip(sides, tree.ops, sides[1:], strict=False):
        if isinstance(operator, (ast.LtE, ast.Lt, ast.Eq)):
            found.append(_Goal(b, a, -isinstance(operator, ast.Lt)))
        if isinstance(operator, (ast.GtE, ast.Gt, ast.Eq)):
            found.append(_Goal(a, b, -isinstance(operator, ast.Gt)))
    return tuple(found)


def _arithmetic(tree: ast.expr, numbers: Mapping[str, Poly]) -> Poly:
    match tree:
        case ast.Constant(value=int(value)):
            return number(value)
        case ast.Name(id=name):
            return numbers[name]
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as operator, right=right):
            sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}[type(operator)]
            return ring(sign, _arithmetic(left, numbers), _arithmetic(right, numbers))
    raise ValueError(ast.dump(tree))
