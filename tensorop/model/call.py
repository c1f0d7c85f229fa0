"""One call of an operator's entry in the harness, and what came back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tensorop.model.trial import Outcome


class Access(StrEnum):
    """What a kernel may do with a buffer."""

    IN = "in"  # mapped read-only during the call
    OUT = "out"  # poisoned before the call, returned after
    INOUT = "inout"  # given, returned after
    SCRATCH = "scratch"  # a workspace: written freely, spoiled between timed batches, not returned


class Placement(StrEnum):
    """Which side of the buffer touches a PROT_NONE page."""

    END = "end"  # the last byte is the page's last: catches reads and writes past the end
    START = "start"  # the first byte is the page's first: catches those before the start


@dataclass(frozen=True)
class Buffer:
    """An operand: its whole storage (leading-dimension gaps included), flat, C order."""

    name: str
    access: Access
    data: NDArray[np.generic]
    # Offset of the second operands (operators' own code has this name, and journals depend on that code to the byte):
    # 0, or where in a longer storage a second operand of the same form begins, in elements. In timing every other call
    # takes that one, so that what a call finds of its own in the output is never right. Where an output that is read
    # has one, what the last call of a batch leaves is its own alone: before it the outputs become what they were.
    shift: int = 0
    # Of a storage whose lines lie further apart in the memory of the call: elements of a line in `data`, and from one
    # line to the next in memory. Nothing between them can be touched. For single calls.
    apart: tuple[int, int] = (0, 0)

    def operands(self, second: bool) -> Buffer:
        """The first or the second operand alone."""
        if not self.shift:
            return self
        size = self.data.size - self.shift
        return replace(self, data=self.data[self.shift :] if second else self.data[:size], shift=0)


@dataclass(frozen=True)
class Call:
    """The harness's call record; the meaning of each slot is the operator's (see its adapter.c and reference.py).

    dims, lds, flags: integers; scalars: doubles; any number of each.
    """

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
    """What batches of one entry left."""

    outputs: Outputs
    second: bool = False  # their last call was on the second operands


@dataclass(frozen=True)
class Reply:
    """The end of one call. outputs: name -> storage after the call, for OUT and INOUT buffers.

    samples: per entry asked for, nanoseconds a call, one figure a round (empty for a plain check call).
    left: per entry of a timing that keeps them, each different result of its batches.
    """

    outcome: Outcome
    outputs: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    samples: tuple[tuple[float, ...], ...] = ()
    left: tuple[tuple[CallOutput, ...], ...] = ()
