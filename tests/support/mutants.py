"""Meanings broken on purpose: each must be told from what a primitive really does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensorop.model.primitive import ARGUMENTS, Primitive

_SWAPS = {ast.Add: ast.Sub(), ast.Sub: ast.Add(), ast.Mult: ast.Add(), ast.FloorDiv: ast.Mult(), ast.Div: ast.Mult()}


def mutants(primitive: Primitive, lanes: int) -> Iterator[str]:
    """Other meanings that no correct primitive can have, when a vector has this many elements."""
    said = primitive.meaning
    found: set[str] = set()
    match primitive.returns:
        case "none":
            found |= {"0", "vl"}
        case "pred":
            found |= {
                f"({said}) + 1",
                f"({said}) - 1",
                f"np.maximum({said}, 1)" if primitive.args else f"({said}) // 2",
            }
        case "elem":
            found |= {f"-({said})", f"({said}) + v[0]"} | (
                {re.sub(r"\bv\b", "v[1:]", said), "v[0]"} if lanes > 1 else set()
            )
        case "memory":
            found |= {f"-({said})", f"({said})[1:]", f"({said})[:-1]"}
            found |= {f"({said})[::-1]", f"np.roll({said}, 1)"} if lanes > 1 else set()
            found |= {said.removesuffix(".T")} if said.endswith(".T") and lanes > 1 else set()
        case _:
            found |= {f"-({said})"}
            meant = lanes // 2 if "2 * vl == lanes" in primitive.preconditions else lanes
            if meant > 1 and primitive.name not in ("zero", "splat"):  # all their lanes are alike
                found |= {f"({said})[::-1]", f"np.roll({said}, 1)", f"np.roll({said}, -1)"}
    if primitive.name == "zero":
        found |= {"np.ones(vl)"}
    else:
        found |= set(_edited(primitive))
    found.discard(said)
    yield from sorted(found)


def _edited(primitive: Primitive) -> Iterator[str]:
    """The meaning with one operator exchanged, or one vector for another, or the constant lane for its neighbour."""
    tree = ast.parse(primitive.meaning, mode="eval")
    vectors = [a for a in primitive.args if ARGUMENTS[a] == "vector"]
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            kept, node.op = node.op, _SWAPS[type(node.op)]
            yield ast.unparse(tree)
            node.op = kept
        elif isinstance(node, ast.Name) and node.id in vectors:
            name = node.id
            for other in vectors:
                if other != name:
                    node.id = other
                    yield ast.unparse(tree)
            node.id = name
        elif isinstance(node, ast.Name) and node.id == "lane":
            node.id = "((lane + 1) % lanes)"
            yield ast.unparse(tree)
            node.id = "lane"
