"""Writes files atomically and syncs them to disk."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tensorop.errors import JobError, of_system


def sync(path: Path) -> None:
    """Syncs a file's bytes or a folder's entries.

    A new file's name survives a crash only if its folder is synced too.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(path: Path, text: str) -> None:
    """Writes a file aside and puts it in place by one rename; readers see the whole old file or the whole new one."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write(path: Path, text: str) -> Path:
    """As `replace`, in a folder that may not exist; returns the path. Raises JobError if it cannot be written."""
    hint = "free disk space or make the folder writable, then run the same command again"
    with of_system(JobError, f"{path} cannot be written", hint):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, text)
    return path
