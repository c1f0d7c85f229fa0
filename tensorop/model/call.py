"""One call of an operator's entry in the harness, and its reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tensorop.model.trial import Outcome


class Access(StrEnum):
    """A kernel's access to a buffer."""

    IN = "in"  # mapped read-only during the call
    OUT = "out"  # poisoned before the call, returned after
    INOUT = "inout"  # filled before the call, returned after
    SCRATCH = "scratch"  # a workspace: overwritten between timed batches, not returned


class Placement(StrEnum):
    """Which side of the buffer touches a PROT_NONE page."""

    END = "end"  # the buffer ends at the guard page: detects accesses past the end
    START = "start"  # the buffer starts after the guard page: detects accesses before the start


@dataclass(frozen=True)
class Buffer:
    """An operand's storage: flat, in C order, with leading-dimension gaps."""

    name: str
    access: Access
    data: NDArray[np.generic]
    # Offset in `data`, in elements, of a second operand of the same form; 0: there is none. Timed calls alternate
    # between both operands, so that the result of an earlier call in the output is never correct. If an output that is
    # read has a second operand, outputs are restored before a batch's last call, so that its result is its own.
    # (Operators' own code uses the name `shift`; journals depend on the bytes of that code.)
    shift: int = 0
    # (elements of a line in `data`, distance of lines in the call's memory, in elements) if that distance is larger; an
    # access to the gap faults. For single calls.
    apart: tuple[int, int] = (0, 0)

    def operands(self, second: bool) -> Buffer:
        """The buffer with the first or the second operand alone."""
        if not self.shift:
            return self
        size = self.data.size - self.shift
        return replace(self, data=self.data[self.shift :] if second else self.data[:size], shift=0)


@dataclass(frozen=True)
class Call:
    """The harness's call record. The operator defines each slot (see its adapter.c and reference.py)."""

    dims: tuple[int, ...]
    lds: tuple[int, ...] = ()
    scalars: tuple[float, ...] = ()
    flags: tuple[int, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    placement: Placement = Placement.END

    def operands(self, second: bool) -> Call:
        """The call on the first or the second operands alone."""
        return replace(self, buffers=tuple(buffer.operands(second) for buffer in self.buffers))


Outputs = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class CallOutput:
    """Outputs of one entry after batches of calls."""

    outputs: Outputs
    second: bool = False  # whether the last call had the second operands


@dataclass(frozen=True)
class Reply:
    """The harness's reply to one call."""

    outcome: Outcome
    outputs: dict[str, NDArray[np.generic]] = field(default_factory=dict)  # OUT and INOUT buffer -> storage after it
    samples: tuple[tuple[float, ...], ...] = ()  # for each entry: ns a call in each round; empty for a check
    left: tuple[tuple[CallOutput, ...], ...] = ()  # for each entry of a timing that keeps outputs: the distinct ones
    path: int = 0  # of a count on x86: instructions before the first access to an operand and after the last one
    made: bool = True  # no: the call was given up after others; the outcome is theirs
