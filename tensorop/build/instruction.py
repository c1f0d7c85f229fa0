"""One decoded instruction, as far as the look at a loop needs it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Role(StrEnum):
    LOAD = "load"  # a vector, or a scalar that is broadcast into a multiply-add
    FMA = "fma"  # vector multiply-add
    OTHER = "other"


@dataclass(frozen=True)
class Instruction:
    """at, target: byte offsets in its section, target of a jump within it; writes, reads: register names.

    spill: moves a vector between a register and the stack.
    """

    at: int
    role: Role = Role.OTHER
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    target: int | None = None
    spill: bool = False

    def moved(self, base: int) -> Instruction:
        """The same in a section that is loaded at `base`."""
        if base == 0:
            return self
        return replace(self, at=self.at + base, target=None if self.target is None else self.target + base)
