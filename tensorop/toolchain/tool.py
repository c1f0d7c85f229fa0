"""Runs the compiler, linker or archiver with a deadline and limits."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Sequence
from pathlib import Path

from tensorop import paths
from tensorop.errors import JobError
from tensorop.model.kernel import Artifact
from tensorop.model.trial import Kind, Outcome
from tensorop.provision import view as provision_view
from tensorop.provision import zig as provision_zig
from tensorop.runners import process
from tensorop.toolchain.cache import BuildLog

# These stop a template that expands without end; clang 22 needs below 1 GiB for the largest real kernel.
LIMITS = process.Limits(memory=6 << 30, file=512 << 20)
_LOG = 4096
_ROOM = 4 << 20  # bytes; if a tool fails with less free space than this, the disk counts as full


@functools.cache
def compiler_version() -> str:
    """The compiler's name and version, for keys and cards."""
    return f"zig {provision_zig.zig_version()}"


def cc(*words: str) -> tuple[str, ...]:
    return (*provision_zig.zig_cc(), *words)


def ar(*words: str) -> tuple[str, ...]:
    return (str(provision_zig.zig()), "ar", *words)


def run(
    argv: Sequence[str], folder: Path, *, timeout_s: float, doing: str, guards: str | None = ""
) -> BuildLog | Outcome:
    """Runs a tool in `folder`. A failure is an Outcome (COMPILE or TIMEOUT) with the head of the tool's output.

    guards: protections that hide all files except those of `folder` and the compiler's own (see provision.view); None
    for all that work on this machine.
    Raises JobError if the tool failed on a full disk, since its input may be right.
    """
    which = provision_view.guards() if guards is None else guards
    # zig never removes objects from its local cache, so each run has a folder that is removed with it.
    local = folder / ".zig"
    local.mkdir(exist_ok=True)
    try:
        ended = process.run(
            provision_view.behind(which, argv, folder) if which else argv,
            cwd=folder,
            timeout_s=timeout_s,
            # removes files of a crashed compiler too
            environment={**provision_zig.zig_environment(local=local), "TMPDIR": str(local.absolute())},
            limits=LIMITS,
        )
    finally:
        shutil.rmtree(local, ignore_errors=True)
    log = ended.stdout.decode(errors="replace") + ended.stderr
    if ended.timed_out:
        return Outcome(Kind.TIMEOUT, "build", f"{doing} did not end within {timeout_s:g} s", log[:_LOG])
    if ended.status != 0:
        _require_room(folder)
        return Outcome(Kind.COMPILE, "build", f"{doing} failed: {_first_error(log, ended.status)}", log[:_LOG])
    return BuildLog(tuple(argv), log[:_LOG])


def required(built: Artifact | Outcome, what: str) -> Artifact:
    """The product of a necessary build. Raises JobError with the tool's output if it failed."""
    if isinstance(built, Outcome):
        raise JobError(
            f"{what} cannot be built: {built.message}\n{built.log}", hint="run `tensorop doctor` to test the compiler"
        )
    return built


def _require_room(folder: Path) -> None:
    for place in (folder, paths.cache_dir("zig")):
        if shutil.disk_usage(place).free < _ROOM:
            raise JobError(
                f"the disk is full: cannot build in {place}",
                hint="free disk space, then run the same command again to resume",
            )


def _first_error(log: str, status: int) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[0] if lines else f"status {status}")
