"""How long all that a thread waits for may take together: processes that run into it end, as at their own limit."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass
class Deadline:
    """at: on the monotonic clock; struck: whether a process was ended by it."""

    at: float
    struck: bool = False


_local = threading.local()


def current() -> Deadline | None:
    """This thread's deadline."""
    found: Deadline | None = getattr(_local, "deadline", None)
    return found


def left(until: float) -> float:
    """Seconds until then, or until this thread's deadline where that comes first; one that has come has struck."""
    common = current()
    seconds = (until if common is None else min(until, common.at)) - time.monotonic()
    if seconds <= 0 and common is not None and common.at <= until:
        common.struck = True
    return seconds


@contextlib.contextmanager
def within(seconds: float) -> Iterator[Deadline]:
    """A deadline for what this thread does in the block; it takes an outer one's place."""
    with _as(Deadline(time.monotonic() + seconds)) as deadline:
        assert deadline is not None
        yield deadline


@contextlib.contextmanager
def shared(given: Deadline | None) -> Iterator[None]:
    """Another thread's deadline, or none, for what this one does for it in the block."""
    with _as(given):
        yield


@contextlib.contextmanager
def none() -> Iterator[None]:
    """No deadline in the block: for what is done once and serves others too."""
    with _as(None):
        yield


@contextlib.contextmanager
def _as(deadline: Deadline | None) -> Iterator[Deadline | None]:
    before = current()
    _local.deadline = deadline
    try:
        yield deadline
    finally:
        _local.deadline = before
