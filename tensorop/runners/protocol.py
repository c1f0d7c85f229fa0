"""The harness's wire format (tensorop/native/harness.h): requests packed, replies unpacked."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tensorop.model.call import Access, Call, Placement

VERSION = 1
_START = struct.Struct("<IIQiIII")
_HELLO = struct.Struct("<IIQII256s")
_REQUEST = struct.Struct("<8I4Q8q8q4d8q64x")
_ENTRY = struct.Struct("<Iiq")
_BUFFER = struct.Struct("<IIQ")
_REPLY = struct.Struct("<IIQIiiiqIIII")
_OUTPUT = struct.Struct("<IIQ")
_MAGIC = {name: int.from_bytes(word, "little") for name, word in (
    ("start", b"TOPS"), ("hello", b"TOPH"), ("request", b"TOPR"), ("reply", b"TOPA"),
)}  # fmt: skip
_ACCESS = {Access.IN: 0, Access.OUT: 1, Access.INOUT: 2}
_PLACEMENT = {Placement.END: 0, Placement.START: 1}
_MIDDLE = 2
_CHECK, _TIME, _COUNT = range(3)
_SANDBOX = 1


@dataclass(frozen=True)
class Library:
    """A shared library on the target and how the operator's adapter binds it (see tensorop_bind in call.h)."""

    path: str
    api: str
    dtype: str
    prefix: str = ""
    suffix: str = ""


@dataclass(frozen=True)
class Entry:
    """What is called: candidate or library by number; flag: (slot, value) to replace in the call for this entry."""

    function: int = 0
    flag: tuple[int, int] | None = None


@dataclass(frozen=True)
class Check:
    """One call; its outputs come back."""

    call: Call
    entry: Entry = Entry()


@dataclass(frozen=True)
class Time:
    """Interleaved batches of each entry, by the target's clock; no outputs come back.

    rounds: batches of each entry at most; warm_ns, min_ns: warm-up and least length of a batch; max_ns: after three
    rounds none is begun later than this; flush_bytes: > 0 measures single calls, each after a walk over so many bytes.
    """

    call: Call
    entries: tuple[Entry, ...]
    rounds: int = 15
    warm_ns: int = 5_000_000
    min_ns: int = 2_000_000
    max_ns: int = 2_000_000_000
    flush_bytes: int = 0


@dataclass(frozen=True)
class Count:
    """For instrumented emulators: `warm` calls of each entry and one more, each inside a marked region of its own."""

    call: Call
    entries: tuple[Entry, ...] = (Entry(),)
    warm: int = 1


Request = Check | Time | Count


class Status(IntEnum):
    DONE = 0
    SLACK_WRITTEN = 1
    SIGNALLED = 2
    NO_ENTRY = 3
    NO_MEMORY = 4


class Fault(IntEnum):
    ELSEWHERE = 0
    BEFORE = 1
    AFTER = 2
    READ_ONLY = 3


@dataclass(frozen=True)
class Hello:
    """What the harness says of itself: page size in bytes, what protects and steadies it, why a library failed."""

    page: int
    sandboxed: bool
    pinned: bool
    error: str


@dataclass(frozen=True)
class Raw:
    """A reply as it came. offset: bytes from the buffer's first, or the number of a forbidden system call."""

    status: Status
    signal: int
    fault: Fault
    buffer: int
    offset: int
    outputs: tuple[tuple[int, bytes], ...] = ()
    samples: tuple[tuple[float, ...], ...] = ()


class ProtocolError(Exception):
    """The bytes are no reply to what was asked: something else wrote into the pipe."""


def pack_start(nonce: int, *, cpu: int = -1, sandbox: bool = True, libraries: Sequence[Library] = ()) -> bytes:
    """The head of the stream. cpu: the processor to stay on, -1 for any."""
    options = _SANDBOX if sandbox else 0
    out = [_START.pack(_MAGIC["start"], VERSION, nonce, cpu, options, len(libraries), 0)]
    for library in libraries:
        for text in (library.path, library.api, library.dtype, library.prefix, library.suffix):
            word = text.encode()
            out += [len(word).to_bytes(4, "little"), word]
    return b"".join(out)


def entries_of(request: Request) -> tuple[Entry, ...]:
    return (request.entry,) if isinstance(request, Check) else request.entries


