"""Child processes that end with `run`: each has its own session, a deadline, limits and capped output."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tensorop import errors
from tensorop.process import children, deadline, places

_CHUNK = 1 << 18
PROCESSORS = os.cpu_count() or 1
_HEAD, _TAIL = 32 << 10, 4 << 10


@dataclass(frozen=True)
class Limits:
    """Resource limits of a process."""

    memory: int | None = 8 << 30  # bytes of address space
    file: int | None = 1 << 30  # bytes of a file
    cpu_s: int | None = None  # processor time


@dataclass(frozen=True)
class Ended:
    """The end of a process."""

    status: int  # exit status, or minus the signal's number
    timed_out: bool
    stdout: bytes  # empty if `Talk.consume` took it
    stderr: str  # head and tail
    seconds: float


@dataclass(frozen=True)
class Talk:
    """Input and output of a process."""

    stdin: Iterable[bytes | memoryview] = ()  # an empty piece: no more until stdout is consumed
    consume: Callable[[bytes], bool] | None = None  # takes stdout; True restarts the deadline
    started: Callable[[int], object] | None = None  # called with the process's number
    stdout_cap: int = 1 << 20  # bytes of stdout that are kept without `consume`


SILENT = Talk()


class _Capped:
    """Keeps the head and the tail of a stream of any length."""

    def __init__(self) -> None:
        self.head = b""
        self.tail = b""

    def add(self, data: bytes) -> None:
        room = _HEAD - len(self.head)
        self.head += data[:room]
        self.tail = (self.tail + data[room:])[-_TAIL:] if len(data) > room else self.tail

    def text(self) -> str:
        between = "\n...\n" if len(self.tail) == _TAIL else ""
        return self.head.decode(errors="replace") + between + self.tail.decode(errors="replace")


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    talk: Talk = SILENT,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    limits: Limits | None = None,
) -> Ended:
    """Runs a command until it ends, then kills everything that it started.

    If `talk.consume` raises, the process ends. A deadline of this thread (`deadline.within`) ends it too.
    environment: the whole environment; None for this process's own, scrubbed. Safe to call from several threads.
    Raises MissingTool if the program cannot be started, Cancelled if it was ended from outside.
    """
    begin = time.monotonic()
    try:
        child = children.start(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if environment is None else dict(environment),
            cwd=cwd,
        )
    except OSError as e:
        why, way = e.strerror, "run `tensorop doctor`"
        if "/" in argv[0] and places.starts_nothing(place := (cwd or Path()) / argv[0]):
            why = f"{place.absolute().parent} is on a file system mounted noexec"
            way = "choose another --out, TMPDIR or TENSOROP_CACHE, whichever that folder lies in"
        raise errors.MissingTool(f"cannot start {argv[0]}: {why}", hint=way) from e
    try:
        if limits is not None:
            _limit(child.pid, limits)
        if talk.started is not None:
            talk.started(child.pid)
        out, err, timed_out = _talk(child, talk, timeout_s)
    finally:
        status = children.release(child)
    return Ended(status, timed_out, bytes(out), err.text(), time.monotonic() - begin)


def _limit(pid: int, limits: Limits) -> None:
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: limits.memory,
        resource.RLIMIT_FSIZE: limits.file,
        resource.RLIMIT_CPU: limits.cpu_s,
    }
    for which, value in wanted.items():
        if value is not None:
            # the process may have ended, or have a lower hard limit
            with contextlib.suppress(ProcessLookupError, ValueError, PermissionError):
                resource.prlimit(pid, which, (value, value))


def _talk(child: subprocess.Popen[bytes], talk: Talk, timeout_s: float) -> tuple[bytearray, _Capped, bool]:
    """Feeds and reads a child until it has ended or its time is up."""
    assert child.stdin
    assert child.stdout
    assert child.stderr
    out, err = bytearray(), _Capped()
    chunks = iter(talk.stdin)
    pending = memoryview(b"")
    until = time.monotonic() + timeout_s
    exited = os.pidfd_open(child.pid)
    with selectors.DefaultSelector() as selector:
        try:
            for pipe in (child.stdin, child.stdout, child.stderr):
                os.set_blocking(pipe.fileno(), False)
            selector.register(child.stdin, selectors.EVENT_WRITE)
            selector.register(child.stdout, selectors.EVENT_READ)
            selector.register(child.stderr, selectors.EVENT_READ)
            selector.register(exited, selectors.EVENT_READ)
            running, waits = True, False
            while running:
                if (left := deadline.left(until)) <= 0:
                    return out, err, True
                ready = [key.fileobj for key, _ in selector.select(left)]
                # The pipes may still hold output of an ended process: they are read once more.
                running = exited not in ready
                if child.stdin in ready:
                    pending, fed = _feed(child.stdin.fileno(), chunks, pending)
                    if fed is not _Fed.SOME:
                        selector.unregister(child.stdin)
                    if fed is _Fed.END:
                        child.stdin.close()
                    waits = fed is _Fed.ALL
                    if not waits:
                        until = max(until, time.monotonic() + timeout_s)  # operands over a slow connection
                for pipe in (child.stdout, child.stderr):
                    while (pipe in ready or not running) and (data := _read(pipe.fileno())) is not None:
                        if not data:
                            with contextlib.suppress(KeyError):
                                selector.unregister(pipe)
                            break
                        if pipe is child.stderr:
                            err.add(data)
                        elif talk.consume is not None:
                            if talk.consume(data):
                                until = time.monotonic() + timeout_s
                            if waits and running:
                                selector.register(child.stdin, selectors.EVENT_WRITE)
                                waits = False
                        elif len(out) < talk.stdout_cap:
                            out += data
                        if running:
                            break
        finally:
            os.close(exited)
    return out, err, False


class _Fed(Enum):
    SOME = 0  # the pipe is full
    ALL = 1  # no more data for now
    END = 2


def _feed(fd: int, chunks: Iterable[bytes | memoryview], pending: memoryview) -> tuple[memoryview, _Fed]:
    """Writes until the pipe is full. Returns the rest, and whether more may follow."""
    try:
        while True:
            if not pending:
                chunk = next(iter(chunks), None)
                if chunk is None:
                    return pending, _Fed.END
                pending = memoryview(chunk).cast("B")
                if not pending:
                    return pending, _Fed.ALL
            pending = pending[os.write(fd, pending[:_CHUNK]) :]
    except BlockingIOError:
        return pending, _Fed.SOME
    except BrokenPipeError:
        return pending, _Fed.END


def _read(fd: int) -> bytes | None:
    """A piece from a pipe; b"" at its end, None if it is empty for now."""
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return None
