"""Writes files atomically and syncs them to disk."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tensorop.errors import JobError


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
    """As `replace`; returns the path. Raises JobError if it cannot be written."""
    try:
        replace(path, text)
    except OSError as error:
        raise JobError(
            f"cannot write {path}: {error.strerror or error}", hint="free disk space, or make it writable"
        ) from error
    return path
