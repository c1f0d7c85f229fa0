"""The user's request to end a job early, and the blocks of code that it interrupts."""

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
    """For signal handlers: raises KeyboardInterrupt; within `whole` only at the end of that block."""
    global _late
    if not _whole:
        raise KeyboardInterrupt
    _late = True


@contextlib.contextmanager
def whole() -> Iterator[None]:
    """Delays an interrupt to the end of the block, so that a file and the program's state change together."""
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
    """The request of the first Ctrl-C: the search and comparisons end, and the best kernels so far become the product.

    The job records which part it is in and what a request will do. `ask` may be called from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._says: Says = "stopping"
        self._open = False
        self.asked = False
        self.shielded = False  # the running code must not be interrupted
        self.scratch: Path | None = None  # folder to remove if the process is killed
        self.grid_s: float | None = None  # expected seconds to build and verify the product

    def ask(self) -> str:
        """Ends what may end now. Returns a sentence for the user about what happens next."""
        with self._lock:
            self.asked = True
            if self._open:
                children.end()
            return self._says if isinstance(self._says, str) else self._says()

    def goes_on(self, says: Says) -> None:
        """Marks a part that runs to its end even after a request."""
        with self._lock:
            self._says = says

    @contextlib.contextmanager
    def may_end(self, says: Says) -> Iterator[None]:
        """A block that a request interrupts: its processes are killed, and the code after the block continues."""
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
        """A block that runs to its end, however often the user asks."""
        self.goes_on(says)
        self.shielded = True
        try:
            yield
        finally:
            self.shielded = False
