"""One call of an operator's entry in the harness, and what came back."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tensorop.model.trial import Outcome


class Access(StrEnum):
    """What a kernel may do with a buffer."""

    IN = "in"  # mapped read-only during the call
    OUT = "out"  # poisoned before the call, returned after
    INOUT = "inout"  # given, returned after


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


@dataclass(frozen=True)
class Call:
    """The harness's call record; the meaning of each slot is the operator's (see its adapter.c and reference.py).

    dims, lds, flags: up to 8 integers; scalars: up to 4 doubles; buffers: up to 8.
    """

    dims: tuple[int, ...]
    lds: tuple[int, ...] = ()
    scalars: tuple[float, ...] = ()
    flags: tuple[int, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    placement: Placement = Placement.END


@dataclass(frozen=True)
class Reply:
    """The end of one call. outputs: name -> storage after the call, for OUT and INOUT buffers.

    samples: per entry asked for, nanoseconds a call, one figure a round (empty for a plain check call).
    """

    outcome: Outcome
    outputs: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    samples: tuple[tuple[float, ...], ...] = ()
