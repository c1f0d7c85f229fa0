"""`judge --blas`: its options, and its answer on the screen."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tensorop import backends
from tensorop.blas import binding, judging, routines
from tensorop.blas.findings import BlasJudgement
from tensorop.cli import screen, tables
from tensorop.errors import UsageError, of_system
from tensorop.model.architecture import host_arch
from tensorop.model.budget import parse_seconds
from tensorop.model.option import Option
from tensorop.report import judged
from tensorop.runners.base import Runner
from tensorop.runners.native import Native
from tensorop.specs import platforms

Blas = Annotated[
    Path | None,
    Option("Judge this shared library instead, by the names of CBLAS and Fortran in it.", "LIB", "libopenblas.so"),
]
Routines = Annotated[
    str | None,
    Option(
        "Judge these routines of the library, with or without the letter of a type.",
        "NAME,...",
        "dsyrk,trsm",
        shown="all that it has",
    ),
]
Threads = Annotated[
    int, Option("Judge the library with 1 thread and with N threads.", "N", "4", least=1, most=256)
]  # fmt: skip
Variables = Annotated[
    tuple[str, ...],
    Option(
        "Set an environment variable of the library; repeat it for several.",
        "NAME=VALUE",
        "OPENBLAS_CORETYPE=Haswell",
        multiple=True,
    ),
]
Html = Annotated[Path | None, Option("Also write the judgement of the library as an HTML page.", "FILE", "judged.html")]
Budget = Annotated[
    str, Option("Judge the library for about this long; all flags and large sizes are tried in any case.", "TIME", "3m")
]
_LONGEST_S = 24 * 3600.0


@dataclass(frozen=True)
class Wanted:
    """What is judged."""

    routines: str | None
    dtype: str | None
    threads: int
    budget: str
    seed: int
    variables: tuple[str, ...]  # NAME=VALUE


@dataclass(frozen=True)
class On:
    """Where it runs."""

    platform: str | None
    runner: str | None
    plugins: tuple[Path, ...]
    jobs: int
    unsafe: bool


def judge(path: Path, wanted: Wanted, on: On, format_: str, html: Path | None) -> None:
    """Judges a library, prints the judgement and writes it as a page.

    Raises SystemExit(1) with findings, UsageError, JobError.
    """
    budget_s = parse_seconds(wanted.budget)
    if not 0 < budget_s <= _LONGEST_S:
        raise UsageError(f"--budget must be above 0 and at most a day; got {wanted.budget}", hint="e.g. --budget 3m")
    if plain := [word for word in wanted.variables if not word.partition("=")[0] or "=" not in word]:
        raise UsageError(
            f"--variable takes NAME=VALUE; got {plain[0]}", hint="e.g. --variable OPENBLAS_CORETYPE=Haswell"
        )
    variables = tuple((name, value) for name, _, value in (word.partition("=") for word in wanted.variables))
    functions = routines.chosen(wanted.routines, _types(wanted.dtype))
    library = binding.find(path.absolute())
    runner, vlens = _reached(library, on)
    if html is not None:
        with _page(html):
            html.open("ab").close()  # before the calls, which take minutes
    judgement = judging.judge(
        judging.Judging(
            library, functions, runner, vlens, wanted.threads, budget_s, wanted.seed, on.jobs, variables, on.unsafe
        ),
        lambda text: screen.echo(text, err=True),
    )
    if html is not None:
        with _page(html):
            html.write_text(judged.page(judgement), encoding="utf-8")
        screen.echo(f"page: {html}", err=True)
    screen.answer(format_, judgement.to_json(), lambda: show(judgement), ok=judgement.ok)


def _page(path: Path) -> AbstractContextManager[None]:
    return of_system(UsageError, f"--html {path} cannot be written", "choose another path")


def _types(text: str | None) -> str:
    """The types of `--dtype`. Raises UsageError."""
    found = [word.strip() for word in text.split(",")] if text is not None else [*routines.TYPES]
    unknown = [word for word in found if word not in [*routines.TYPES]]
    if unknown:
        raise UsageError(f"--dtype takes s, d, c and z with --blas; got {text}", hint="e.g. --dtype s,d")
    return "".join(found)


def _reached(library: binding.BlasLibrary, on: On) -> tuple[Runner, tuple[int, ...]]:
    """Where the library runs, and at which vector lengths (bits). Raises UsageError, JobError."""
    if on.platform is None and on.runner is None:
        if library.arch != host_arch():
            raise UsageError(
                f"--blas {library.path} is for {library.arch}, and this machine is {host_arch()}",
                hint=f"name a platform with {library.arch}; `tensorop platforms list` shows them",
            )
        return Native(), (0,)
    platform = platforms.load(on.platform or "native", on.plugins)
    if library.arch != platform.arch:
        raise UsageError(
            f"--blas {library.path} is for {library.arch}, and platform '{platform.name}' is {platform.arch}",
            hint="choose another --platform; `tensorop platforms list` shows them",
        )
    return backends.start(platform, on.runner, on.plugins), tuple(platform.verify_vlens) or (0,)


def show(found: BlasJudgement) -> None:
    """Shows a judgement as a table and its findings."""
    table = tables.table(None, ["function"], ("calls", "error / bound", "faults"))
    for one in found.functions:
        table.add_row(one.function, str(one.calls), f"{one.ratio:.3f}", str(len(one.findings) or ""))
    tables.console().print(table)
    for remark in found.remarks:
        tables.line(remark, "yellow")
    for how, functions in found.differs.items():
        tables.line(f"differs, no fault: {how}: {', '.join(functions)}")
    for finding in found.findings:
        tables.line("")
        tables.line(f"{finding.function}: {finding.fault}, in {finding.calls} calls", "red")
        if finding.shared:
            tables.line(f"  all of them have: {', '.join(finding.shared)}")
        tables.line(f"  smallest call: {finding.smallest}")
        tables.line(f"  {finding.detail}")
        for line in finding.program.splitlines():
            tables.line(f"    {line}")
    calls = sum(one.calls for one in found.functions)
    end = "no fault was found" if found.ok else f"{len(found.findings)} faults"
    tables.line(f"{found.library.path}: {calls} calls of {len(found.functions)} functions, seed {found.seed}: {end}")
