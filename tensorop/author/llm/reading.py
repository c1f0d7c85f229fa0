"""Reading an answer in a process of its own, which can be stopped: nothing within one process stops it for certain."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import Any

from tensorop import paths, settings
from tensorop.author.llm import reply
from tensorop.author.parse import parse
from tensorop.errors import SpecError
from tensorop.model.kernel import KernelTemplate
from tensorop.process import limits
from tensorop.runners import process
from tensorop.specs import jsontext
from tensorop.store import records

SECONDS = 10.0
MEMORY = 1 << 30
_MAX_OUTPUT = 16 << 20  # bytes: a template, escaped
_COMMAND = (sys.executable, "-m", "tensorop.author.llm.reading")


def template(answer: str, *, operator: str, name: str, author: str, seconds: float = SECONDS) -> KernelTemplate:
    """The template in an answer. Raises SpecError where there is none, and where reading it takes too long."""
    asked = json.dumps({"answer": answer, "operator": operator, "name": name, "author": author}).encode()
    environment = {**settings.scrubbed_environment(), "PYTHONPATH": str(paths.native_dir().parent.parent)}
    argv = [*_COMMAND, str(os.getpid())]
    talk = process.Talk([asked], stdout_cap=_MAX_OUTPUT)
    ended = process.run(argv, timeout_s=seconds, talk=talk, environment=environment)
    if ended.timed_out:
        raise SpecError(f"reading the answer took more than {seconds:g} s")
    if not ended.stdout.endswith(b"\n"):
        raise SpecError("reading the answer ended the process that reads")
    kind, told = jsontext.loads(ended.stdout)
    if kind != "template":
        raise SpecError(str(told))
    return records.template_of(told)


def main() -> None:
    """argv: the parent's process id. stdin: an answer; stdout: one line, its template or why there is none."""
    limits.limit(resource.RLIMIT_AS, MEMORY)
    limits.limit(resource.RLIMIT_FSIZE, 0)
    limits.limit(resource.RLIMIT_CORE, 0)
    parent = int(sys.argv[1])
    # It comes at the end of the thread that started this process, too: then the parent is still there.
    signal.signal(signal.SIGTERM, lambda *_: limits.alone(parent))
    limits.ends_with(parent, signal.SIGTERM)
    with open(1, "wb") as answer:
        answer.write(json.dumps(_read(**json.loads(sys.stdin.buffer.read()))).encode() + b"\n")


def _read(answer: str, **of: str) -> tuple[str, Any]:
    try:
        return "template", records.template_record(parse(reply.template_text(answer), **of))
    except SpecError as error:
        return "refused", str(error)
    except Exception as error:  # whatever a stranger's text makes of what reads it
        return "refused", f"it cannot be worked with: {type(error).__name__}: {error!s:.500}"


if __name__ == "__main__":
    main()
