"""`judge`: checks and measures one kernel template or C file like a candidate, or checks any BLAS library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from tensorop import tuning
from tensorop.cli import judge_blas, screen, tables
from tensorop.cli.command import Format, Jobs, NewSeed, Plugins, Runner, command, refuse_given
from tensorop.commands import judge as judging
from tensorop.commands.judge import Ruling
from tensorop.errors import UsageError, of_system
from tensorop.measure import statistics
from tensorop.model.budget import parse_seconds
from tensorop.model.hot_loop import HotLoop
from tensorop.model.option import Option
from tensorop.model.verdict import Seed
from tensorop.specs import operators, platforms
from tensorop.trial.evaluator import CALL_TIMEOUT_S

_MOST_CONFIGURATIONS = 64
_LONGEST = 3600.0


@command(
    "judge mine.c.j2 --operator gemm --platform rvv",
    "judge mine.c --operator gemm --platform native --dtype f64 --format json",
    "judge mine.c --trusted --operator gemm --platform native",
    "judge mine.c.j2 --operator gemm --platform native --configurations 10 --shapes 512x512x512,1x1024x1024",
    "judge --blas libopenblas.so --routines dsyrk,trsm --budget 3m",
)
def judge(
    file: Annotated[Path | None, Option(metavar="[FILE]", positional=True)] = None,
    operator: Annotated[
        str | None, Option("Name the operator it computes; see `tensorop operators list`.", "NAME", "gemm")
    ] = None,
    platform: Annotated[
        str | None,
        Option(
            "Name the platform it runs on; see `tensorop platforms list`.",
            "NAME",
            "rvv",
            shown="with --blas: this machine",
        ),
    ] = None,
    blas: judge_blas.Blas = None,
    routines: judge_blas.Routines = None,
    dtype: Annotated[
        str | None,
        Option(
            "Use this element type; with --blas, these of s, d, c and z.",
            "NAME",
            "f64",
            shown="the operator's first type; with --blas: all four",
        ),
    ] = None,
    threads: judge_blas.Threads = 2,
    budget: judge_blas.Budget = "3m",
    variable: judge_blas.Variables = (),
    html: judge_blas.Html = None,
    shapes: Annotated[
        str | None,
        Option(
            "Measure whole calls of these shapes.", "SUITE|SHAPE|@FILE,...", "512x512x512", shown="one of suite quick"
        ),
    ] = None,
    configurations: Annotated[
        int,
        Option(
            "Check at most N configurations: first the `seed_configurations` of the file, then others spread over its "
            "tunables.",
            "N",
            "10",
            least=1,
            most=_MOST_CONFIGURATIONS,
        ),
    ] = judging.CONFIGURATIONS,
    timeout: Annotated[
        str, Option("Wait at most this long for one verified call.", "TIME", "5s")
    ] = f"{CALL_TIMEOUT_S:g}s",
    seed: NewSeed = "0",
    template: Annotated[
        Path | None, Option("Also write the kernel template that the file was read as.", "OUT", "mine.c.j2")
    ] = None,
    trusted: Annotated[
        bool,
        Option(
            "Take C of your own, with intrinsics, functions and headers: no gate reads it, and it is compared with the "
            "operator's baselines."
        ),
    ] = False,
    unsafe: Annotated[
        bool, Option("Run it even where the target cannot sandbox it (docs/explanation/security.md).")
    ] = False,
    jobs: Jobs = 2,
    runner: Runner = None,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Check and measure one kernel file, without a search; or check any BLAS library, with --blas.

    FILE is a kernel template (*.c.j2), or a C file of statements over primitives; with --trusted it is any C. It is
    scanned, compiled, run in a sandbox, verified and measured as a candidate of a search is. Before it is run, the
    command checks that verification rejects known-wrong kernels. If the kernel fails, you see the stage, the kind of
    failure, a message and a log.

    With --blas, the functions of a shared library are called by their CBLAS and Fortran names, in a sandbox. Their
    results are compared with those of a wider type. You see each kind of fault of a function once, with the smallest
    call that shows it and a C program for a bug report.

    Exit status: 0 the kernel or library passed, 1 it failed, 2 wrong usage or a file that cannot be read or loaded.
    """
    if blas is not None:
        given = {"file": "FILE", "operator": "--operator", "shapes": "--shapes", "template": "--template",
                 "configurations": "--configurations", "timeout": "--timeout", "trusted": "--trusted"}  # fmt: skip
        refuse_given("--blas", given)
        on = judge_blas.On(platform, runner, plugins, jobs, unsafe)
        judge_blas.judge(
            blas, judge_blas.Wanted(routines, dtype, threads, budget, tuning.seed(seed)[0], variable), on, format_, html
        )
        return
    refuse_given(
        "the judgement of a kernel",
        {
            "routines": "--routines",
            "threads": "--threads",
            "budget": "--budget",
            "variable": "--variable",
            "html": "--html",
        },
    )
    if file is None or operator is None or platform is None:
        absent = [n for n, v in (("FILE", file), ("--operator", operator), ("--platform", platform)) if v is None]
        raise UsageError(
            f"missing {', '.join(absent)}", hint="give FILE, --operator and --platform, or --blas LIB for a library"
        )
    found = operators.load(operator, plugins)
    dtypes = tuning.dtypes(found, dtype) if dtype else found.dtypes[:1]
    if len(dtypes) > 1:
        raise UsageError(f"--dtype takes one element type here; got {dtype}", hint=f"e.g. --dtype {dtypes[0]}")
    patience = parse_seconds(timeout)
    if not 0 < patience <= _LONGEST:
        raise UsageError(f"--timeout must be above 0 and at most an hour; got {timeout}", hint="e.g. --timeout 30s")
    if trusted and template is not None:
        raise UsageError(
            "--template and --trusted exclude each other: trusted C does not become a template",
            hint="remove one of them",
        )
    if template is not None:
        text = judging.template_text(file, found)
        with of_system(UsageError, f"--template {template} cannot be written", "choose another path"):
            template.write_text(text, encoding="utf-8")
    submission = judging.Submission(
        file,
        found,
        platforms.load(platform, plugins),
        dtypes[0],
        tuning.shapes(found, shapes) if shapes else (),
        configurations,
        patience,
        Seed.draw(*tuning.seed(seed)),
        runner,
        plugins,
        jobs,
        unsafe,
        trusted,
    )
    ruling = judging.judge(submission, lambda text: screen.echo(text, err=True))
    screen.answer(format_, ruling.to_json(), lambda: _show(ruling), ok=ruling.ok)


