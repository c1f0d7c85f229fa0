"""The harness's wire format (tensorop/native/harness.h): packs requests, unpacks replies."""

from __future__ import annotations

import math
import secrets
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tensorop.model.call import Access, Buffer, Call, Placement
from tensorop.runners.base import Need
from tensorop.runners.counts import BadReport, Clocks, Counts, clocks

VERSION = 10
_START = struct.Struct("<IIQiIII")
_HELLO = struct.Struct("<IIQII256s")
_REQUEST = struct.Struct("<15I4x4Q")
_LEAST = 8  # minimum number of values of each kind; missing values are 0
_ENTRY = struct.Struct("<IiqI4x")
_BUFFER = struct.Struct("<IIQQQ")
_REPLY = struct.Struct("<IIQIiiiqIIIIQQQ")
_REPORT = struct.Struct("<IIQIIQQ")
_ANSWER = struct.Struct("<IIQ")
_OUTPUT = struct.Struct("<IIQ")
_MAGIC = {name: int.from_bytes(word, "little") for name, word in (
    ("start", b"TOPS"), ("hello", b"TOPH"), ("request", b"TOPR"), ("reply", b"TOPA"),
    ("report", b"TOPC"), ("count", b"TOPN"),
)}  # fmt: skip
_ACCESS = {Access.IN: 0, Access.OUT: 1, Access.INOUT: 2, Access.SCRATCH: 3}
_LEFT = 128  # most results of an entry besides one per round: from warm-up
_PLACEMENT = {Placement.END: 0, Placement.START: 1}
_MIDDLE, _FIXED = 2, 3
_SAMPLE = 16  # bytes: calls, ns
_CHECK, _TIME, _COUNT = range(3)


@dataclass(frozen=True)
class TargetLibrary:
    """A shared library on the target and how the operator's adapter binds it (see tensorop_bind in call.h)."""

    path: str
    api: str
    dtype: str
    prefix: str = ""
    suffix: str = ""


@dataclass(frozen=True)
class Entry:
    """A function to call."""

    function: int = 0  # number of the candidate or library
    flag: tuple[int, int] | None = None  # (slot, value) that replaces a flag of the call
    empty: bool = False  # calls a function that returns at once instead


@dataclass(frozen=True)
class Check:
    """One call that returns its outputs."""

    where: ClassVar[str] = "verify"  # stage in outcomes

    call: Call
    entry: Entry = Entry()


@dataclass(frozen=True)
class Time:
    """Interleaved batches of each entry, timed by the target's clock.

    Each entry's first call is not timed.
    """

    where: ClassVar[str] = "measure"

    call: Call
    entries: tuple[Entry, ...]
    rounds: int = 15  # maximum number of batches of each entry
    warm_ns: int = 5_000_000  # minimum warm-up
    min_ns: int = 2_000_000  # minimum duration of a batch
    max_ns: int = 2_000_000_000  # no round starts later than this, after the first three
    flush_bytes: int = 0  # > 0: single calls, each after a walk over so many bytes
    keep: bool = False  # restores outputs before batches, and returns each different result once
    alone: bool = False  # operands have addresses that do not depend on earlier requests
    # random: the set of operands on which a batch ends, and the number of calls that it omits
    draw: int = field(default_factory=lambda: secrets.randbits(32))


@dataclass(frozen=True)
class Count:
    """Calls under an instrumented emulator: for each entry `warm` calls and one counted call, each in a marked region.

    INOUT buffers are restored before each call. Warm-up calls find other numbers in the inputs, so a kernel cannot
    reuse their results in the counted call.
    """

    where: ClassVar[str] = "measure"

    call: Call
    entries: tuple[Entry, ...] = (Entry(),)
    warm: int = 1
    keep: bool = False  # restores OUT buffers before each call too
    alone: bool = False  # each entry finds caches and predictors as at the start, whatever ran before
    draw: int = field(default_factory=lambda: secrets.randbits(32))  # random: the inputs of warm-up calls


