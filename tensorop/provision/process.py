"""Runs a fetching tool (apt-get, dpkg, pip, cc), and reports its failure with a reason and a next step."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tensorop import errors, settings
from tensorop.process import children, places


def run(argv: Sequence[str], *, doing: str, hint: str, cwd: Path | None = None, seconds: float = 600) -> str:
    """The standard output of a command.

    Raises MissingTool if it is absent, fails or takes too long, JobError if the disk is full.
    """
    environment: Mapping[str, str] = {**settings.scrubbed_environment(), "LC_ALL": "C.UTF-8"}
    try:
        done = children.run(argv, cwd=cwd, env=environment, timeout=seconds)
    except FileNotFoundError as e:
        raise errors.MissingTool(f"{doing}: {argv[0]} is not on this machine", hint=hint) from e
    except subprocess.TimeoutExpired as e:
        raise errors.MissingTool(f"{doing}: {argv[0]} took more than {seconds:.0f} s", hint=hint) from e
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        errors_first = [line for line in lines if line.lower().startswith(("e:", "error", "err:"))] or lines
        require_room(done.stderr, doing)
        reason = "; ".join(errors_first[:3]) or f"exit status {done.returncode}"
        raise errors.MissingTool(f"{doing} failed: {reason}", hint=hint)
    return done.stdout


def require_room(text: str, doing: str) -> None:
    """Raises JobError if a failed program's messages say that the disk is full."""
    if places.says_full(text):
        used = f"{settings.read().cache} (TENSOROP_CACHE) or {tempfile.gettempdir()} (TMPDIR)"
        raise errors.JobError(f"the disk is full: {doing}", hint=f"free disk space in {used}, or set another folder")


def output_of(binary: Path, option: str) -> str:
    """The output of a program for an option that ends it at once (`--version`); "" if it does not run. Cached."""
    try:
        return _output_of(binary, option, binary.stat().st_mtime_ns)
    except OSError:
        return ""


@functools.cache
def _output_of(binary: Path, option: str, stamp: int) -> str:
    try:
        return children.run([str(binary), option], timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
