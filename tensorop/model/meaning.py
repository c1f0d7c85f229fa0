"""Meanings of primitives: expressions over arrays, parsed by a small grammar into functions that compute their value.

Names, integers, None, `np.inf`; `+ - * / // % >`, unary minus; `a[i]`, `a[i:j]`, `a[i:j, k:l]`, `a.T`; `np.` with one
of FUNCTIONS and positional arguments, which may be lists `[a, b]`. A meaning may come from an untrusted file:
everything else is refused, no Python code runs, and the sizes of arrays and integers are bounded.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tensorop.errors import SpecError

MAX_LENGTH = 300
MAX_ELEMENTS = 1 << 18  # (2 x lanes of the longest vectors here)^2
MAX_INTEGER = 1 << 40


def _nanmax(values: Any) -> Any:
    """The largest element that is not NaN; of equal ones the first. NumPy's own cannot compare objects with NaN."""
    found = -math.inf
    for value in np.asarray(values, dtype=object).flat:
        found = value if value > found else found
    return found


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs,
    "concatenate": np.concatenate,
    "exp": np.exp,
    "full": np.full,
    "ldexp": np.frompyfunc(lambda value, power: value.ldexp(power), 2, 1),  # NumPy's own takes no objects
    "maximum": np.maximum,
    "minimum": np.minimum,
    "nanmax": _nanmax,
    "ones": np.ones,
    "roll": np.roll,
    "sum": np.sum,
    "where": np.where,
    "zeros": np.zeros,
}
_SIZED = ("full", "ones", "zeros")  # their first argument is the number of elements
_OPERATIONS: Mapping[type[ast.operator | ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Gt: lambda a, b: a > b,
}


Names = Mapping[str, object]
_Value = Callable[[Names], Any]


@dataclass(frozen=True)
class Meaning:
    """A parsed meaning, and the names that it uses."""

    text: str
    names: frozenset[str]
    of: _Value  # computes its value; raises NumPy's exceptions

    def value(self, names: Names) -> Any:
        """Its value: an array, an element, an integer or None.

        Raises SpecError for shapes that do not match, an index out of range, a division by zero, and a result that is
        too large.

        names: arrays, elements (any type with + - *) and integers
        """
        try:
            return self.of(names)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, MemoryError) as error:
            raise SpecError(f"the meaning '{self.text}' cannot be evaluated: {error or type(error).__name__}") from None


@lru_cache(maxsize=1024)
def parse(text: str) -> Meaning:
    """Parses a meaning. Raises SpecError with its text and fault."""
    if len(text) > MAX_LENGTH:
        raise SpecError(f"the meaning '{text[:40]}...' has {len(text)} characters; at most {MAX_LENGTH} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        of = _read(tree)
    except _Unknown as error:
        raise SpecError(
            f"the meaning {text!r} uses '{error}', which is not supported",
            hint="supported: names, integers, None, np.inf, + - * / // % >, a[i:j], a.T, np. with "
            + ", ".join(FUNCTIONS),
        ) from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SpecError(f"the meaning {text!r} is not a valid expression: {error}") from None
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)) - {"np"}
    return Meaning(text, names, of)


class _Unknown(Exception):
    """A construct outside of the grammar."""


def _read(node: ast.expr) -> _Value:
    """A function that computes the node's value. Raises _Unknown."""
    match node:
        case ast.Constant(value=None):
            return lambda names: None
        case ast.Constant(value=int(number)) if not isinstance(number, bool) and abs(number) < MAX_INTEGER:
            return lambda names: number
        case ast.Name(id=name) if name != "np":
            return partial(_named, name)
        case ast.Attribute(value=ast.Name(id="np"), attr="inf"):
            return lambda names: math.inf
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            of = _read(operand)
            return lambda names: -of(names)
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]) if (
            type(op) in _OPERATIONS
        ):
            return partial(_both, _OPERATIONS[type(op)], _read(left), _read(right))
        case ast.Attribute(value=value, attr="T"):
            of = _read(value)
            return lambda names: np.asarray(of(names)).T
        case ast.Subscript(value=value, slice=index):
            of = _read(value)
            at = [_index(part) for part in (index.elts if isinstance(index, ast.Tuple) else [index])]
            alone = not isinstance(index, ast.Tuple)
            return lambda names: of(names)[at[0](names) if alone else tuple(one(names) for one in at)]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name), args=args, keywords=[]) if (
            name in FUNCTIONS and args
        ):
            return partial(_called, name, [_list(one) if isinstance(one, ast.List) else _read(one) for one in args])
    raise _Unknown(ast.unparse(node))


def _index(node: ast.expr) -> _Value:
    """The index of one axis, without None, which would add an axis."""
    ends = (node.lower, node.upper, node.step) if isinstance(node, ast.Slice) else (node,)
    if any(isinstance(end, ast.Constant) and end.value is None for end in ends):
        raise _Unknown("None")
    if not isinstance(node, ast.Slice):
        return _read(node)
    of = [None if end is None else _read(end) for end in ends]
    return lambda names: slice(*(None if end is None else end(names) for end in of))


def _list(node: ast.List) -> _Value:
    of = [_read(element) for element in node.elts]

    def together(names: Names) -> list[Any]:
        parts = [part(names) for part in of]
        _bounded((sum(int(np.size(part)) for part in parts),))
        return parts

    return together


def _named(name: str, names: Names) -> object:
    if name not in names:
        raise LookupError(f"'{name}' is not known; expected one of {', '.join(sorted(names))}")
    return names[name]


def _both(operation: Callable[[Any, Any], Any], left: _Value, right: _Value, names: Names) -> Any:
    one, other = left(names), right(names)
    _bounded(np.broadcast_shapes(np.shape(one), np.shape(other)))
    return _small(operation(one, other))


def _called(name: str, arguments: list[_Value], names: Names) -> Any:
    given = [argument(names) for argument in arguments]
    if name in _SIZED:
        _bounded((given[0],))
    return _small(FUNCTIONS[name](*given))


def _bounded(shape: tuple[Any, ...]) -> None:
    total = 1
    for extent in shape:
        if not isinstance(extent, int | np.integer):
            raise TypeError(f"expected an integer number of elements, got {type(extent).__name__}")
        total *= int(extent)
    if not 0 <= total <= MAX_ELEMENTS:
        raise ValueError(f"{total} elements; at most {MAX_ELEMENTS} are computed")


def _small(value: Any) -> Any:
    if isinstance(value, int) and abs(value) >= MAX_INTEGER:
        raise ValueError(f"an integer beyond {MAX_INTEGER}")
    return value
