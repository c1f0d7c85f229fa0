"""The shell lines of a page, run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[str]:
    """The shell blocks of a page of the repository."""
    return _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def run(block: str, prefix: Path, scratch: Path) -> subprocess.CompletedProcess[str]:
    """Runs a block in `scratch`, which looks like a checkout, with `prefix` for DIR and this Python's tensorop."""
    for name in ("cmake", "examples"):
        if not (scratch / name).exists():
            (scratch / name).symlink_to(ROOT / name)
    (scratch / "bin").mkdir(exist_ok=True)
    for name, module in (("python3", ""), ("tensorop", "-m tensorop ")):
        command = scratch / "bin" / name
        command.unlink(missing_ok=True)
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module}"$@"\n')
        command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{scratch / 'bin'}:{os.environ['PATH']}"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    return subprocess.run(
        ["sh", "-e", "-c", re.sub(r"\bDIR\b", str(prefix), block)],
        cwd=scratch, env=environment, capture_output=True, text=True, timeout=400,
    )  # fmt: skip
