"""A request from outside to end a job early, and what a job gives up for it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from tensorop.process import children

Says = str | Callable[[], str]

_whole = 0  # blocks of `whole` the main thread is in
_late = False  # whether an interrupt came meanwhile


def interrupt() -> None:
    """For signal handlers: raises KeyboardInterrupt, inside `whole` at its end."""
    global _late
    if not _whole:
        raise KeyboardInterrupt
    _late = True


@contextlib.contextmanager
def whole() -> Iterator[None]:
    """A file and what the program knows of it change together: an interrupt that comes inside is raised at the end."""
    global _whole, _late
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _whole += 1
    try:
        yield
    finally:
        _whole -= 1
        if _late and not _whole:
            _late = False
            raise KeyboardInterrupt


class StopRequest:
    """Ctrl-C's first press: the search and what only improves or compares ends, what there is becomes the product.

    The job says in which of its parts it is, and what a request will come to; whoever hears the user calls `ask`, from
    any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._says: Says = "stopping"
        self._open = False
        self.asked = False
        self.shielded = False  # what runs must not be cut in the middle
        self.scratch: Path | None = None  # a folder that must not be left behind
        self.grid_s: float | None = None  # that building and verifying the product takes, where that is known

    def ask(self) -> str:
        """Ends what may end now. Returns what will happen, for the user to read."""
        with self._lock:
            self.asked = True
            if self._open:
                children.end()
            return self._says if isinstance(self._says, str) else self._says()

    def goes_on(self, says: Says) -> None:
        """The part that begins runs to its end, asked or not."""
        with self._lock:
            self._says = says

    @contextlib.contextmanager
    def may_end(self, says: Says) -> Iterator[None]:
        """What runs inside is given up when asked: its processes die, whoever waits for them is cut short, and the
        code after the block goes on."""
        with self._lock:
            self._says = says
            if self.asked:
                children.end()
            self._open = True
        try:
            yield
        except children.Cancelled:
            if children.ending_for_good() or not self.asked:
                raise
        finally:
            with self._lock:
                self._open = False
                children.allow()

    @contextlib.contextmanager
    def shield(self, says: Says) -> Iterator[None]:
        """What runs inside is done whole, however often the user asks."""
        self.goes_on(says)
        self.shielded = True
        try:
            yield
        finally:
            self.shielded = False
