"""Rendering a stranger's template in a process of its own, which can be stopped.

A template can loop for ever or ask for all memory, and nothing within one process stops that for certain. So the
child gets a limit on processor time, memory and files, its output is read up to a bound, and the parent waits no longer
than it said. It knows the primitives' names, not their C.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorop import paths, render, settings
from tensorop.runners import process

SECONDS = 10
MEMORY = 1 << 30


def texts(
    folder: Path,
    draft: str,
    template: str,
    contexts: Sequence[Mapping[str, Any]],
    arities: Mapping[str, int],
    seconds: float = SECONDS,
) -> list[str]:
    """As `render.kernel_texts`. Raises render.RenderError, also when time or memory ran out."""
    job = json.dumps([str(folder), draft, template, [dict(context) for context in contexts], dict(arities)])
    environment = {**settings.scrubbed_environment(), "PYTHONPATH": str(paths.native_dir().parent.parent)}
    ended = process.run(
        [sys.executable, "-m", "tensorop.render_apart"],
        stdin=[job.encode()],
        environment=environment,
        timeout_s=seconds,
        limits=process.Limits(memory=MEMORY, file=0, cpu_s=SECONDS),
        stdout_cap=2 * len(contexts) * render.MAX_OUTPUT,
    )
    if ended.timed_out:
        raise render.RenderError(f"{template}: rendering took more than {seconds:g} s")
    try:
        kind, said = json.loads(ended.stdout)
    except (ValueError, TypeError):
        last = (ended.stderr.strip().splitlines() or [f"status {ended.status}"])[-1]
        raise render.RenderError(f"{template}: rendering died: {last[:300]}") from None
    if kind != "texts":
        raise render.RenderError(str(said))
    if not isinstance(said, list) or len(said) != len(contexts) or not all(isinstance(one, str) for one in said):
        raise render.RenderError(f"{template}: rendering gave something else than texts")
    return said


def _child() -> None:
    # the parent sets the same from outside; this is before anything is read
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    folder, draft, template, contexts, arities = json.load(sys.stdin)
    try:
        answer = ["texts", render.kernel_texts(Path(folder), draft, template, contexts, arities)]
    except render.RenderError as error:
        answer = ["error", error.message]
    except RecursionError:
        answer = ["error", f"{template}: it calls itself without end"]
    except MemoryError:
        answer = ["error", f"{template}: rendering took more than {MEMORY >> 20} MiB"]
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    _child()
