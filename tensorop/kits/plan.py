"""Writes a kit's plan: steps, each with its cases and the limits of their outputs. native/kit/kit.h has the format.

The kit draws the operands of timed cases itself, with the generator of this module. The operands of grids are part of
the plan.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorop.errors import UsageError
from tensorop.model.call import Access, Buffer, Call
from tensorop.model.contract import Contract
from tensorop.model.number import Number
from tensorop.model.problem import Problem
from tensorop.model.signature import Array
from tensorop.runners import protocol
from tensorop.runners.protocol import Check, Time

VERSION = 2
CONTROL, VERIFY, TIME = range(3)
FIRST_CONTROL = 16  # the first control's number as a function
_FORMATS = ("f64", "f32", "f16", "bf16", "i8", "i16", "i32")
_OUTPUTS = ("f64", "f32", "i8", "i16", "i32")  # formats that the kit can judge
_HEAD = struct.Struct("<8sIIIIIIQ16s80s80s80s128s")
KIT_AT = struct.calcsize("<8sIIIIIIQ16s")  # the offset of a plan's id
_STEP = struct.Struct("<IIiIqQ64s680s")
_CASE = struct.Struct("<IIIIQQQ232s")
_BUFFER = struct.Struct("<IIQQ")
_EXPECTED = struct.Struct("<IIIIQQQQ")
_ACCESS = {Access.IN: 0, Access.OUT: 1, Access.INOUT: 2, Access.SCRATCH: 3}
_RAW, _DRAWN, _POISON = range(3)
_GOLDEN, _ONE, _TWO = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


@dataclass(frozen=True)
class Head:
    """The product and machine that a plan is for."""

    arch: str
    product: str  # its digest
    platform: str
    dtypes: Sequence[str]
    least_vlen: int = 0  # bits; 0: any
    seconds: int = 600  # limit of one call


@dataclass(frozen=True)
class Planned:
    """A case: a request, and its problem, from which the limits of its outputs follow."""

    problem: Problem
    request: Check | Time
    label: str
    drawn: int | None = None  # the seed from which the kit draws the operands; None: they are in the plan


@dataclass(frozen=True)
class Step:
    """A step of a plan. A timing has its functions in the request."""

    kind: int
    of: Mapping[str, object]  # the field `of` of its result row
    cases: Sequence[Planned]
    function: int = 0  # the called function
    slot: int = -1  # the flag that is set for the call
    value: int = 0  # the value of this flag
    expects: Sequence[str] = ()  # the outcomes that a control may have


def drawn(number: Number, seed: int, size: int) -> Array:
    """`size` elements: uniform in [-1, 1) with the format's precision, or integers with random bits."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, size + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(_ONE)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(_TWO)
        z = z ^ (z >> np.uint64(31))
    if number.whole:
        return z.astype(f"u{number.size}").view(number.storage)
    bits = number.precision
    whole = (z >> np.uint64(64 - bits)).astype(np.int64) - (1 << (bits - 1))
    return number.encoded(whole.astype(np.float64) * 2.0 ** -(bits - 1))


def filled(reference: Contract, dtype: str, call: Call, seed: int) -> Call:
    """The call with the operands that the kit draws; poisoned buffers have all bits set."""

    def of(place: int, buffer: Buffer) -> Buffer:
        number = reference.operands[buffer.name].number(dtype)
        if _poisoned(number, buffer):
            return dataclasses.replace(buffer, data=np.full(buffer.data.nbytes, 255, np.uint8).view(number.storage))
        return dataclasses.replace(buffer, data=drawn(number, seed + place, buffer.data.size))

    return dataclasses.replace(call, buffers=tuple(of(*one) for one in enumerate(call.buffers)))


def _poisoned(number: Number, buffer: Buffer) -> bool:
    if buffer.access is Access.OUT:
        return True
    return not number.whole and bool(np.isnan(number.decoded(buffer.data)).all())


