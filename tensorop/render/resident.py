"""The process that strangers' templates are rendered in: it imports once, and forks for all it is asked.

It forks a process for each kernel template, which reads that and the templates around it, and that one forks a
process for each rendering. Neither it nor what it forks for one template ever sees another's text, and a rendering
ends with its process: nothing that a template does reaches the next one. Limits are set before a stranger's
first byte is read.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tensorop.process import limits
from tensorop.render import render

SECONDS = 10
MEMORY = 1 << 30
IDLE_S = 60
_FILES = 64

Work = Callable[[int, int], None]  # what a forked process does with the two descriptors it was sent


def main() -> None:
    """argv: the parent's process id. stdin: the socket over which it asks."""
    limits.limit(resource.RLIMIT_AS, MEMORY)
    limits.limit(resource.RLIMIT_FSIZE, 0)
    limits.limit(resource.RLIMIT_CORE, 0)
    limits.limit(resource.RLIMIT_NOFILE, _FILES)
    parent = int(sys.argv[1])
    # It comes at the end of the thread that started this process, too: then the parent is still there.
    signal.signal(signal.SIGTERM, lambda *_: limits.alone(parent))
    limits.ends_with(parent, signal.SIGTERM)
    asked = socket.socket(fileno=os.dup(0))
    os.dup2(1, 0)
    gc.freeze()
    _serve(asked, _template)


def _serve(asked: socket.socket, work: Work) -> NoReturn:
    """Forks a process for each pair of descriptors that is sent, until nobody can send one any more."""
    running: dict[int, int] = {}
    poll = select.poll()
    poll.register(asked, select.POLLIN)
    while ready := poll.poll(None if running else IDLE_S * 1000):
        for descriptor, _ in ready:
            if descriptor in running:
                poll.unregister(descriptor)
                _bury(running.pop(descriptor))
                os.close(descriptor)
                continue
            sent = socket.recv_fds(asked, 1, 2)[1]
            if len(sent) != 2:
                _end(list(running.values()))
            number = os.fork()
            if not number:
                _become(work, *sent)
            for mine in sent:
                os.close(mine)
            handle = os.pidfd_open(number)
            running[handle] = number
            poll.register(handle, select.POLLIN)
    _end([])


def _bury(number: int) -> None:
    """Kills what an ended process left in its group, and lets go of its number."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(number, signal.SIGKILL)
    os.waitpid(number, 0)


def _end(running: list[int]) -> NoReturn:
    for number in running:
        os.kill(number, signal.SIGKILL)
        _bury(number)
    os._exit(0)


def _become(work: Work, *sent: int) -> NoReturn:
    """What a new process does: it keeps these descriptors and no other."""
    with contextlib.suppress(BaseException):
        parent = os.getppid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        limits.ends_with(parent, signal.SIGKILL)
        at = 3
        for descriptor in sorted(sent):
            os.closerange(at, descriptor)
            at = descriptor + 1
        os.closerange(at, _FILES)
        work(*sent)
    os._exit(0)


def _template(way: int, wish: int) -> None:
    """Reads a kernel template and those around it, and serves renderings of it."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    folders, template, outer = json.loads(_whole(wish))
    folder = tuple(map(Path, folders))
    with contextlib.suppress(Exception):  # each rendering meets it again, and says it
        render.read_ahead(folder, template, outer)
    resource.setrlimit(resource.RLIMIT_CPU, (resource.getrlimit(resource.RLIMIT_CPU)[1],) * 2)
    gc.freeze()
    _serve(socket.socket(fileno=way), lambda answer, contexts: _rendering(folder, template, outer, answer, contexts))


def _rendering(folder: render.Folders, template: str, outer: str, answer: int, wish: int) -> None:
    os.setsid()
    limits.limit(resource.RLIMIT_CPU, SECONDS)
    limits.limit(resource.RLIMIT_NPROC, 0)
    reply: list[object]
    try:
        contexts, arities = json.loads(_whole(wish))
        reply = ["texts", render.kernel_texts(folder, template, outer, contexts, arities)]
    except render.RenderError as error:
        reply = ["error", error.message]
    except RecursionError:
        reply = ["error", f"{outer}: it calls itself without end"]
    except MemoryError:
        reply = ["error", f"{outer}: rendering took more than {MEMORY >> 20} MiB"]
    except Exception as error:
        reply = ["error", f"{outer}: the rendering process crashed: {type(error).__name__}: {error}"]
    with open(answer, "wb", buffering=0) as pipe:
        rest = memoryview(json.dumps(reply).encode() + b"\n")
        while rest:
            rest = rest[pipe.write(rest) :]


def _whole(descriptor: int) -> bytes:
    """The contents of a file in memory."""
    with open(descriptor, "rb") as file:
        file.seek(0)
        return file.read()


if __name__ == "__main__":
    main()
