"""`verify`: makes test calls of a library on its target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from tensorop import tuning
from tensorop.cli import judge_blas, screen, tables
from tensorop.cli.command import (
    Dtypes,
    Format,
    Jobs,
    LibraryPath,
    NewSeed,
    Plugins,
    Routines,
    Runner,
    command,
    refuse_given,
)
from tensorop.commands import opened
from tensorop.commands import routines as of_routines
from tensorop.commands import verify as verifying
from tensorop.commands.library_paths import LibraryPaths
from tensorop.commands.opened import Opened
from tensorop.model.option import Option
from tensorop.model.verdict import Seed


@command(
    "verify build/gemm-rvv",
    "verify build/gemm-native --dtype f32 --format json",
    "verify build/blas --routines trsm,dgemv",
)
def verify(
    path: LibraryPath,
    dtype: Dtypes = None,
    routines: Routines = None,
    seed: NewSeed = "0",
    controls: Annotated[
        bool, Option("Check first that verification rejects known-wrong kernels.", name="controls/--no-controls")
    ] = True,
    jobs: Jobs = 2,
    runner: Runner = None,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Verify a library on its target with the full grid of test calls, and on each path of its kernels.

    With --routines, the judge of BLAS libraries makes calls of these routines instead, as `tensorop judge --blas` does.
    """
    each = opened.open_each(path, plugins)
    if routines is not None:
        refuse_given("--routines", {"dtype": "--dtype", "controls": "--controls"})
        _verify_routines(each, routines, runner, format_, jobs=jobs, seed=tuning.seed(seed)[0])
        return
    drawn, shown = Seed.draw(*tuning.seed(seed)), format_ == "table"
    by_kit = opened.kits(each, "verify")
    if by_kit is not None:
        raise SystemExit(0 if by_kit.verify(each[0], format_) else 1)
    record: dict[str, Any] = {"platform": each[0].platform.name, "ok": True, "controls": [], "verdicts": []}
    uncalled = record["uncalled"] = {}
    for found in each:
        name = found.operator.name
        wanted = found.only(tuning.dtypes(found.operator, dtype) if dtype else ())
        wanted.require_fit()
        target = wanted.reach(runner)
        if len(each) > 1 and shown:
            screen.echo(f"{name}:")
        if controls:
            refused = verifying.run_controls(wanted, target, drawn)
            record["controls"] += [{"op": name, **control.to_json()} for control in refused]
            if shown:
                tables.show_controls(refused)
        most_threads = 1
        paths = LibraryPaths(wanted, target, drawn)
        for verdict in verifying.verify(wanted, target, drawn, jobs=jobs, paths=paths):
            most_threads = max(most_threads, verdict.threads)
            record["ok"] &= verdict.ok
            record["verdicts"].append({"op": name, **verdict.to_json()})
            if shown:
                tables.show_verdict(verdict)
        uncalled[name] = paths.uncalled
        for template, why in paths.uncalled.items() if shown else ():
            screen.echo(f"the paths of template '{template}' were not called: {why}")
        if most_threads == 1 and record["ok"] and shown:
            screen.echo(f"multi-threaded calls were not verified: {name} has no test case for them")
    screen.answer(format_, record, lambda: None, ok=bool(record["ok"]))


def _verify_routines(each: Sequence[Opened], text: str, runner: str | None, format_: str, **how: int) -> None:
    """Judges routines by their standard names, and shows the judgement. Raises SystemExit(1) with findings."""
    found = of_routines.library_of_several(each)
    of_routines.of_library(found, text)  # which refuses unknown names
    library, target = of_routines.standard(found.operator, found.library), found.reach(runner)
    assert library is not None
    judgement = of_routines.judged(library, text, target, lambda line: screen.echo(line, err=True), **how)
    screen.answer(format_, judgement.to_json(), lambda: judge_blas.show(judgement), ok=judgement.ok)
