"""Which variant the library's dispatch takes over a plane of problems: two of the operator's dims, the others fixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorop.model.operator import Operator
from tensorop.report import choices
from tensorop.space import problems

_SIDES = tuple(dict.fromkeys(round(2 ** (i / 3)) for i in range(34)))  # 1 to 2048
_FIXED = (16, 256, 2048)


def maps(operator: Operator, held: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For each dtype, each VLEN with a choice of its own, and each size of the dims beyond the first two: the number of
    the variant for each pair of sides, in the operator's first layout.

    held: what the manifest says of the operator; axes: names of the two dims; sides: their values; chosen[j][i]: at
    sides[i] of the first, sides[j] of the second; vlen: None where there is one choice for all. A
    library of one variant has no map.
    """
    if len(operator.dims) < 2:
        return []
    across, up, *others = operator.dims
    drawn = operator.shapes.drawn
    out = []
    for dtype, winners in held["dtypes"].items():
        if len(winners["variants"]) < 2:
            continue
        for vlen, dispatch in choices.trees(winners):
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
                direct = winners.get("direct")
                out.append(
                    {
                        "operator": operator.name,
                        "dtype": dtype,
                        "vlen": vlen,
                        "axes": [across, up],
                        "fixed": dict(zip(others, rest, strict=True)),
                        "sides": list(_SIDES),
                        "chosen": [[choices.variant_of(operator, p, dispatch, direct) for p in line] for line in asked],
                        "templates": [variant["template"] for variant in winners["variants"]],
                    }
                )
    return out
