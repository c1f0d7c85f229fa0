"""Temporary files of this process. What a killed process left, the next one removes."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_PREFIX = f"tensorop-{os.getuid()}-"
_LOCK = "lock"
_YOUNG_S = 60.0  # a folder exists shortly before its lock
_guard = threading.Lock()
_own: tuple[int, Path, int] | None = None  # (process, folder, descriptor of its lock)


@contextlib.contextmanager
def folder(what: str) -> Iterator[Path]:
    """An empty folder within the block. what: begin of its name."""
    with tempfile.TemporaryDirectory(prefix=f"{what}-", dir=_root(), ignore_cleanup_errors=True) as made:
        yield Path(made)


def clear() -> None:
    """Removes this process's folder now, for an exit that runs no other code."""
    with _guard:
        if _own is not None:
            _remove(*_own)


def _root() -> Path:
    """This process's folder. The first call creates it and removes what killed processes left."""
    global _own
    with _guard:
        if _own is None or _own[0] != os.getpid() or not _own[1].is_dir():
            place = Path(tempfile.gettempdir())
            _sweep(place)
            made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
            held = os.open(made / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(held, fcntl.LOCK_EX)
            _own = os.getpid(), made, held
            atexit.register(_remove, *_own)
        return _own[1]


def _remove(process: int, made: Path, held: int) -> None:
    if process == os.getpid():  # not in a forked child
        shutil.rmtree(made, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(held)


def _sweep(place: Path) -> None:
    """Removes this user's folders whose process ended; the kernel frees a lock with its process."""
    for old in place.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if old.is_symlink() or old.stat().st_uid != os.getuid():
                continue
            lock = old / _LOCK
            if not lock.exists():
                if time.time() - old.stat().st_mtime > _YOUNG_S:
                    shutil.rmtree(old, ignore_errors=True)
                continue
            held = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old, ignore_errors=True)
            finally:
                os.close(held)
