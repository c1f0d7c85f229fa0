"""Many at a time, or one alone: a lock between processes whose waiting one is not overtaken for ever."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class Turnstile:
    """Two files in `folder`: who holds `room` is inside, who wants in passes `door` first. One that wants to be alone
    waits at the door's inner side, and whoever comes later waits before it."""

    def __init__(self, folder: Path):
        self._door, self._room = (
            os.open(folder / f"turnstile.{name}", os.O_RDWR | os.O_CREAT) for name in ("door", "room")
        )
        self._inside: bool | None = None

    def enter(self, *, alone: bool) -> None:
        """Waits until nobody is inside (`alone`) or nobody who is alone; a no-op for one who is inside that way."""
        if self._inside == alone:
            return
        self.leave()
        fcntl.flock(self._door, fcntl.LOCK_EX)
        fcntl.flock(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(self._door, fcntl.LOCK_UN)
        self._inside = alone

    def leave(self) -> None:
        fcntl.flock(self._room, fcntl.LOCK_UN)
        self._inside = None
