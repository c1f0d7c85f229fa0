"""Constraint expressions: a small, typed, side-effect-free part of Python.

Names, integers, strings, tuples after `in`, `+ - * // %`, comparisons (chained too), `and or not`, `min`, `max`.
Expressions of real numbers, such as default parameters, also have decimal fractions, `/` and `sqrt`.
Texts may be untrusted, so parsing refuses everything else, and arithmetic on strings. A parsed expression has no loops,
calls only `min` and `max`, and its work is bounded by its length.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.errors import SpecError
from tensorop.model.point import Value

MAX_LENGTH = 500
MAX_INTEGER = 1 << 63
FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max}
_OF_COLUMNS: dict[str, Callable[..., Any]] = {
    "min": lambda *of: reduce(np.minimum, of),
    "max": lambda *of: reduce(np.maximum, of),
}
_SCOPE = {"__builtins__": {}, **FUNCTIONS}
_OF_REALS = {**_SCOPE, "sqrt": math.sqrt}

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)


@dataclass(frozen=True)
class Expression:
    """A checked expression and the names that it uses."""

    text: str
    names: frozenset[str]
    code: CodeType

    def value(self, names: Mapping[str, Value | float]) -> int | bool:
        """The expression's value; of floats, conditions alone. Raises ZeroDivisionError."""
        result: int | bool = eval(self.code, _SCOPE, names)
        return result

    def column(self, names: Mapping[str, Value | NDArray[np.float64]]) -> NDArray[np.float64]:
        """The values for columns: any name may be an array of numbers (not of strings).

        NumPy raises ValueError for `and`, `or`, `not` and chained comparisons of columns, and FloatingPointError for
        their division by zero.
        """
        with np.errstate(divide="raise", invalid="raise"):
            found = eval(self.code, {"__builtins__": {}, **_OF_COLUMNS}, names)
        return np.asarray(found, dtype=np.float64)

    def in_c(self) -> str:
        """The expression in C over `uint64_t`; no intermediate value may be negative.

        Raises SpecError for a part that has no equivalent in C.
        """
        return _in_c(ast.parse(self.text.strip(), mode="eval").body, self.text)

    def checked_c(self, before: str) -> str:
        """The expression in C over `int64_t`, with a variable `lost` that is set if there is no result.

        It calls the functions of native/operator/product/check.c.j2. before: prefix of names, e.g. `call->`
        Raises SpecError for a string, which has no equivalent in C.
        """
        return _checked_c(ast.parse(self.text.strip(), mode="eval").body, before, self.text)


