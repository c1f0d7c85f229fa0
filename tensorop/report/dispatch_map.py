"""Maps of the dispatch's choice over a plane of problems: two of the operator's dims vary, the others are fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorop.model.operator import Operator
from tensorop.model.winner import DtypeRecord, trees_of
from tensorop.report import choices
from tensorop.space import problems

_SIDES = tuple(dict.fromkeys(round(2 ** (i / 3)) for i in range(34)))  # 1 to 2048
_FIXED = (16, 256, 2048)


@dataclass(frozen=True)
class DispatchMap:
    """A map of one dtype and tree, in the operator's first layout."""

    operator: str
    dtype: str
    vlen: int | None  # None if the library has one tree
    axes: tuple[str, str]  # names of the two dims
    layout: str  # of all its problems
    fixed: Mapping[str, int]  # the other dims
    sides: Sequence[int]  # values of the two dims
    chosen: Sequence[Sequence[int]]  # [j][i]: the variant at sides[i] of the first dim, sides[j] of the second
    templates: Sequence[str]  # of each variant


def maps(operator: Operator, dtypes: Mapping[str, DtypeRecord]) -> list[DispatchMap]:
    """A map for each dtype, tree and size of the other dims. A dtype with one variant has no map.

    dtypes: the operator's part of the manifest
    """
    if len(operator.dims) < 2:
        return []
    across, up, *others = operator.dims
    drawn = operator.shapes.drawn
    out = []
    for dtype, winners in dtypes.items():
        if len(winners["variants"]) < 2:
            continue
        templates = [variant["template"] for variant in winners["variants"]]
        for tree in trees_of(winners):
            for size in _FIXED if others else (0,):
                rest = tuple(drawn.get(name, (size,))[0] for name in others)
                lines = [
                    [operator.shapes.filled(dict(zip(operator.dims, (x, y, *rest), strict=True))) for x in _SIDES]
                    for y in _SIDES
                ]
                shapes = [[tuple(shape.values()) for shape in line] for line in lines]
                if any(operator.shapes.wrong(shape) for line in shapes for shape in line):
                    continue
                asked = [[problems.of(operator, dtype, shape, 0) for shape in line] for line in shapes]
                chosen = [[choices.variant_of(operator, p, tree, winners) for p in line] for line in asked]
                fixed = dict(zip(others, rest, strict=True))
                layout = problems.written(operator.layouts[0])
                plane = operator.name, dtype, tree.vlen or None, (across, up), layout, fixed, _SIDES, chosen, templates
                out.append(DispatchMap(*plane))
    return out
