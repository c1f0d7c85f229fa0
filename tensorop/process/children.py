"""Starts child processes and can end all of them at once.

Each child has a session of its own. So Ctrl-C at a terminal reaches only this process, which decides what to end.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import psutil

from tensorop import settings

_GONE_S = 10.0


class Cancelled(KeyboardInterrupt):
    """A process that somebody waits for was ended by `end`, or a new one was requested meanwhile.

    It is no failure of the program: nothing may be concluded from it.
    """


_lock = threading.RLock()
_alive: dict[int, subprocess.Popen[Any]] = {}
_ended: set[int] = set()
_ending = False
_for_good = False


def start(argv: Sequence[str], **how: Any) -> subprocess.Popen[Any]:
    """As `subprocess.Popen`, in a session of its own, with SIGINT blocked. The caller must call `release` at the end.

    Without `env`, the child has this process's environment without secrets (`settings.scrubbed_environment`).
    """
    if how.get("env") is None:
        how["env"] = settings.scrubbed_environment()
    with _lock:
        if _ending:
            raise Cancelled
        # until it has its session, a child is in our group, where Ctrl-C must not reach it
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            child = subprocess.Popen(list(argv), start_new_session=True, **how)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _alive[child.pid] = child
    return child


def release(child: subprocess.Popen[Any]) -> int:
    """Kills a child and all processes that it started; returns its status. Raises Cancelled if `end` ended it."""
    _kill(child)
    try:
        status = child.wait(_GONE_S)
    except subprocess.TimeoutExpired:  # it hangs in the kernel (in a driver, for example), where no signal reaches it
        status = -signal.SIGKILL
    with _lock:
        _alive.pop(child.pid, None)
        ended = child.pid in _ended
        _ended.discard(child.pid)
    for pipe in (child.stdin, child.stdout, child.stderr):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    if ended:
        raise Cancelled
    return status


def was_ended(child: subprocess.Popen[Any]) -> bool:
    """Whether `end` killed a child that was not released yet."""
    with _lock:
        return child.pid in _ended


def run(
    argv: Sequence[str],
    *,
    input: str | None = None,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` with captured text, but returns when the child itself ends.

    Processes that the child left behind may keep its output open. Raises FileNotFoundError, TimeoutExpired, Cancelled.
    """
    with _file("input") as given, _file("output") as out, _file("errors") as err:
        given.write((input or "").encode())
        given.seek(0)
        environment = None if env is None else dict(env)
        child = start(argv, stdin=given, stdout=out, stderr=err, env=environment, cwd=cwd)
        try:
            ended = _ends_within(child, timeout)
        finally:
            status = release(child)
        if not ended:
            raise subprocess.TimeoutExpired(list(argv), timeout)
        outputs = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0) for file in (out, err)]
    return subprocess.CompletedProcess(list(argv), status, *(text.decode(errors="replace") for text in outputs))


def _file(name: str) -> IO[bytes]:
    """A file in memory."""
    return open(os.memfd_create(name), "w+b")


def _ends_within(child: subprocess.Popen[Any], seconds: float) -> bool:
    poll = select.poll()
    with open(os.pidfd_open(child.pid), "rb") as exited:
        poll.register(exited, select.POLLIN)
        return bool(poll.poll(1000 * seconds))


def end(for_good: bool = False) -> None:
    """Kills every child; no other starts until `allow`. for_good: `allow` has no effect any more."""
    global _ending, _for_good
    with _lock:
        _ending = True
        _for_good = _for_good or for_good
        _ended.update(_alive)
        for child in _alive.values():
            _kill(child)


def allow() -> None:
    """Lets children start again."""
    global _ending
    with _lock:
        _ending = _for_good


def ending() -> bool:
    """Whether waiting code must give up."""
    return _ending


def ending_for_good() -> bool:
    """Whether this process is about to exit."""
    return _for_good


def kill_the_rest() -> None:
    """Kills every process below this one, also those that are just starting; for the last moment before exit."""
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.kill()


def _kill(child: subprocess.Popen[Any]) -> None:
    if child.returncode is None:  # it was not waited for yet, so its number still names its own group
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