Request = Check | Time | Count


class Status(IntEnum):
    DONE = 0
    SLACK_WRITTEN = 1
    SIGNALLED = 2
    NO_ENTRY = 3
    NO_MEMORY = 4
    TAMPERED = 5


class Fault(IntEnum):
    ELSEWHERE = 0
    BEFORE = 1
    AFTER = 2
    READ_ONLY = 3
    HARNESS = 4


@dataclass(frozen=True)
class Hello:
    """The harness's first message."""

    page: int  # bytes
    jailed: bool  # the process has closed its jail
    pinned: bool  # the process stays on its processor
    error: str  # why a library could not be bound


@dataclass(frozen=True)
class Raw:
    """A reply as received."""

    status: Status
    signal: int
    fault: Fault
    buffer: int
    offset: int  # bytes from the buffer's first byte, or the number of a forbidden system call
    # (buffer, 2 * entry + 1 after the shifted operands, bytes), in the buffers' order, result by result
    outputs: tuple[tuple[int, int, bytes], ...] = ()
    samples: tuple[tuple[float, ...], ...] = ()  # ns per call, by entry and round
    calls: tuple[tuple[float, ...], ...] = ()  # number of calls, by entry and round
    span: int = 0  # ns from the first batch to the end of the last one
    spent: int = 0  # ns of all batches
    apart: int = 0  # ns of the calls among them that are not reported
    rested: float = 0.0  # ns of waiting, before batches, until threads of earlier calls rested
    reported_ns: int = 0  # ns of all reports
    window: float = math.inf  # seconds from the first answer to the last report, by this process's clock
    busy: float | None = None  # seconds that the harness ran in the window, by this system's kernel; None: unknown
    words: int = 0  # number of reports

    @property
    def timed(self) -> float:
        """ns of all timed batches together."""
        rows = zip(self.calls, self.samples, strict=True)
        return sum(calls * each for made, took in rows for calls, each in zip(made, took, strict=True))


class ProtocolError(Exception):
    """The bytes are no reply to the request: something else wrote into the pipe."""


def pack_start(
    nonce: int, *, cpu: int = -1, needs: Need = Need.NOTHING, libraries: Sequence[TargetLibrary] = (), threads: int = 1
) -> bytes:
    """The head of the stream.

    cpu: the processor to stay on, -1 for any; needs: permissions in the jail; threads: maximum number of threads of a
    call.
    """
    out = [_START.pack(_MAGIC["start"], VERSION, nonce, cpu, needs, len(libraries), threads)]
    for library in libraries:
        for text in (library.path, library.api, library.dtype, library.prefix, library.suffix):
            word = text.encode()
            out += [len(word).to_bytes(4, "little"), word]
    return b"".join(out)


def entries_of(request: Request) -> tuple[Entry, ...]:
    return (request.entry,) if isinstance(request, Check) else request.entries


def pack(request: Request, index: int) -> Iterator[bytes | memoryview]:
    """The request in pieces; contiguous operands are not copied."""
    call, entries = request.call, entries_of(request)
    kind, rounds, warm, keep, alone, draw, times = _CHECK, 0, 0, 0, 0, 0, (0, 0, 0, 0)
    placement = _PLACEMENT[call.placement]
    if isinstance(request, Time):
        kind, rounds, keep, draw = _TIME, request.rounds, int(request.keep), request.draw
        times = (request.warm_ns, request.min_ns, request.max_ns, request.flush_bytes)
    elif isinstance(request, Count):
        kind, warm, keep, draw, alone = _COUNT, request.warm, int(request.keep), request.draw, int(request.alone)
    if not isinstance(request, Check):
        placement = _FIXED if request.alone else _MIDDLE
    values = [_padded(each) for each in (call.dims, call.lds, call.scalars, call.flags)]
    yield _REQUEST.pack(
        _MAGIC["request"], kind, index, placement, len(call.buffers), len(entries), rounds, warm, keep,
        alone, draw, *map(len, values), *times,
    ) + b"".join(_pack_entry(e) for e in entries) + b"".join(
        struct.pack(f"<{len(each)}{'d' if each is values[2] else 'q'}", *each) for each in values
    )  # fmt: skip
    for buffer in call.buffers:
        yield pack_buffer(buffer)
        if buffer.data.nbytes:
            yield np.ascontiguousarray(buffer.data).reshape(-1).view(np.uint8).data


