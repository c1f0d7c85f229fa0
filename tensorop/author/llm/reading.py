"""Reading an answer in a process of its own, which can be stopped: nothing within one process stops it for certain.

That process reads one answer after the other; one that takes too long ends with it, and the next answer has another.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from tensorop import errors, paths, settings
from tensorop.author.llm import reply
from tensorop.author.parse import parse
from tensorop.errors import SpecError
from tensorop.model.kernel import KernelTemplate
from tensorop.process import children, deadline, limits
from tensorop.specs import jsontext
from tensorop.store import records

SECONDS = 10.0
MEMORY = 1 << 30
_MOST = 16 << 20  # bytes of what it says: a template, escaped
_COMMAND = (sys.executable, "-m", "tensorop.author.llm.reading")

_lock = threading.Lock()
_child: subprocess.Popen[bytes] | None = None
_owner = 0


def template(answer: str, *, operator: str, name: str, author: str, seconds: float = SECONDS) -> KernelTemplate:
    """The template in an answer. Raises SpecError where there is none, and where reading it takes too long."""
    asked = json.dumps({"answer": answer, "operator": operator, "name": name, "author": author}).encode() + b"\n"
    with _lock:
        try:
            said = _said(_living(), asked, time.monotonic() + seconds)
        except BaseException:
            _end()
            raise
        if said is None or not said.endswith(b"\n"):
            _end()
            why = f"took more than {seconds:g} s" if said is None else "ended the process that reads"
            raise SpecError(f"reading the answer {why}")
    kind, told = jsontext.loads(said)
    if kind != "template":
        raise SpecError(str(told))
    return records.template_of(told)


def close() -> None:
    """Ends the process that reads, if there is one."""
    with _lock:
        _end()


atexit.register(close)


def _living() -> subprocess.Popen[bytes]:
    global _child, _owner
    if _child is not None and (_owner != os.getpid() or _child.poll() is not None or children.was_ended(_child)):
        _end()
    if _child is None:
        environment = {**settings.scrubbed_environment(), "PYTHONPATH": str(paths.native_dir().parent.parent)}
        argv = [*_COMMAND, str(os.getpid())]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        try:
            _child = children.start(argv, **pipes, env=environment)
        except OSError as error:
            raise errors.MissingTool(f"cannot start {argv[0]}: {error.strerror}", hint="tensorop doctor") from error
        _owner = os.getpid()
        assert _child.stdin is not None
        os.set_blocking(_child.stdin.fileno(), False)
    return _child


def _end() -> None:
    global _child
    child, _child = _child, None
    if child is not None and _owner == os.getpid():
        with contextlib.suppress(children.Cancelled):
            children.release(child)


def _said(child: subprocess.Popen[bytes], asked: bytes, until: float) -> bytes | None:
    """The line it answers, less where it ended, None where its time was up. Raises Cancelled where `end` ended it."""
    assert child.stdin is not None
    assert child.stdout is not None
    rest, out = memoryview(asked), bytearray()
    poll = select.poll()
    poll.register(child.stdin, select.POLLOUT)
    poll.register(child.stdout, select.POLLIN)
    while not out.endswith(b"\n") and len(out) <= _MOST:
        if (left := deadline.left(until)) <= 0:
            return None
        for descriptor, event in poll.poll(1000 * left):
            if descriptor == child.stdout.fileno():
                data = os.read(descriptor, 1 << 16)
                if not data:
                    if children.was_ended(child):
                        raise children.Cancelled
                    return bytes(out)
                out += data
            elif event & select.POLLOUT and rest:
                with contextlib.suppress(BrokenPipeError):
                    rest = rest[os.write(descriptor, rest) :]
            if descriptor == child.stdin.fileno() and (not rest or event & ~select.POLLOUT):
                poll.unregister(descriptor)
    return bytes(out)


def main() -> None:
    """argv: the parent's process id. stdin: a line for each answer; stdout: one for each template or refusal."""
    limits.limit(resource.RLIMIT_AS, MEMORY)
    limits.limit(resource.RLIMIT_FSIZE, 0)
    limits.limit(resource.RLIMIT_CORE, 0)
    parent = int(sys.argv[1])
    # It comes at the end of the thread that started this process, too: then the parent is still there.
    signal.signal(signal.SIGTERM, lambda *_: limits.alone(parent))
    limits.ends_with(parent, signal.SIGTERM)
    with open(1, "wb", buffering=0) as pipe:
        for line in sys.stdin.buffer:
            rest = memoryview(json.dumps(_read(**json.loads(line))).encode() + b"\n")
            while rest:
                rest = rest[pipe.write(rest) :]


def _read(answer: str, **of: str) -> tuple[str, Any]:
    try:
        return "template", records.template_record(parse(reply.template_text(answer), **of))
    except SpecError as error:
        return "refused", str(error)
    except Exception as error:  # whatever a stranger's text makes of what reads it
        return "refused", f"it cannot be worked with: {type(error).__name__}: {error!s:.500}"


if __name__ == "__main__":
    main()
