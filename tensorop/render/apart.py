"""Renders an untrusted template in a process of its own, which can be stopped.

A template can loop for ever or request all memory, and nothing within one process stops that for certain. So each
rendering has a process with limits on processor time, memory and files. This process reads its output up to a bound and
waits until a deadline. A rendering's process is a fork of a fork of the resident process (`resident`), since starting
Python takes as long as building a kernel. These processes know the names of primitives, not their C.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tensorop import errors, paths, settings
from tensorop.process import children, deadline
from tensorop.render import render
from tensorop.render.resident import SECONDS

_COMMAND = (sys.executable, "-m", "tensorop.render.resident")
_TEMPLATES = 16  # templates that have a process at the same time
_TRIES = 3
_CHUNK = 1 << 18


@dataclass(eq=False)
class _Resident:
    """The resident process."""

    child: subprocess.Popen[bytes]
    way: socket.socket  # to the resident process
    owner: int = field(default_factory=os.getpid)  # the process that started it
    # description of a template -> socket to the process that was forked for it; the last used one is last
    templates: dict[bytes, socket.socket] = field(default_factory=dict)
    ended: bool = False  # whether `children.end` killed it, with all children of this process

    def lives(self) -> bool:
        return self.owner == os.getpid() and not children.was_ended(self.child) and _open(self.way)

    def template(self, wish: bytes) -> socket.socket:
        """The socket to a template's process, which is forked if there is none. wish: description of the template"""
        found = self.templates.pop(wish, None)
        if found is None or not _open(found):
            if found is not None:
                found.close()
            found, theirs = socket.socketpair()
            with theirs:
                _ask(self.way, theirs.fileno(), wish)
        self.templates[wish] = found
        while len(self.templates) > _TEMPLATES:
            self.drop(next(iter(self.templates)))
        return found

    def drop(self, wish: bytes) -> None:
        """Ends a template's process with all its renderings."""
        if (way := self.templates.pop(wish, None)) is not None:
            way.close()

    def end(self) -> None:
        for wish in list(self.templates):
            self.drop(wish)
        self.way.close()
        if self.owner == os.getpid():
            try:
                children.release(self.child)
            except children.Cancelled:
                self.ended = True

    def heed(self) -> None:
        """Raises children.Cancelled if all children of this process were killed."""
        if self.ended or children.was_ended(self.child):
            raise children.Cancelled


_lock = threading.Lock()
_resident: _Resident | None = None


def texts(
    folder: render.Folders,
    template: str,
    outer: str,
    contexts: Sequence[Mapping[str, object]],
    arities: Mapping[str, int],
    seconds: float = SECONDS,
) -> list[str]:
    """As `render.kernel_texts`. Safe in threads. Raises render.RenderError, also when time or memory ran out."""
    folders = [str(one) for one in ((folder,) if isinstance(folder, Path) else folder)]
    wish = json.dumps([folders, template, outer]).encode()
    job = json.dumps([[dict(context) for context in contexts], dict(arities)]).encode()
    reply = _answer(wish, job, 2 * len(contexts) * render.MAX_OUTPUT, time.monotonic() + seconds)
    if reply is None:
        raise render.RenderError(f"{outer}: rendering took more than {seconds:g} s")
    try:
        kind, made = json.loads(reply)
    except (ValueError, TypeError, RecursionError):
        raise render.RenderError(f"{outer}: the rendering process crashed") from None
    if kind != "texts":
        raise render.RenderError(str(made))
    if not isinstance(made, list) or len(made) != len(contexts) or not all(isinstance(one, str) for one in made):
        raise render.RenderError(f"{outer}: rendering returned something other than text")
    return made


def close() -> None:
    """Ends the resident process, if there is one; the next rendering starts another."""
    global _resident
    with _lock:
        if _resident is not None:
            resident, _resident = _resident, None
            resident.end()


atexit.register(close)


def _answer(wish: bytes, job: bytes, most: int, until: float) -> bytes | None:
    """The output of a rendering's process: one line, less if the process died, None after the deadline.

    If the template's process ended meanwhile, the rendering is repeated, since another rendering or a kill from outside
    may have ended it. wish: description of the template; job: input of the rendering; most: bytes of the output; until:
    deadline on the monotonic clock
    """
    reply: bytes | None = b""
    for _ in range(_TRIES):
        mine, theirs = os.pipe()
        try:
            with open(theirs, "wb"), _lock:
                resident = _living()
                asked = resident.template(wish)
                _ask(asked, theirs, job)
            reply = _read(mine, most, until)
        except BaseException:
            _drop(wish)
            raise
        finally:
            os.close(mine)
        resident.heed()
        if reply is None or len(reply) > most:
            _drop(wish)
            return reply
        with _lock:
            if reply.endswith(b"\n") or _open(asked):
                return reply
    return reply


def _living() -> _Resident:
    """The resident process, started if there is none. Raises MissingTool, children.Cancelled."""
    global _resident
    if _resident is None or not _resident.lives():
        old, _resident = _resident, None
        if old is not None:
            old.end()
        _resident = _start()
    return _resident


def _start() -> _Resident:
    environment = {**settings.scrubbed_environment(), "PYTHONPATH": str(paths.native_dir().parent.parent)}
    ours, theirs = socket.socketpair()
    argv = [*_COMMAND, str(os.getpid())]
    try:
        with theirs:
            silent = subprocess.DEVNULL
            return _Resident(children.start(argv, stdin=theirs, stdout=silent, stderr=silent, env=environment), ours)
    except BaseException as error:
        ours.close()
        if isinstance(error, OSError):
            raise errors.MissingTool(f"cannot start {argv[0]}: {error.strerror}", hint="tensorop doctor") from error
        raise


def _drop(wish: bytes) -> None:
    with _lock:
        if _resident is not None:
            _resident.drop(wish)


def _ask(way: socket.socket, descriptor: int, wish: bytes) -> None:
    """Sends a descriptor, and a file that contains `wish`, to the process at the other end of `way`.

    If that process has ended, nothing happens.
    """
    with open(os.memfd_create("wish"), "wb") as file, contextlib.suppress(OSError):
        file.write(wish)
        file.flush()
        socket.send_fds(way, [b"!"], [descriptor, file.fileno()])


def _open(way: socket.socket) -> bool:
    """Whether a process holds the other end."""
    try:
        return way.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def _read(pipe: int, most: int, until: float) -> bytes | None:
    """A line of the pipe; less if the pipe ended before, the first bytes beyond `most` of a longer one, None at the
    deadline."""
    out = bytearray()
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while len(out) <= most and not out.endswith(b"\n"):
        if (left := deadline.left(until)) <= 0:
            return None
        if poll.poll(1000 * left):
            data = os.read(pipe, _CHUNK)
            if not data:
                break
            out += data
    return bytes(out)
