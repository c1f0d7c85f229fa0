"""`preload`: runs a program on a product's library, and counts the calls that the library served."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from tensorop.blas import recorder, records
from tensorop.cli import record_command, screen
from tensorop.cli.command import Format, Plugins, command
from tensorop.commands import opened
from tensorop.commands import routines as of_routines
from tensorop.errors import UsageError
from tensorop.model.architecture import host_arch
from tensorop.model.option import Option
from tensorop.process import scratch
from tensorop.specs import platforms

_EXAMPLE = "tensorop preload build/blas -- python app.py"
_PAGE = "docs/how-to/replace-blas.md says which calls are replaced"
_LAPACK = "LAPACK in the BLAS of a wheel, as NumPy's and SciPy's, calls itself: it is neither served nor counted"


@command(_EXAMPLE.removeprefix("tensorop "), "preload build/gemm-native --format json -- ./solver --size 1000")
def preload(
    path: Annotated[Path, Option(metavar="DIR", positional=True)],
    program: Annotated[
        tuple[str, ...], Option(metavar="-- PROGRAM [ARGUMENT]...", positional=True, multiple=True)
    ] = (),
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Run a program on the library of `tensorop blas` or `tensorop gemm`, and count the calls that it served.

    The program's calls of BLAS go to DIR/lib/libtensorop_cblas.so by the names of CBLAS, of Fortran, or of the wheels
    of NumPy and SciPy, with integers of 32 or 64 bits. Other routines stay with the program's own BLAS. Its forked and
    started processes use the library too. `python -m tensorop.preload` is the same command.

    With --format json, the program's output goes to stderr.

    Exit status: that of the program; 1 without a served call, 2 wrong usage.
    """
    if not program:
        raise UsageError("preload needs -- PROGRAM", hint=f"e.g. {_EXAMPLE}")
    library = _standard(path, plugins)
    record_command.require_program(program, _EXAMPLE)
    libraries = [recorder.library(platforms.load("native")).path, library]
    for one in libraries:
        if any(letter in str(one) for letter in ": \t\n"):
            raise UsageError(f"{str(one)!r} cannot be preloaded: its path has a colon or a space", hint="move it")
    with scratch.folder("preload") as folder:
        status, _ = record_command.run(program, libraries, folder, format_)
        found = records.served(sorted(folder.iterdir()))
    if format_ == "json":
        screen.echo_json({"library": str(library), **asdict(found)})
    elif found.served:
        screen.echo(f"{found.served} of {found.calls} calls of BLAS were served by {library}", err=True)
        if found.elsewhere:
            screen.echo(f"served by another BLAS: {_listed(found)}", err=True)
        screen.echo(_LAPACK, err=True)
    if not found.served:
        seen = f"another BLAS served {_listed(found)}" if found.calls else "the program made none by a name that it has"
        screen.echo(f"{library} served no call of BLAS: {seen}; {_PAGE}", err=True)
    raise SystemExit(status or (0 if found.served else 1))


def _listed(found: records.ServedCalls) -> str:
    return ", ".join(f"{name} {calls}" for name, calls in found.elsewhere.items())


def _standard(path: Path, plugins: tuple[Path, ...]) -> Path:
    """A product's library with the standard names. Raises UsageError if it has none, or not for this machine."""
    for one in opened.open_each(path, plugins):
        library = of_routines.standard(one.operator, one.library)
        if one.platform.arch != host_arch():
            raise UsageError(
                f"{path} is for {one.platform.arch}, and this machine is {host_arch()}",
                hint="make a library for this machine, e.g. tensorop blas --platform native",
            )
        if library is not None and library.is_file():
            return library.absolute()
    raise UsageError(
        f"{path} has no library with the standard names of BLAS",
        hint="products of `tensorop blas` and `tensorop gemm` have one",
    )
