"""What a primitive means: an expression over arrays, read by a small grammar and evaluated by walking it.

Names, integers, None; `+ - * // % >`, a minus before; `a[i]`, `a[i:j]`, `a[i:j, k:l]`, `a.T`; `np.` with one of
FUNCTIONS, called with positions alone; `[a, b]` as such an argument. A meaning may come with a stranger's file: nothing
else is read, no Python is run, and no array or integer grows beyond a bound.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tensorop.errors import SpecError

MAX_LENGTH = 300
MAX_ELEMENTS = 1 << 18  # a square of twice as many lanes as the longest vectors here have
MAX_INTEGER = 1 << 40
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs,
    "concatenate": np.concatenate,
    "full": np.full,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "ones": np.ones,
    "roll": np.roll,
    "sum": np.sum,
    "where": np.where,
    "zeros": np.zeros,
}
_SIZED = ("full", "ones", "zeros")  # their first argument is how many elements there are
_OPERATIONS: Mapping[type[ast.operator | ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Gt: lambda a, b: a > b,
}


@dataclass(frozen=True)
class Meaning:
    """A meaning that has been read, and the names it uses."""

    text: str
    names: frozenset[str]
    tree: ast.expr

    def value(self, names: Mapping[str, object]) -> Any:
        """Its value, an array, element, integer or None.

        names: arrays, elements (anything with + - *) and integers. Raises SpecError where arrays do not fit, an index
        does not exist, a divisor is zero, or a result is too large.
        """
        try:
            return _value(self.tree, names)
        except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError) as error:
            raise SpecError(f"the meaning '{self.text}' cannot be evaluated: {error or type(error).__name__}") from None


@lru_cache(maxsize=1024)
def parse(text: str) -> Meaning:
    """Reads a meaning. Raises SpecError naming it and what is wrong."""
    if len(text) > MAX_LENGTH:
        raise SpecError(f"the meaning '{text[:40]}...' has {len(text)} characters; at most {MAX_LENGTH} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        unknown = next(_strange(tree), None)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SpecError(f"the meaning {text!r} is no expression: {error}") from None
    if unknown is not None:
        raise SpecError(
            f"the meaning {text!r} has '{unknown}', which is not known there",
            hint=f"known: names, integers, None, + - * // % >, a[i:j], a.T, np. with {', '.join(FUNCTIONS)}",
        )
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)) - {"np"}
    return Meaning(text, names, tree)


def _strange(node: ast.expr, inside: bool = False) -> Iterator[str]:
    """What is outside of the grammar. inside: an argument of a function, where a list may stand."""
    match node:
        case ast.Constant(value=None):
            return
        case ast.Constant(value=int(number)) if not isinstance(number, bool) and abs(number) < MAX_INTEGER:
            return
        case ast.Name(id=name) if name != "np":
            return
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield from _strange(operand)
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]) if (
            type(op) in _OPERATIONS
        ):
            yield from _strange(left)
            yield from _strange(right)
        case ast.Attribute(value=value, attr="T"):
            yield from _strange(value)
        case ast.Subscript(value=value, slice=index):
            yield from _strange(value)
            for part in index.elts if isinstance(index, ast.Tuple) else [index]:
                ends = (part.lower, part.upper, part.step) if isinstance(part, ast.Slice) else (part,)
                for end in ends:
                    if isinstance(end, ast.Constant) and end.value is None:
                        yield "None"  # another axis
                    elif end is not None:
                        yield from _strange(end)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name), args=args, keywords=[]) if (
            name in FUNCTIONS and args
        ):
            for argument in args:
                yield from _strange(argument, inside=True)
        case ast.List(elts=elements) if inside:
            for element in elements:
                yield from _strange(element)
        case _:
            yield ast.unparse(node)


def _value(node: ast.expr, names: Mapping[str, object]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            if name not in names:
                raise LookupError(f"'{name}' is not known; expected one of {', '.join(sorted(names))}")
            return names[name]
        case ast.UnaryOp(operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
            one, other = _value(left, names), _value(right, names)
            _bounded(np.broadcast_shapes(np.shape(one), np.shape(other)))
            return _small(_OPERATIONS[type(op)](one, other))
        case ast.Attribute(value=value):
            return np.asarray(_value(value, names)).T
        case ast.Subscript(value=value, slice=index):
            return _value(value, names)[_index(index, names)]
        case ast.Call(func=ast.Attribute(attr=name), args=args):
            given = [_value(argument, names) for argument in args]
            if name in _SIZED:
                _bounded((given[0],))
            return _small(FUNCTIONS[name](*given))
        case ast.List(elts=elements):
            together = [_value(element, names) for element in elements]
            _bounded((sum(int(np.size(part)) for part in together),))
            return together
    raise TypeError(f"'{ast.unparse(node)}' has no value")


def _index(node: ast.expr, names: Mapping[str, object]) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(_index(part, names) for part in node.elts)
    if isinstance(node, ast.Slice):
        return slice(*(None if end is None else _value(end, names) for end in (node.lower, node.upper, node.step)))
    return _value(node, names)


def _bounded(shape: tuple[Any, ...]) -> None:
    total = 1
    for extent in shape:
        if not isinstance(extent, int | np.integer):
            raise TypeError(f"{type(extent).__name__} is no number of elements")
        total *= int(extent)
    if not 0 <= total <= MAX_ELEMENTS:
        raise ValueError(f"{total} elements; at most {MAX_ELEMENTS} are computed")


def _small(value: Any) -> Any:
    if isinstance(value, int) and abs(value) >= MAX_INTEGER:
        raise ValueError(f"an integer beyond {MAX_INTEGER}")
    return value
