"""Small file systems of a test's own. Mounting needs root, and a kernel that lets root mount."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

NOEXEC = 8  # MS_NOEXEC of mount(2)


@contextlib.contextmanager
def mounted(place: Path, flags: int = 0) -> Iterator[Path]:
    """A file system of 32 MiB at `place`, until the block ends. Skips the test where there can be none."""
    place.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(place), b"tmpfs", flags, b"size=32m") != 0:
        pytest.skip(f"no file system of a test's own: mount says {os.strerror(ctypes.get_errno())}")
    try:
        yield place
    finally:
        libc.umount2(os.fsencode(place), 2)
