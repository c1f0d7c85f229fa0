"""The resident process, whose forks render untrusted templates. It imports the modules once.

It forks a process for each kernel template. The template's process reads the kernel template and the operator's
templates around it, and forks a process for each rendering. So no process sees the texts of two kernel templates, and
nothing that a template does in one rendering affects the next one. Limits are set before the first untrusted byte is
read.
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

Work = Callable[[int, int], None]  # the task of a forked process, with the two descriptors that were sent for it


def main() -> None:
    """argv: the parent's process id. stdin: the socket on which the parent sends requests."""
    limits.limit(resource.RLIMIT_AS, MEMORY)
    limits.limit(resource.RLIMIT_FSIZE, 0)
    limits.limit(resource.RLIMIT_CORE, 0)
    limits.limit(resource.RLIMIT_NOFILE, _FILES)
    parent = int(sys.argv[1])
    # The kernel sends the signal also when the parent's thread ends that started this process. The parent lives then.
    signal.signal(signal.SIGTERM, lambda *_: limits.alone(parent))
    limits.ends_with(parent, signal.SIGTERM)
    asked = socket.socket(fileno=os.dup(0))
    os.dup2(1, 0)
    gc.freeze()
    _serve(asked, _template)


def _serve(asked: socket.socket, work: Work) -> NoReturn:
    """Forks a process for each pair of descriptors that is sent, until the other end of the socket is closed."""
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
    """Kills the processes that an ended process left in its group, and releases its process id."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(number, signal.SIGKILL)
    os.waitpid(number, 0)


def _end(running: list[int]) -> NoReturn:
    for number in running:
        os.kill(number, signal.SIGKILL)
        _bury(number)
    os._exit(0)


def _become(work: Work, *sent: int) -> NoReturn:
    """The life of a forked process: closes all descriptors but `sent`, carries out `work` and exits."""
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
    with contextlib.suppress(Exception):  # each rendering has the same error again, and reports it
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
