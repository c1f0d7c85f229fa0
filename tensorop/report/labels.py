"""Places labels beside points so that they cover no point, no line and no other label."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tensorop.report.roofline import Reached, Roofline

_CHARACTER, _LINE, _DOT = 0.055, 0.11, 0.04  # inches: width and height of a character at 6.5 points; half a dot
_GAP = 0.07
_POINTS = 72

Box = tuple[float, float, float, float]  # left, bottom, right, top


def beside(
    roof: Roofline, xs: tuple[float, float], ys: tuple[float, float], inches: tuple[float, float]
) -> Iterator[tuple[Reached, tuple[float, float], str]]:
    """The labels that fit: (point, offset in points, alignment `left` or `right`).

    A label is right, left, above or below its point, and covers no roof line. The axes are logarithmic, with limits
    `xs` and `ys` and a size in inches.
    """

    def place(x: float, y: float) -> tuple[float, float]:
        across = math.log(x / xs[0]) / math.log(xs[1] / xs[0])
        return across * inches[0], math.log(y / ys[0]) / math.log(ys[1] / ys[0]) * inches[1]

    dots = [place(p.intensity, p.ours) for p in roof.points]
    taken: list[Box] = [(x - _DOT, y - _DOT, x + _DOT, y + _DOT) for x, y in dots]
    for i in range(101):
        x = xs[0] * (xs[1] / xs[0]) ** (i / 100)
        y = min(roof.peak, x * roof.bandwidth) if roof.bandwidth else roof.peak
        at = place(x, y)
        taken.append((at[0] - 0.02, at[1] - 0.02, at[0] + 0.02, at[1] + 0.02))
    for p, (x, y) in zip(roof.points, dots, strict=True):
        width = _CHARACTER * len(p.shape)
        for side, left, dy in (("left", x + _GAP, 0.0), ("right", x - _GAP - width, 0.0), *_rows(x, width)):
            box = (left, y + dy - _LINE / 2, left + width, y + dy + _LINE / 2)
            inside = box[0] >= 0 and box[2] <= inches[0] and box[1] >= 0 and box[3] <= inches[1]
            if inside and not any(_meet(box, other) for other in taken):
                taken.append(box)
                start = left if side == "left" else left + width
                yield p, (_POINTS * (start - x), _POINTS * dy), side
                break


def _rows(x: float, width: float) -> list[tuple[str, float, float]]:
    """The places above and below a point, centred."""
    return [("left", x - width / 2, dy) for dy in (0.13, -0.13)]


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
