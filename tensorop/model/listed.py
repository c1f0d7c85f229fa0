"""The shapes that a user asks for, and the calls in files of `--shapes @FILE`, which have weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tensorop.model.point import Point
from tensorop.model.shape import Shape

MOST = 64  # calls of each dtype that count, the heaviest ones


@dataclass(frozen=True)
class ListedCall:
    """A line of a file: a shape that a person wrote, or a kind of calls that was recorded."""

    shape: Shape
    weight: float  # part of the file's time
    dtype: str = ""  # empty: every element type
    options: Point | None = None  # how the operands lie; None: as in each layout of the operator


@dataclass(frozen=True)
class Listed:
    """What `--shapes` names."""

    calls: tuple[ListedCall, ...] = ()  # of all files, the heaviest first
    named: tuple[Shape, ...] = ()  # shapes outside files
    remarks: tuple[str, ...] = ()  # lines for the user, on what is skipped

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """All shapes that count, each once."""
        return tuple(dict.fromkeys((*self.named, *(one.shape for of in self._heaviest.values() for one in of))))

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Element types of the calls; with an empty one if some calls have none."""
        return tuple(self._heaviest)

    @cached_property
    def _heaviest(self) -> dict[str, list[ListedCall]]:
        """The calls that count, by element type."""
        found: dict[str, list[ListedCall]] = {}
        for one in self.calls:
            found.setdefault(one.dtype, []).append(one)
        return {dtype: of[:MOST] for dtype, of in found.items()}

    @cached_property
    def _in_files(self) -> frozenset[Shape]:
        return frozenset(one.shape for one in self.calls)

    def of(self, dtype: str) -> tuple[ListedCall, ...]:
        """The calls that count for an element type."""
        return (*self._heaviest.get(dtype, ()), *self._heaviest.get("", ()))

    def time(self, dtype: str) -> float:
        """The weight of all calls of an element type, also of those that do not count."""
        return sum(one.weight for one in self.calls if one.dtype in ("", dtype))

    def ways(self, shape: Shape, dtype: str) -> tuple[Point | None, ...]:
        """How operands lie in the calls of a shape; None: as in each layout. Empty: the dtype has no such call."""
        usual = [None] if shape in self.named or shape not in self._in_files else []
        return tuple(dict.fromkeys([*usual, *(one.options for one in self.of(dtype) if one.shape == shape)]))

    def weight(self, shape: Shape, dtype: str, options: Mapping[str, object]) -> float:
        """The part of the files' time that a problem has; 0 for one outside the files."""
        found = (one for one in self.of(dtype) if one.shape == shape and one.options in (None, options))
        return sum(one.weight for one in found)


NO_FILES = Listed()
