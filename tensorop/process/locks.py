"""A file lock between processes. A waiting process names the holder, obeys Ctrl-C, and gives up after a time."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import filelock
import psutil

from tensorop import errors
from tensorop.process import deadline, waiting

MOST_S = 3600.0  # long enough for a compiler's download or long measurements
SAID_S = 10.0  # seconds before a waiting process says so
log = logging.getLogger("tensorop")


@contextlib.contextmanager
def held(path: Path, what: str) -> Iterator[None]:
    """Holds the lock within the block. what: what the holder does, for the message.

    The time until it is free does not count for this thread's deadline.

    Raises JobError if it is not free within MOST_S, OSError if the file system has no locks.
    """
    lock, begin, silent = filelock.FileLock(path), time.monotonic(), True
    while True:
        waiting.heed()
        try:
            lock.acquire(timeout=waiting.LOOK_S, poll_interval=waiting.LOOK_S)
            break
        except filelock.Timeout:
            waited = time.monotonic() - begin
        if waited > MOST_S:
            raise errors.JobError(
                f"{path} is still locked after {MOST_S:g} s, by {_words(holder(path))}: {what}",
                hint="end that process, then run the same command again",
            ) from None
        if waited > SAID_S and silent:
            silent = False
            if (other := holder(path)) != os.getpid():
                log.info("waiting for %s: %s (%s)", _words(other), what, path)
    deadline.extend(time.monotonic() - begin)
    try:
        yield
    finally:
        lock.release()


def holder(path: Path) -> int | None:
    """The process that holds a file's lock; None if this kernel does not know it (another machine's, for example)."""
    with contextlib.suppress(OSError, ValueError):
        of = path.stat()
        file = f"{os.major(of.st_dev):02x}:{os.minor(of.st_dev):02x}:{of.st_ino}"
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if file in words and "->" not in words and int(words[4]) > 0:
                return int(words[4])
    return None


def _words(process: int | None) -> str:
    if process is None:
        return "a process of another machine or container"
    with contextlib.suppress(psutil.Error):
        command = " ".join(psutil.Process(process).cmdline()).split()
        return f"process {process} ({' '.join(command)[:80]})"
    return f"process {process}"
