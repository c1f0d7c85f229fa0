"""A micro-kernel whose tiles are called alone, and such a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorop.model.point import Value


@dataclass(frozen=True)
class KernelAlone:
    """A micro-kernel whose tiles are called alone."""

    dtype: str
    point: Mapping[str, Value]  # its tunables, and those of the blocking for which it is built
    lanes: int  # elements of a vector
    reads: Mapping[str, str]  # how its template reads each operand
    masked: bool  # whether parts of vectors can be loaded and stored
    group: int  # steps of the inner dimension in one packed element


@dataclass(frozen=True)
class TileCall:
    """A call of one tile."""

    function: str  # its name in the operator's templates around kernels
    arguments: Mapping[str, int]  # some of its parameters
    largest: bool = False  # only wanted of the kernel's largest tile
