"""Rendering a stranger's template in a process of its own, which can be stopped.

A template can loop for ever or ask for all memory, and nothing within one process stops that for certain. So the
child gets a limit on processor time and memory, its output is read up to a bound, and the parent waits no longer
than it said.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tensorop import paths, render, settings
from tensorop.model.primitive import Vocabulary, Word

SECONDS = 10
MEMORY = 1 << 30


def text(
    folder: Path,
    texts: Mapping[str, str],
    template: str,
    context: Mapping[str, Any],
    vocabulary: Vocabulary,
    seconds: float = SECONDS,
) -> str:
    """As `render.text` over `render.environment(folder, texts)`, with the vocabulary's words beside `context`.

    context holds plain data. Raises render.RenderError, also when time or memory ran out.
    """
    words = {name: asdict(word) for name, word in vocabulary.spoken.items()}
    job = json.dumps([str(folder), dict(texts), template, dict(context), words])
    environment = {**settings.scrubbed_environment(), "PYTHONPATH": str(paths.native_dir().parent.parent)}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tensorop.render_apart"],
            input=job,
            capture_output=True,
            text=True,
            env=environment,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise render.RenderError(f"{template}: rendering took more than {seconds:g} s") from None
    try:
        kind, said = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise render.RenderError(f"{template}: rendering died: {last[:300]}") from None
    if kind != "text":
        raise render.RenderError(said)
    return str(said)


def _child() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    folder, texts, template, context, words = json.load(sys.stdin)
    spoken = {name: _word(word) for name, word in words.items()}
    env = render.environment(Path(folder), texts)
    try:
        answer = ["text", render.text(env, template, {**context, **render.functions(spoken)})]
    except render.RenderError as error:
        answer = ["error", error.message]
    except RecursionError:
        answer = ["error", f"{template}: it calls itself without end"]
    except MemoryError:
        answer = ["error", f"{template}: rendering took more than {MEMORY >> 20} MiB"]
    json.dump(answer, sys.stdout)


def _word(fields: dict[str, Any]) -> Word:
    return Word(**{**fields, "args": tuple(fields["args"]), "preconditions": tuple(fields["preconditions"])})


if __name__ == "__main__":
    _child()
