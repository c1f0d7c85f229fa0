"""A common deadline for everything that a thread waits for; processes are ended when it passes."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass
class Deadline:
    """at: time on the monotonic clock; struck: whether it ended a process."""

    at: float
    struck: bool = False


_local = threading.local()


def current() -> Deadline | None:
    """This thread's deadline."""
    found: Deadline | None = getattr(_local, "deadline", None)
    return found


def left(until: float) -> float:
    """Seconds until `end` or this thread's deadline, whichever is first; a passed deadline counts as struck."""
    common = current()
    seconds = (until if common is None else min(until, common.at)) - time.monotonic()
    if seconds <= 0 and common is not None and common.at <= until:
        common.struck = True
    return seconds


def extend(seconds: float) -> None:
    """Moves this thread's deadline, by time that it waited for others."""
    if (common := current()) is not None:
        common.at += seconds


@contextlib.contextmanager
def within(seconds: float) -> Iterator[Deadline]:
    """A deadline for this thread within the block; it replaces an outer one."""
    with _as(Deadline(time.monotonic() + seconds)) as deadline:
        assert deadline is not None
        yield deadline


@contextlib.contextmanager
def shared(given: Deadline | None) -> Iterator[None]:
    """Another thread's deadline (or none) for work that this thread does for it within the block."""
    with _as(given):
        yield


@contextlib.contextmanager
def none() -> Iterator[None]:
    """No deadline within the block, for work whose result serves other trials too."""
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
