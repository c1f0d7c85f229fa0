"""Integer expressions of YAML files: arithmetic, comparisons, and/or/not, min, max, `in`; nothing else.

Parsed with `ast` and walked by hand, since the files may be a stranger's.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tensorop.errors import SpecError

_BINARY: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Any] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_FUNCTIONS = {"min": min, "max": max, "abs": abs}


@lru_cache(maxsize=4096)
def parse(text: str) -> ast.expr:
    """The expression's tree; raises SpecError where it is none."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        raise SpecError(f"'{text}' is not an expression") from None


@lru_cache(maxsize=4096)
def names(text: str) -> frozenset[str]:
    """The variables an expression uses."""
    return frozenset(
        node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name) and node.id not in _FUNCTIONS
    )


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """The value of an expression; raises SpecError for an unknown name or anything beyond plain arithmetic."""
    try:
        return _walk(parse(text), values)
    except (ZeroDivisionError, TypeError) as error:
        raise SpecError(f"'{text}': {error}") from None


def _walk(node: ast.expr, values: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | str):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in values:
            raise SpecError(f"unknown name '{node.id}'; known: {', '.join(sorted(values)) or 'none'}")
        return values[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_walk(node.left, values), _walk(node.right, values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_walk(node.operand, values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _walk(node.operand, values)
    if isinstance(node, ast.BoolOp):
        results = (_walk(part, values) for part in node.values)
        return all(results) if isinstance(node.op, ast.And) else any(results)
    if isinstance(node, ast.Compare):
        left = _walk(node.left, values)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = _walk(right_node, values)
            if type(op) not in _COMPARE or not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return _FUNCTIONS[node.func.id](*(_walk(arg, values) for arg in node.args))
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_walk(part, values) for part in node.elts)
    raise SpecError(f"'{ast.unparse(node)}' is not allowed in an expression")
