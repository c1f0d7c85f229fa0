"""Waits, with a deadline and Ctrl-C, for code that this process can neither end nor trust."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from tensorop.process import children

T = TypeVar("T")
LOOK_S = 0.1  # seconds between two checks for a stop request


def heed() -> None:
    """Raises Cancelled if waiting code must give up."""
    if children.ending():
        raise children.Cancelled


def pause(seconds: float) -> None:
    """Sleeps. Raises Cancelled."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        heed()
        time.sleep(min(LOOK_S, left))


def within(seconds: float, call: Callable[[], T], *, heeding: bool = True) -> T:
    """Returns what `call` returns. It runs on a thread of its own, which is abandoned at the deadline.

    heeding: whether a stop request ends the wait too. Raises what `call` raises, TimeoutError, Cancelled.
    """
    ended: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            ended.put((call(), None))
        except BaseException as error:
            ended.put((None, error))

    until = time.monotonic() + seconds
    # a daemon: the exit of the process does not wait for it
    threading.Thread(target=run, name="waited-for", daemon=True).start()
    while True:
        if heeding:
            heed()
        try:
            found, error = ended.get(timeout=max(0.0, min(LOOK_S, until - time.monotonic())))
        except queue.Empty:
            if time.monotonic() >= until:
                raise TimeoutError(f"no answer within {seconds:g} s") from None
            continue
        if error is not None:
            raise error
        return found  # type: ignore[return-value]