def pack(request: Request, index: int) -> Iterator[bytes | memoryview]:
    """The request in pieces; the operands are not copied when they are contiguous."""
    call, entries = request.call, entries_of(request)
    kind, rounds, warm, times = _CHECK, 0, 0, (0, 0, 0, 0)
    placement = _PLACEMENT[call.placement]
    if isinstance(request, Time):
        kind, rounds, placement = _TIME, request.rounds, _MIDDLE
        times = (request.warm_ns, request.min_ns, request.max_ns, request.flush_bytes)
    elif isinstance(request, Count):
        kind, warm, placement = _COUNT, request.warm, _MIDDLE
    yield _REQUEST.pack(
        _MAGIC["request"], kind, index, placement, len(call.buffers), len(entries), rounds, warm, *times,
        *_slots(call.dims, 8), *_slots(call.lds, 8), *_slots(call.scalars, 4), *_slots(call.flags, 8),
    ) + b"".join(_pack_entry(e) for e in entries) + b"".join(
        _BUFFER.pack(_ACCESS[b.access], 0, b.data.nbytes) for b in call.buffers
    )  # fmt: skip
    for buffer in call.buffers:
        if buffer.data.nbytes:
            yield np.ascontiguousarray(buffer.data).reshape(-1).view(np.uint8).data


def _pack_entry(entry: Entry) -> bytes:
    slot, value = entry.flag if entry.flag is not None else (-1, 0)
    return _ENTRY.pack(entry.function, slot, value)


def _slots(values: Sequence[float], count: int) -> tuple[float, ...]:
    if len(values) > count:
        raise ValueError(f"a call has {count} slots here, {len(values)} values were given")
    return (*values, *(0,) * (count - len(values)))


class Parser:
    """Takes stdout in pieces; `hello` and `replies` grow as they become whole."""

    def __init__(self, nonce: int, requests: Sequence[Request]) -> None:
        self._nonce = nonce
        self._requests = requests
        self._data = bytearray()
        self.hello: Hello | None = None
        self.replies: list[Raw] = []

    def feed(self, data: bytes) -> bool:
        """Whether a hello or a reply became whole. Raises ProtocolError."""
        self._data += data
        progress = False
        while self._step():
            progress = True
        return progress

    def _step(self) -> bool:
        if self.hello is None:
            return self._take_hello()
        if len(self._data) < _REPLY.size:
            return False
        magic, index, nonce, status, signal, fault, buffer, offset, outputs, entries, rounds, _ = _REPLY.unpack_from(
            self._data
        )
        at = len(self.replies)
        if magic != _MAGIC["reply"] or nonce != self._nonce or index != at or at >= len(self._requests):
            raise ProtocolError("bytes that are no reply of the harness")
        raw = Raw(Status(status), signal, Fault(fault), buffer, offset)
        if raw.status is Status.DONE:
            size = self._expected(at, outputs, entries, rounds)
            if len(self._data) < size:
                return False
            raw = self._body(raw, outputs, entries, rounds)
        else:
            size = _REPLY.size
        del self._data[:size]
        self.replies.append(raw)
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
        """The size of a whole reply to this request. Raises ProtocolError when the counts are not those asked for."""
        request = self._requests[at]
        if isinstance(request, Time):
            fits = outputs == 0 and entries == len(request.entries) and rounds <= request.rounds
        else:
            fits = entries == 0 and outputs == len(_writable(request.call))
        if not fits:
            raise ProtocolError("a reply to another request than the one asked")
        storage = 0 if isinstance(request, Time) else sum(
            _OUTPUT.size + request.call.buffers[slot].data.nbytes for slot in _writable(request.call)
        )  # fmt: skip
        return _REPLY.size + storage + 8 * entries * rounds

    def _body(self, raw: Raw, outputs: int, entries: int, rounds: int) -> Raw:
        request = self._requests[len(self.replies)]
        at = _REPLY.size
        storage: list[tuple[int, bytes]] = []
        for expected in _writable(request.call)[:outputs]:
            slot, _, size = _OUTPUT.unpack_from(self._data, at)
            if slot != expected or size != request.call.buffers[slot].data.nbytes:
                raise ProtocolError("an output of another size than its buffer")
            at += _OUTPUT.size
            storage.append((slot, bytes(self._data[at : at + size])))
            at += size
        flat: NDArray[np.float64] = np.frombuffer(bytes(self._data[at : at + 8 * entries * rounds]), "<f8")
        samples = tuple(tuple(row) for row in flat.reshape(entries, rounds).tolist()) if entries else ()
        return replace(raw, outputs=tuple(storage), samples=samples)


def _writable(call: Call) -> list[int]:
    return [i for i, buffer in enumerate(call.buffers) if buffer.access is not Access.IN]