class Writer:
    """Writes the parts of a plan one after the other. A case that several steps share is written once."""

    def __init__(self, reference: Contract, head: Head) -> None:
        self._reference, self._head = reference, head
        self._data = bytearray(_HEAD.size)
        self._cases: dict[int, int] = {}

    def write(self, steps: Sequence[Step], kit: str) -> bytes:
        """The whole plan. kit: its id."""
        made = [self._step(step) for step in steps]
        at = self._put(b"".join(made))
        head, dtypes = self._head, b"".join(dtype.encode().ljust(16, b"\0") for dtype in self._head.dtypes)
        words = [word.encode() for word in (head.arch, kit, head.product, head.platform)]
        self._data[: _HEAD.size] = _HEAD.pack(
            b"TOPSKIT", VERSION, len(steps), len(head.dtypes), head.seconds, head.least_vlen, 0, at, *words, dtypes
        )
        return bytes(self._data)

    def _put(self, data: bytes | memoryview) -> int:
        self._data += bytes(-len(self._data) % 8)
        at = len(self._data)
        self._data += data
        return at

    def _step(self, step: Step) -> bytes:
        places = [self._case(case) for case in step.cases]
        at = self._put(struct.pack(f"<{len(places)}Q", *places))
        of = json.dumps(step.of, separators=(",", ":")).encode()
        if len(of) >= 680:
            raise UsageError(f"a shape has too many options for a kit: {of[:100]!r}")
        expects = " ".join(step.expects).encode()
        return _STEP.pack(step.kind, step.function, step.slot, len(places), step.value, at, expects, of)

    def _case(self, case: Planned) -> int:
        if id(case) in self._cases:
            return self._cases[id(case)]
        call = case.request.call
        if case.drawn is not None:
            call = filled(self._reference, case.problem.dtype, call, case.drawn)
        request = dataclasses.replace(case.request, call=call)
        head = next(iter(protocol.pack(request, 0)))
        head_at = self._put(head)
        buffers = b"".join(self._buffer(case, place, buffer) for place, buffer in enumerate(call.buffers))
        buffers_at = self._put(buffers)
        expected = [part for second in _halves(request) for part in self._expected(case.problem, call, second)]
        expected_at = self._put(b"".join(expected))
        label = case.label.encode()[:231]
        packed = _CASE.pack(len(head), len(call.buffers), len(expected), 0, head_at, buffers_at, expected_at, label)
        self._cases[id(case)] = self._put(packed)
        return self._cases[id(case)]

    def _buffer(self, case: Planned, place: int, buffer: Buffer) -> bytes:
        number = self._reference.operands[buffer.name].number(case.problem.dtype)
        fill, seed, at = _RAW, 0, 0
        if case.drawn is None:
            at = self._put(
                np.ascontiguousarray(buffer.data).reshape(-1).view(np.uint8).data if buffer.data.size else b""
            )
        elif _poisoned(number, buffer):
            fill = _POISON
        else:
            fill, seed = _DRAWN, case.drawn + place
        return protocol.pack_buffer(buffer) + _BUFFER.pack(fill, _FORMATS.index(number.name), seed, at)

    def _expected(self, problem: Problem, call: Call, second: bool) -> Iterable[bytes]:
        given = call.operands(second)
        places = {buffer.name: place for place, buffer in enumerate(given.buffers)}
        for name, limits in self._reference.limits(problem, given).items():
            storage = given.buffers[places[name]].data
            number = self._reference.operands[name].number(problem.dtype)
            if number.name not in _OUTPUTS:
                raise UsageError(
                    f"a kit cannot verify outputs of type {number.name} ({problem.operator}, {problem.dtype})"
                )
            own = np.zeros(limits[0].shape, np.uint8)
            gaps: NDArray[np.uint8] = self._reference.stored(problem, name, own, np.ones(storage.size, np.uint8))
            edges = (self._reference.stored(problem, name, edge, storage) for edge in limits)
            low, high = (self._put(edge.astype(number.storage).view(np.uint8).data) for edge in edges)
            gaps_at = self._put(gaps.data) if gaps.any() else 0
            yield _EXPECTED.pack(
                places[name], second, _FORMATS.index(number.name), bool(gaps.any()), storage.size, low, high, gaps_at
            )


def _halves(request: Check | Time) -> tuple[bool, ...]:
    return (False, True) if any(buffer.shift for buffer in request.call.buffers) else (False,)