def pack_buffer(buffer: Buffer) -> bytes:
    """The header that precedes a buffer's contents."""
    size = buffer.data.itemsize
    line, step = (size * count for count in buffer.apart)
    return _BUFFER.pack(_ACCESS[buffer.access], size * buffer.shift, buffer.data.nbytes, line, step)


def _pack_entry(entry: Entry) -> bytes:
    slot, value = entry.flag if entry.flag is not None else (-1, 0)
    return _ENTRY.pack(entry.function, slot, value, entry.empty)


def _padded(values: Sequence[float]) -> tuple[float, ...]:
    return (*values, *(0,) * (_LEAST - len(values)))


class Parser:
    """Parses stdout in pieces: sets `hello`, appends complete replies to `replies`, and queues `answers` to send."""

    def __init__(self, nonce: int, requests: Sequence[Request], clocks: Clocks = clocks) -> None:
        self._nonce = nonce
        self._requests = requests
        self._clocks = clocks
        self._data = bytearray()
        self.hello: Hello | None = None
        self.replies: list[Raw] = []
        self.refused = ""  # why the bytes are no reply
        self._counts: Counts | None = None
        self._answers = bytearray()

    def feed(self, data: bytes) -> bool:
        """Returns whether a hello, a report or a reply is complete. Raises ProtocolError."""
        self._data += data
        progress = False
        try:
            while self._step():
                progress = True
        except BadReport as e:
            raise ProtocolError(str(e)) from None
        return progress

    def answers(self) -> bytes:
        """Removes and returns the bytes that the harness waits for; empty if it waits for none."""
        data = bytes(self._answers)
        self._answers.clear()
        return data

    def _step(self) -> bool:
        if self.hello is None:
            return self._take_hello()
        if int.from_bytes(self._data[:4], "little") == _MAGIC["report"]:
            return self._take_report()
        if len(self._data) < _REPLY.size:
            return False
        found = _REPLY.unpack_from(self._data)
        magic, index, nonce, status, signal, fault, buffer, offset, outputs, entries, rounds, rested, *ns = found
        at = len(self.replies)
        if magic != _MAGIC["reply"] or nonce != self._nonce or index != at or at >= len(self._requests):
            raise ProtocolError("bytes that are no reply of the harness")
        times = {"span": ns[0], "spent": ns[1], "apart": ns[2], "rested": 1e3 * rested}
        raw = Raw(Status(status), signal, Fault(fault), buffer, offset, **times)
        if raw.status is Status.DONE:
            size = self._expected(at, outputs, entries, rounds)
            if len(self._data) < size:
                return False
            raw = self._body(raw, outputs, entries, rounds)
        else:
            size = _REPLY.size
        del self._data[:size]
        if self._counts is not None:
            c = self._counts
            raw = replace(raw, reported_ns=c.reported_ns, window=c.window, busy=c.busy, words=c.words)
        self.replies.append(raw)
        self._counts = None
        return True

    def _take_report(self) -> bool:
        if len(self._data) < _REPORT.size:
            return False
        _, index, nonce, entry, _, calls, ns = _REPORT.unpack_from(self._data)
        request = self._requests[index] if index == len(self.replies) < len(self._requests) else None
        if nonce != self._nonce or not isinstance(request, Time):
            raise ProtocolError("a report of a timing that was not asked for")
        del self._data[: _REPORT.size]
        if self._counts is None:
            self._counts = Counts(
                len(request.entries),
                request.rounds,
                request.warm_ns,
                request.min_ns,
                request.flush_bytes > 0,
                self._clocks,
            )
        answer = self._counts.answer(entry, calls, ns)
        if answer is not None:
            self._answers += _ANSWER.pack(_MAGIC["count"], answer[1], answer[0])
        return True

    def _take_hello(self) -> bool:
        if len(self._data) < _HELLO.size:
            return False
        magic, version, nonce, page, state, error = _HELLO.unpack_from(self._data)
        if magic != _MAGIC["hello"] or version != VERSION or nonce != self._nonce:
            raise ProtocolError("the harness did not introduce itself")
        del self._data[: _HELLO.size]
        self.hello = Hello(page, bool(state & 1), bool(state & 2), error.split(b"\0")[0].decode(errors="replace"))
        return True

    def _expected(self, at: int, outputs: int, entries: int, rounds: int) -> int:
        """The size of the whole reply to a request. Raises ProtocolError if its counts do not match the request."""
        request = self._requests[at]
        slots = returned(request)
        timed, most = (len(request.entries), request.rounds) if isinstance(request, Time) else (0, 0)
        results = _results(request, outputs)
        if results is None or entries != timed or rounds > most:
            raise ProtocolError("a reply to another request than the one asked")
        storage = results * sum(_OUTPUT.size + request.call.buffers[slot].data.nbytes for slot in slots)
        return _REPLY.size + storage + _SAMPLE * entries * rounds

    def _body(self, raw: Raw, outputs: int, entries: int, rounds: int) -> Raw:
        request = self._requests[len(self.replies)]
        at = _REPLY.size
        storage: list[tuple[int, int, bytes]] = []
        for expected in returned(request) * (_results(request, outputs) or 0):
            slot, which, size = _OUTPUT.unpack_from(self._data, at)
            if slot != expected or size != request.call.buffers[slot].data.nbytes:
                raise ProtocolError("an output of another size than its buffer")
            if which >= 2 * len(entries_of(request)):
                raise ProtocolError("an output of an entry that was not asked for")
            at += _OUTPUT.size
            storage.append((slot, which, bytes(self._data[at : at + size])))
            at += size
        if isinstance(request, Time) and request.keep and returned(request):
            wanted = {i for i, entry in enumerate(request.entries) if not entry.empty}
            if {which // 2 for _, which, _ in storage} != wanted:
                raise ProtocolError("a timing without what its calls left")
        flat: NDArray[np.float64] = np.frombuffer(bytes(self._data[at : at + _SAMPLE * entries * rounds]), "<f8")
        made = flat.reshape(entries, rounds, 2)
        if not (np.isfinite(flat).all() and (made[..., 0] >= 1).all() and (made[..., 1] >= 0).all()):
            raise ProtocolError("samples that are no times of calls")
        for entry, batches in enumerate(made.tolist()):
            for calls, ns in batches:
                if self._counts is None:
                    raise ProtocolError("a timing without a report")
                self._counts.check(entry, calls, ns)
        each = made[..., 1] / made[..., 0]
        return replace(
            raw,
            outputs=tuple(storage),
            samples=tuple(tuple(row) for row in each.tolist()),
            calls=tuple(tuple(row) for row in made[..., 0].tolist()),
        )


def returned(request: Request) -> list[int]:
    """The buffers whose contents are returned with a result, in order."""
    return [i for i, buffer in enumerate(request.call.buffers) if buffer.access in (Access.OUT, Access.INOUT)]


def _results(request: Request, outputs: int) -> int | None:
    """How many sets of outputs were returned; None if this number does not match the request."""
    slots = returned(request)
    if not isinstance(request, Time):
        return 1 if outputs == len(slots) else None
    if not request.keep or not slots:
        return 0 if outputs == 0 else None
    most = len(request.entries) * (request.rounds + _LEFT)
    return outputs // len(slots) if outputs % len(slots) == 0 and outputs <= most * len(slots) else None