def _show_loop(loop: HotLoop) -> None:
    """The stalls of the hottest loop, or the ports that it keeps busy, by instruction."""
    if not loop.runs:
        _show_ports(loop)
        return
    tables.line(f"  hottest loop of the micro-kernel: {loop.runs} runs, {loop.part:.0%} of all stall cycles")
    table = tables.table(None, ["    instruction", "waits for"], ("cycles",))
    for one in loop.instructions:
        causes = sorted(one.stalls.items(), key=lambda item: -item[1])
        why = ", ".join(cause.replace("_", " ") for cause, cycles in causes if cycles)
        waits = sum(one.stalls.values())
        table.add_row(f"    {escape(one.text)}", why, f"{waits:.2f}" if waits else "")
    tables.console().print(table)


def _show_ports(loop: HotLoop) -> None:
    if (found := loop.analysis) is None:
        tables.line(f"  innermost loop of the micro-kernel: not analysed: {loop.unanalysed}")
        return
    many = f"{found.cycles:.1f} cycles an iteration, {found.once:.0f} alone"
    tables.line(f"  innermost loop of the micro-kernel, by {found.by}: {many}, busiest port {found.busiest:.1f}")
    table = tables.table(None, ["    instruction", "cycles on ports"], ())
    for one in loop.instructions:
        busy = " ".join(f"{port} {cycles:.2f}" for port, cycles in one.ports.items() if cycles)
        table.add_row(f"    {escape(one.text)}", busy)
    tables.console().print(table)


def _show(ruling: Ruling) -> None:
    if ruling.controls:
        tables.show_controls(ruling.controls)
    for remark in ruling.remarks:
        tables.line(remark, "yellow")
    several = "" if ruling.legal == 1 else "s"
    judged = f"checked {len(ruling.judged)} of {len(ruling.chosen)} selected"
    tables.line(f"{ruling.legal} legal configuration{several}, {judged}, seed {ruling.of.seed}")
    for one in ruling.judged:
        tables.line(f"{one.outcome.kind.value}: {one.point}", "" if one.outcome.ok else "red")
        if not one.figures:
            continue
        against = list(dict.fromkeys(name for figure in one.figures for name in figure.ratios))
        units = one.figures[0].unit, one.figures[0].speed_unit
        table = tables.table(None, [""], ("VLEN", *units, "of peak", *against))
        for figure in one.figures:
            share = statistics.of_peak(figure.of_peak) or "-"
            cost, speed = tables.figure(figure.cost), tables.figure(figure.speed)
            ratios = (f"{figure.ratios[name]:.2f}" if name in figure.ratios else "-" for name in against)
            table.add_row(f"  {figure.of}", str(figure.vlen or "-"), cost, speed, share, *ratios)
        tables.console().print(table)
        if one.hot_loop is not None and one is ruling.judged[0]:
            _show_loop(one.hot_loop)
    outcome = ruling.outcome
    if ruling.ok:
        tables.line(f"{ruling.of.file} passed; measured by {ruling.measured_by}")
    else:
        tables.line(f"{ruling.of.file} failed at stage {outcome.where}: {outcome.kind.value}", "red")
        tables.line(outcome.message)
        for line in outcome.log.rstrip().splitlines():
            tables.line(f"  | {line}")
    tables.line(f"next: {ruling.next_step}")
