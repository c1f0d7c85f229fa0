"""`judge`: one kernel template or C file, judged as a candidate is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tensorop import tuning
from tensorop.cli import screen, tables
from tensorop.cli.command import Format, Jobs, NewSeed, Plugins, Runner, command
from tensorop.commands import judge as judging
from tensorop.commands.judge import Ruling
from tensorop.errors import UsageError
from tensorop.model.budget import parse_seconds
from tensorop.model.option import Option
from tensorop.model.verdict import Seed
from tensorop.specs import operators, platforms
from tensorop.trial.trial import CALL_TIMEOUT_S

_MOST_CONFIGURATIONS = 64
_LONGEST = 3600.0


@command(
    "judge mine.c.j2 --operator gemm --platform rvv",
    "judge mine.c --operator gemm --platform native --dtype f64 --format json",
    "judge mine.c.j2 --operator gemm --platform native --configurations 10 --shapes 512x512x512,1x1024x1024",
)
def judge(
    file: Annotated[Path, Option(metavar="FILE", positional=True)],
    operator: Annotated[str, Option("What it computes; `tensorop operators list`.", "NAME")],
    platform: Annotated[str, Option("What it is for; `tensorop platforms list`.", "NAME")],
    dtype: Annotated[str | None, Option("Element type; by default the operator's first.", "NAME")] = None,
    shapes: Annotated[
        str | None, Option("What whole calls are measured on; by default one of suite quick.", "SUITE|SHAPE,...")
    ] = None,
    configurations: Annotated[
        int,
        Option(
            "Judged at most: the file's own `seed_configurations`, then legal points spread over its tunables.",
            least=1,
            most=_MOST_CONFIGURATIONS,
        ),
    ] = judging.CONFIGURATIONS,
    timeout: Annotated[
        str, Option("Longest wait for one call that is verified, e.g. 5s.", "TIME")
    ] = f"{CALL_TIMEOUT_S:g}s",
    seed: NewSeed = "0",
    template: Annotated[Path | None, Option("Also writes the template the file was read as.", "OUT")] = None,
    unsafe: Annotated[
        bool, Option("Run it even on a target that cannot confine it (docs/explanation/security.md).")
    ] = False,
    jobs: Jobs = 2,
    runner: Runner = None,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Judge one kernel template (*.c.j2) or C file: gates, compiler, jail, verification, measurement; no search.

    Negative controls come first. The outcome is a stage, a kind, a message and a log; a kernel that passed has its
    figures.

    Exit status: 0 it passed, 1 it did not, 2 wrong usage or a file that cannot be read as a kernel.
    """
    found = operators.load(operator, plugins)
    dtypes = tuning.dtypes(found, dtype) if dtype else found.dtypes[:1]
    if len(dtypes) > 1:
        raise UsageError(f"--dtype {dtype}: one at a time is judged", hint=f"give --dtype {dtypes[0]}")
    patience = parse_seconds(timeout)
    if not 0 < patience <= _LONGEST:
        raise UsageError(f"--timeout {timeout}: expected up to an hour", hint="give e.g. 30s")
    if template is not None:
        text = judging.template_text(file, found)
        try:
            template.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{template}: cannot be written: {error.strerror}", hint="give another place") from None
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
    )
    ruling = judging.judge(submission, lambda text: screen.echo(text, err=True))
    screen.answer(format_, ruling.to_json(), lambda: _show(ruling), ok=ruling.ok)


def _show(ruling: Ruling) -> None:
    tables.show_controls(ruling.controls)
    for remark in ruling.remarks:
        tables.line(remark, "yellow")
    several = "" if ruling.legal == 1 else "s"
    judged = f"{len(ruling.judged)} of {len(ruling.chosen)} chosen ones judged"
    tables.line(f"{ruling.legal} legal configuration{several}, {judged}, seed {ruling.of.seed}")
    for one in ruling.judged:
        tables.line(f"{one.outcome.kind.value}: {one.point}", "" if one.outcome.ok else "red")
        if not one.figures:
            continue
        table = tables.table(None, [""], ("VLEN", one.figures[0].unit, one.figures[0].speed_unit, "of peak"))
        for figure in one.figures:
            share = "-" if figure.of_peak is None else f"{figure.of_peak:.0%}"
            cost, speed = tables.figure(figure.cost), tables.figure(figure.speed)
            table.add_row(f"  {figure.of}", str(figure.vlen or "-"), cost, speed, share)
        tables.console().print(table)
    outcome = ruling.outcome
    if ruling.ok:
        tables.line(f"{ruling.of.file} passes; measured by {ruling.measured_by}")
    else:
        tables.line(f"{ruling.of.file} fails at stage {outcome.where}: {outcome.kind.value}", "red")
        tables.line(outcome.message)
        for line in outcome.log.rstrip().splitlines():
            tables.line(f"  | {line}")
    tables.line(f"next: {ruling.next_step}")
