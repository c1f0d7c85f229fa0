"""Folders that cannot take what is written into them: full ones, and those from which no program starts."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tensorop.errors import UsageError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def written(error: OSError) -> str | None:
    """The file that could not be written. A copy, link or rename has two files, and the second is the new one."""
    name = error.filename if error.filename2 is None else error.filename2
    return None if name is None else str(name)


def says_full(text: str) -> bool:
    """Whether a program's message says that a disk is full."""
    return any(os.strerror(number) in text for number in FULL)


def starts_nothing(path: Path) -> bool:
    """Whether a file or folder is, or will be, on a file system mounted noexec."""
    there = next((place for place in (path, *path.absolute().parents) if os.path.exists(place)), Path("/"))
    return bool(os.statvfs(there).f_flag & os.ST_NOEXEC)


def require_programs(what: str, folder: Path, way: str) -> None:
    """Raises UsageError if programs built in a folder could not be started. what: its name for the user; way: hint."""
    if starts_nothing(folder):
        raise UsageError(
            f"{what} {folder} is on a file system mounted noexec: programs and libraries built there cannot be started",
            hint=way,
        )
