"""One problem of an operator: its dimensions and how its operands lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorop.model.point import Point, Value


@dataclass(frozen=True)
class Problem:
    """Dimensions (e.g. m, n, k), dtype, and options (layout, transposes, extra leading dimension, alpha, beta).

    `dims` and `options` are ordered mappings kept as `Point` so that a problem is hashable and prints well.
    """

    operator: str
    dtype: str
    dims: Point
    options: Point = Point(())

    def with_options(self, **more: Value) -> Problem:
        return Problem(self.operator, self.dtype, self.dims, Point.of({**self.options, **more}))

    @property
    def label(self) -> str:
        shape = "x".join(str(v) for v in self.dims.values())
        return f"{shape} {self.dtype}" + (f" {self.options}" if len(self.options) else "")

    @staticmethod
    def of(operator: str, dtype: str, dims: Mapping[str, Value], options: Mapping[str, Value] | None = None) -> Problem:
        # dimensions keep the operator's own order (m, n, k), so no sorting here
        return Problem(operator, dtype, Point(tuple(dims.items())), Point.of(options or {}))