def parse(text: str, kinds: Mapping[str, type], reals: bool = False) -> Expression:
    """Parses an expression over names of type `int` or `str`. reals: as for `real`, and only for it

    Raises SpecError with the text and its fault: syntax, an unknown name, a string in place of a number, or a construct
    outside of the language.
    """
    if len(text) > MAX_LENGTH:
        raise SpecError(f"the expression '{text[:40]}...' has {len(text)} characters; at most {MAX_LENGTH} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        reader = _Reader(text, kinds, reals)
        reader.kind(tree.body)
        return Expression(text, frozenset(reader.names), compile(tree, "<constraint>", "eval"))
    except RecursionError:
        raise SpecError(f"'{text}' is nested too deeply") from None
    except (SyntaxError, ValueError, MemoryError) as error:
        raise SpecError(f"'{text}' is not an expression: {error}") from None


def evaluate(text: str, values: Mapping[str, Value]) -> int:
    """The value of an expression for these names. Raises SpecError as `parse`, and for a division by zero."""
    if isinstance(own := values.get(text), int):  # most sides of operands are a name
        return int(own)
    try:
        return int(_parsed(text, tuple(values), tuple(map(type, values.values()))).value(values))
    except ZeroDivisionError:
        raise SpecError(f"'{text}' divides by zero") from None


def real(text: str, values: Mapping[str, int]) -> float:
    """The value of an expression of real numbers. Raises SpecError as `parse`, and where it has no finite value."""
    code = parse(text, dict.fromkeys(values, int), reals=True).code
    try:
        found = float(eval(code, _OF_REALS, values))
    except (ArithmeticError, ValueError) as error:  # a square root of a negative number
        raise SpecError(f"'{text}' has no value: {error}") from None
    if not math.isfinite(found):
        raise SpecError(f"'{text}' is {found}")
    return found


@lru_cache(maxsize=1024)
def _parsed(text: str, names: tuple[str, ...], kinds: tuple[type, ...]) -> Expression:
    return parse(text, dict(zip(names, kinds, strict=True)))


_C_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "/",
    ast.Mod: "%",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def _in_c(node: ast.expr, text: str) -> str:
    match node:
        case ast.Constant(value=int(number)):
            return f"{int(number)}u"
        case ast.Name(id=name):
            return name
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _C_SIGNS:
            return f"({_in_c(left, text)} {_C_SIGNS[type(op)]} {_in_c(right, text)})"
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _C_SIGNS:
            return f"(uint64_t)({_in_c(left, text)} {_C_SIGNS[type(op)]} {_in_c(right, text)})"
        case ast.Call(func=ast.Name(id=name), args=[first, *rest]):
            found, sign = _in_c(first, text), "<" if name == "min" else ">"
            for other in rest:
                found = f"({found} {sign} {_in_c(other, text)} ? {found} : {_in_c(other, text)})"
            return found
    raise SpecError(f"in '{text}': '{ast.unparse(node)}' cannot be translated to C")


_CHECKED: dict[type[ast.AST], str] = {
    ast.Add: "plus",
    ast.Sub: "minus",
    ast.Mult: "times",
    ast.FloorDiv: "divided",
    ast.Mod: "modulo",
}


def _checked_c(node: ast.expr, before: str, text: str) -> str:
    def c(part: ast.expr) -> str:
        return _checked_c(part, before, text)

    match node:
        case ast.Constant(value=int(number)):
            return str(int(number))
        case ast.Name(id=name):
            return f"{before}{name}"
        case ast.BinOp(left=left, op=op, right=right):
            return f"{_CHECKED[type(op)]}({c(left)}, {c(right)}, &lost)"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"!{c(operand)}"
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"minus(0, {c(operand)}, &lost)"
        case ast.UnaryOp(operand=operand):
            return c(operand)
        case ast.BoolOp(op=ast.Or(), values=values):
            return f"({' ?: '.join(map(c, values))})"
        case ast.BoolOp(values=[*values, last]):
            return reduce(lambda rest, one: f"({c(one)} ? {rest} : 0)", reversed(values), c(last))
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = zip([left, *others], ops, others, strict=False)
            return f"({' && '.join(_compared_c(c(one), op, other, c) for one, op, other in sides)})"
        case ast.Call(func=ast.Name(id=name), args=[first, *rest]):
            function = "least" if name == "min" else "most"
            return reduce(lambda found, one: f"{function}({found}, {c(one)})", rest, c(first))
    raise SpecError(f"in '{text}': '{ast.unparse(node)}' cannot be translated to C")


def _compared_c(left: str, op: ast.cmpop, right: ast.expr, c: Callable[[ast.expr], str]) -> str:
    if isinstance(right, ast.Tuple | ast.List):  # after `in`; Python computes all of them
        among = " | ".join(f"({left} == {c(one)})" for one in right.elts) or "0"
        return f"({among})" if isinstance(op, ast.In) else f"!({among})"
    return f"{left} {_C_SIGNS[type(op)]} {c(right)}"


class _Reader:
    """Checks the tree against the language, and finds the type of each node."""

    def __init__(self, text: str, kinds: Mapping[str, type], reals: bool = False) -> None:
        self.text = text
        self.kinds = kinds
        self.reals = reals
        self.operators = (*_ARITHMETIC, ast.Div) if reals else _ARITHMETIC
        self.names: set[str] = set()

    def kind(self, node: ast.expr) -> type:
        match node:
            case ast.Constant(value=int(number)) if abs(number) < MAX_INTEGER:
                return int
            case ast.Constant(value=float()) if self.reals:
                return int
            case ast.Constant(value=str()):
                return str
            case ast.Name(id=name):
                if name not in self.kinds:
                    known = ", ".join(sorted(self.kinds)) or "none"
                    raise self._wrong(f"unknown name '{name}' (known: {known})")
                self.names.add(name)
                return int if self.kinds[name] is bool else self.kinds[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in self.operators:
                return self._numbers(left, right)
            case ast.Call(func=ast.Name(id="sqrt"), args=[of], keywords=[]) if self.reals:
                return self._numbers(of)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
                return self._numbers(operand)
            case ast.BoolOp(values=values):
                return self._numbers(*values)
            case ast.Compare(left=left, ops=ops, comparators=others) if all(isinstance(o, _COMPARISONS) for o in ops):
                self._comparison(left, ops, others)
                return int
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS and len(args) > 1:
                return self._numbers(*args)
        raise self._wrong(f"'{ast.unparse(node)}' is not allowed here")

    def _comparison(self, left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr]) -> None:
        kind = self.kind(left)
        for op, other in zip(ops, others, strict=True):
            if isinstance(op, ast.In | ast.NotIn):
                if len(ops) > 1 or not isinstance(other, ast.Tuple | ast.List):
                    raise self._wrong("`in` must be followed by a list of values, and cannot be chained")
                right = {self.kind(item) for item in other.elts} or {kind}
            else:
                right = {self.kind(other)}
            if right != {kind}:
                raise self._wrong("it compares a word with a number")

    def _numbers(self, *nodes: ast.expr) -> type:
        for node in nodes:
            if self.kind(node) is not int:
                raise self._wrong(f"'{ast.unparse(node)}' is a word; expected a number")
        return int

    def _wrong(self, what: str) -> SpecError:
        return SpecError(
            f"in '{self.text}': {what}",
            hint="allowed: names, integers, strings, + - * // %, comparisons, and or not, min max, in (...)",
        )
