"""`record`: runs a program, and writes which BLAS routines it calls, for what sizes and for how long."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from tensorop import settings
from tensorop.blas import recorder, records
from tensorop.cli import screen
from tensorop.cli.command import Format, Plugins, command
from tensorop.errors import TensoropError, UsageError, of_system
from tensorop.measure.statistics import significant
from tensorop.model.job import Job
from tensorop.model.option import Option
from tensorop.process import children, scratch
from tensorop.specs import calls, catalog, operators, platforms

_NOTHING = (
    "no call was recorded: the program calls no shared library by the names of CBLAS or of Fortran BLAS "
    "(docs/how-to/tune-for-a-program.md lists what cannot be recorded)"
)


@command(
    "record -- python train.py",
    "record --out calls.txt -- ./solver --size 1000",
    "record --library build/libtensorop_record.so --platform rvv",
)
def record(
    program: Annotated[
        tuple[str, ...], Option(metavar="-- PROGRAM [ARGUMENT]...", positional=True, multiple=True)
    ] = (),
    out: Annotated[Path, Option("Write the record to this file.", "FILE", "calls.txt")] = Path("calls.txt"),
    library: Annotated[
        Path | None,
        Option(
            "Run no program, and write the recorder to this file. Copy it to a machine of --platform, and run there: "
            "TENSOROP_RECORD=calls.txt LD_PRELOAD=./libtensorop_record.so PROGRAM.",
            "FILE",
            "libtensorop_record.so",
        ),
    ] = None,
    platform: Annotated[str, Option("Build the recorder for programs of this platform.", "NAME", "rvv")] = Job.platform,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Run a program and record its calls of BLAS: each kind with its flags, sizes, count and time.

    Give the record to `tensorop gemm --shapes @FILE`, which tunes for these calls. The program may use any shared BLAS
    by the names of CBLAS, of Fortran, or of the wheels of NumPy and SciPy; it runs as usual. Its forked and started
    processes are recorded too. Press Ctrl-C to end the program and keep the record.

    With --format json, the program's output goes to stderr.

    Exit status: that of the program; 1 without a recorded call, 2 wrong usage.
    """
    if bool(program) is (library is not None):
        raise UsageError("record needs either -- PROGRAM or --library FILE", hint="e.g. tensorop record -- python a.py")
    if program and platform != Job.platform:
        raise UsageError(f"--platform {platform} has no effect on a program of this machine", hint="add --library FILE")
    built = recorder.library(platforms.load(platform, plugins)).path
    if library is not None:
        with of_system(UsageError, f"cannot write {library}"):
            library.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(built, library)
        screen.answer(format_, {"library": str(library)}, lambda: screen.echo(f"recorder: {library}"))
        return
    require_program(program, "tensorop record -- python a.py")
    with of_system(UsageError, f"cannot write {out}"):  # before the program runs, which may take long
        new = not out.exists()
        out.open("a").close()
        if new:
            out.unlink()
    with scratch.folder("record") as folder:
        status, seconds = run(program, [built], folder, format_)
        with of_system(UsageError, f"cannot write {out}"):
            found = records.join(sorted(folder.iterdir()), out)
    if not found.kinds:
        screen.echo(_NOTHING, err=True)
        raise SystemExit(status or 1)
    commands = [*_next(out, plugins)]
    if format_ == "json":
        screen.echo_json({"record": str(out), **asdict(found), "program_s": seconds, "next": commands})
    else:
        share, of_calls, of_all = (
            found.seconds / max(seconds, found.seconds),
            *map(significant, (found.seconds, seconds)),
        )
        screen.echo(f"record: {out}", err=True)
        screen.echo(
            f"{found.kinds} kinds of calls, {found.calls} calls: {of_calls} s of {of_all} s ({share:.0%})", err=True
        )
        for line in (*found.remarks, *(f"next: {text}" for text in commands)):
            screen.echo(line, err=True)
    raise SystemExit(status)


def require_program(program: tuple[str, ...], example: str) -> None:
    """Raises UsageError if there is no such program. example: a command line with one"""
    if shutil.which(program[0]) is None:
        raise UsageError(f"there is no program {program[0]!r}", hint=f"e.g. {example}")


def run(program: tuple[str, ...], libraries: Sequence[Path], folder: Path, format_: str) -> tuple[int, float]:
    """The program's status and its seconds. Its processes write their records to the folder.

    libraries: the recorder, and those that are loaded behind it; format_: json: the program's output goes to stderr
    """
    began, env = time.monotonic(), settings.recording_environment(libraries, folder / "%p")
    child = children.start(program, env=env, stdout=sys.stderr if format_ == "json" else None)
    try:
        child.wait()
        status = children.release(child)
    except (KeyboardInterrupt, children.Cancelled):
        status = -signal.SIGINT
        with contextlib.suppress(children.Cancelled):
            children.release(child)
    return status if status >= 0 else 128 - status, time.monotonic() - began


def _next(out: Path, plugins: tuple[Path, ...]) -> Iterator[str]:
    """The next command of each operator that has some of the calls."""
    for name in catalog.names("templates", plugins):
        try:
            _, remark = calls.read(operators.load(name, plugins), out)
        except TensoropError:  # it has none
            continue
        yield f"tensorop {name} --shapes @{out} tunes for them" + (f" ({remark})" if remark else "")
