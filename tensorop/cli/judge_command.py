"""`judge`: one kernel template or C file, judged as a candidate is."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from tensorop.cli import options, screen, tables
from tensorop.cli.helps import examples, format_option, jobs_option, plugins_option, runner_option, seed_option
from tensorop.commands import judge as judging
from tensorop.commands.judge import Ruling
from tensorop.errors import UsageError
from tensorop.model.budget import parse_seconds
from tensorop.specs import operators
from tensorop.trial.trial import CALL_TIMEOUT_S

_MOST_CONFIGURATIONS = 64
_LONGEST = 3600.0


@click.command(
    epilog=examples(
        "judge mine.c.j2 --operator gemm --platform rvv",
        "judge mine.c --operator gemm --platform native --dtype f64 --format json",
        "judge mine.c.j2 --operator gemm --platform native --configurations 10 --shapes 512x512x512,1x1024x1024",
    )
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--operator", required=True, metavar="NAME", help="What it computes; `tensorop operators list`.")
@click.option("--platform", required=True, metavar="NAME", help="What it is for; `tensorop platforms list`.")
@click.option("--dtype", metavar="NAME", default=None, help="Element type; by default the operator's first.")
@click.option(
    "--shapes",
    metavar="SUITE|SHAPE,...",
    default=None,
    help="What whole calls are measured on; by default one of suite quick.",
)
@click.option(
    "--configurations",
    type=click.IntRange(1, _MOST_CONFIGURATIONS),
    default=judging.CONFIGURATIONS,
    show_default=True,
    help="Judged at most: the file's own `seed_configurations`, then legal points spread over its tunables.",
)
@click.option(
    "--timeout",
    metavar="TIME",
    default=None,
    help=f"Longest wait for one call that is verified, e.g. 5s.  [default: {CALL_TIMEOUT_S:g}s]",
)
@seed_option
@click.option(
    "--template", type=click.Path(path_type=Path), metavar="OUT", help="Also writes the template the file was read as."
)
@click.option("--unsafe", is_flag=True, help="Run it even on a target that cannot confine it (docs/security.md).")
@jobs_option
@runner_option
@plugins_option
@format_option
def judge(
    file: Path,
    operator: str,
    platform: str,
    dtype: str | None,
    shapes: str | None,
    configurations: int,
    timeout: str | None,
    seed: str | None,
    template: Path | None,
    unsafe: bool,
    jobs: int,
    runner: str | None,
    plugins: tuple[Path, ...],
    format_: str,
) -> None:
    """Judge one kernel template (*.c.j2) or C file: gates, compiler, jail, verification, measurement; no search.

    Negative controls come first. The outcome is a stage, a kind, a message and a log; a kernel that passed has its
    figures.

    Exit status: 0 it passed, 1 it did not, 2 wrong usage or a file that cannot be read as a kernel.
    """
    found = operators.load(operator, plugins)
    dtypes = options.dtypes(found, dtype) if dtype else found.dtypes[:1]
    if len(dtypes) > 1:
        raise UsageError(f"--dtype {dtype}: one at a time is judged", hint=f"give --dtype {dtypes[0]}")
    patience = parse_seconds(timeout) if timeout else CALL_TIMEOUT_S
    if not 0 < patience <= _LONGEST:
        raise UsageError(f"--timeout {timeout}: expected up to an hour", hint="give e.g. 30s")
    if template is not None:
        text = judging.template_text(file, found)
        try:
            template.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{template}: cannot be written: {error.strerror}", hint="give another place") from None
    ruling = judging.judge(
        file,
        operator,
        platform,
        dtypes[0],
        options.shapes(found, shapes) if shapes else (),
        configurations=configurations,
        call_timeout_s=patience,
        runner=runner,
        seed=options.seed(seed),
        plugins=plugins,
        jobs=jobs,
        unsafe=unsafe,
        tell=lambda said: screen.echo(said, err=True),
    )
    if format_ == "json":
        screen.echo_json(ruling.to_json())
    else:
        _show(ruling)
    if not ruling.ok:
        raise SystemExit(1)


def _show(ruling: Ruling) -> None:
    tables.show_controls(ruling.controls)
    out = tables.console()
    for remark in ruling.remarks:
        out.print(Text(remark, "yellow"), soft_wrap=True)
    several = "" if ruling.legal == 1 else "s"
    judged = f"{len(ruling.judged)} of {len(ruling.chosen)} chosen ones judged"
    out.print(Text(f"{ruling.legal} legal configuration{several}, {judged}, seed {ruling.seed}"))
    for one in ruling.judged:
        out.print(Text(f"{one.outcome.kind.value}: {one.point}", "" if one.outcome.ok else "red"), soft_wrap=True)
        if not one.figures:
            continue
        table = Table(box=None, pad_edge=False)
        for name in ("", "VLEN", one.figures[0].unit, one.figures[0].speed_unit, "of peak"):
            table.add_column(name, justify="left" if not name else "right")
        for figure in one.figures:
            share = "-" if figure.of_peak is None else f"{figure.of_peak:.0%}"
            cost, speed = tables.figure(figure.cost), tables.figure(figure.speed)
            table.add_row(f"  {figure.of}", str(figure.vlen or "-"), cost, speed, share)
        out.print(table)
    outcome = ruling.outcome
    if ruling.ok:
        out.print(Text(f"{ruling.file} passes; measured by {ruling.measured_by}"), soft_wrap=True)
    else:
        out.print(Text(f"{ruling.file} fails at stage {outcome.where}: {outcome.kind.value}", "red"), soft_wrap=True)
        out.print(Text(outcome.message), soft_wrap=True)
        if outcome.log:
            out.print(Text("\n".join(f"  | {line}" for line in outcome.log.rstrip().splitlines())), soft_wrap=True)
    out.print(Text(f"next: {ruling.next_step}"), soft_wrap=True)
