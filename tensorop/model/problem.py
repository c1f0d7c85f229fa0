"""One problem of an operator: its dimensions, its attributes, and the layout of its operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tensorop.model.point import Point, Value


@dataclass(frozen=True)
class Problem:
    """One problem. Dimensions and attributes are integers in the operator's order."""

    operator: str
    dtype: str
    dims: Point  # sizes
    options: Point = Point(())  # layout, transposes, run-time parameters, a forced variant
    attributes: Point = Point(())  # e.g. stride and padding; 0 is a legal value
    written: str = field(default="", compare=False)  # the shape in the operator's notation

    @property
    def pairs(self) -> tuple[tuple[str, Value], ...]:
        """Dimensions, then attributes."""
        return (*self.dims.pairs, *self.attributes.pairs)

    @property
    def sizes(self) -> dict[str, int]:
        return {name: int(value) for name, value in self.pairs}

    def with_options(self, **more: Value) -> Problem:
        return replace(self, options=Point.of({**self.options, **more}))

    @property
    def shape(self) -> str:
        usual = "x".join(str(v) for v in self.dims.values())
        return self.written or f"{usual} {self.attributes}".strip()

    @property
    def label(self) -> str:
        return f"{self.shape} {self.dtype}" + (f" {self.options}" if len(self.options) else "")

    @staticmethod
    def of(
        operator: str,
        dtype: str,
        dims: Mapping[str, Value],
        options: Mapping[str, Value] | None = None,
        attributes: Mapping[str, Value] | None = None,
        written: str = "",
    ) -> Problem:
        # not sorted: dimensions and attributes keep the operator's order
        own = Point(tuple(dims.items())), Point.of(options or {}), Point(tuple((attributes or {}).items()))
        return Problem(operator, dtype, *own, written)
