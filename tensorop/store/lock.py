"""A lock that allows one run per folder."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

from filelock import FileLock, Timeout

from tensorop.errors import JobError, SpecError, UsageError, of_system
from tensorop.specs import files


class FolderLock:
    """A lock held from construction to `release`; the kernel releases it if its process dies."""

    def __init__(self, folder: Path) -> None:
        """Takes the lock. Raises JobError that names the other run, UsageError if the folder cannot be written."""
        work = folder / "work"
        self._owner = work / "owner"
        with of_system(UsageError, f"cannot write to {folder}", "choose another --out, or make it writable"):
            work.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(work / "lock")
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                hint = "wait for it, stop it, or choose another --out"
                raise JobError(f"another run uses {folder} ({self._holder()})", hint=hint) from None
        with contextlib.suppress(OSError):  # only the message of another run needs the name
            self._owner.write_text(f"process {os.getpid()} on {socket.gethostname()}")

    def release(self) -> None:
        with contextlib.suppress(OSError):
            self._owner.unlink()
        self._lock.release()

    def _holder(self) -> str:
        try:
            return files.text(self._owner, 4096) or "an unknown process"
        except SpecError:
            return "an unknown process"
