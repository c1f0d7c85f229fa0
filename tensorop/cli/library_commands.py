"""`bench`, `verify`, `inspect`, `report`, `doctor`: the commands that look at a library, or at this machine."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.text import Text

from tensorop.cli import options, tables
from tensorop.commands import bench as benching
from tensorop.commands import doctor as doctoring
from tensorop.commands import inspect as inspecting
from tensorop.commands import opened
from tensorop.commands import report as reporting
from tensorop.commands import verify as verifying
from tensorop.errors import UsageError
from tensorop.model.bench import Row
from tensorop.model.verdict import Seed
from tensorop.target import reach

_format = click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
_runner = click.option("--runner", default=None, help="native, qemu or ssh://host; by default the platform's own.")
_library = click.argument("path", metavar="DIR|LIB", type=click.Path(path_type=Path))
_plugins = click.option(
    "--plugins",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Extra plug-in folder.",
)
_offline = click.option("--offline", is_flag=True, help="Use the cache alone.")


def add_to(group: click.Group) -> None:
    """Adds the five commands."""
    for command in (bench, verify, inspect, report, doctor):
        group.add_command(command)


@click.command()
@_library
@click.option(
    "--against", default="openblas", show_default=True, help="Baselines, e.g. openblas,openblas@0.3.29,onednn."
)
@click.option("--shapes", default="quick", show_default=True, help="A suite or MxNxK,...")
@click.option("--dtype", default=None, help="Element types; by default those the library holds.")
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True)
@click.option("--layout", type=click.IntRange(0), default=0, show_default=True, help="Number of the operator's layout.")
@click.option("--fast", is_flag=True, help="Fewer rounds; a model's best fit without its interval.")
@click.option("--jobs", type=click.IntRange(1, 256), default=2, show_default=True, help="Emulators side by side.")
@click.option("--fail-below", type=float, default=None, metavar="X", help="Exit 1 when a ratio is under X.")
@_runner
@_plugins
@_offline
@_format
def bench(
    path: Path,
    against: str,
    shapes: str,
    dtype: str | None,
    threads: int,
    layout: int,
    fast: bool,
    jobs: int,
    fail_below: float | None,
    runner: str | None,
    plugins: tuple[Path, ...],
    offline: bool,
    format_: str,
) -> None:
    """Compare a library with baselines: interleaved ratios, or modelled cycles of both."""
    found = opened.open_product(path, plugins)
    names = [name.strip() for name in against.split(",") if name.strip()]
    if not names:
        raise UsageError("--against names no baseline", hint="e.g. --against openblas")
    wanted = options.shapes(found.operator, shapes)
    if shapes in found.operator.suites:
        wanted = benching.suite_of(found.operator, shapes, reach(found.platform, runner))
    progress = tables.console(stderr=True)

    def tell(row: Row) -> None:
        ratios = "  ".join(f"{ratio.value:.2f}x {name}" for name, ratio in row.ratios.items())
        progress.print(Text(f"  {row.shape} {row.dtype}: {ratios or tables.figure(row.ours)}"))

    result = benching.bench(
        path,
        against=names,
        shapes=wanted,
        dtypes=options.dtypes(found.operator, dtype) if dtype else None,
        threads=threads,
        runner=runner,
        layout=layout,
        final=not fast,
        plugins=plugins,
        offline=offline or None,
        jobs=jobs,
        tell=tell,
    )
    if format_ == "json":
        click.echo(json.dumps(result.to_json(), indent=2, allow_nan=False))
    else:
        tables.show_bench(result)
    if fail_below is not None:
        below = result.below(fail_below)
        for row, name, ratio in below:
            click.echo(f"below {fail_below:g}: {row.shape} {row.dtype} is {ratio:.3f} of {name}", err=True)
        if not any(row.ratios for row in result.rows):
            click.echo(f"no ratio could be measured, so none is at least {fail_below:g}", err=True)
            raise SystemExit(1)
        if below:
            raise SystemExit(1)


@click.command()
@_library
@click.option("--dtype", default=None, help="Element types; by default those the library holds.")
@click.option("--seed", default=None, help="Replay the very calls of an earlier verdict: its seed as printed.")
@click.option("--controls/--no-controls", default=True, show_default=True, help="Judge known-bad kernels first.")
@click.option("--jobs", type=click.IntRange(1, 256), default=2, show_default=True)
@_runner
@_plugins
@_format
def verify(
    path: Path,
    dtype: str | None,
    seed: str | None,
    controls: bool,
    jobs: int,
    runner: str | None,
    plugins: tuple[Path, ...],
    format_: str,
) -> None:
    """Judge a library on the whole correctness grid, on its target."""
    found = opened.open_product(path, plugins)
    dtypes = options.dtypes(found.operator, dtype) if dtype else found.dtypes
    drawn = _seed(seed)
    refused = verifying.run_controls(path, dtypes, runner, seed=drawn, plugins=plugins) if controls else ()
    if controls and format_ == "table":
        tables.show_controls(refused)
    verdicts = []
    for verdict in verifying.verify(path, dtypes, runner, seed=drawn, plugins=plugins, jobs=jobs):
        verdicts.append(verdict)
        if format_ == "table":
            tables.show_verdict(verdict)
    if format_ == "json":
        record = {
            "platform": found.platform.name,
            "ok": all(v.ok for v in verdicts),
            "controls": [
                {"name": c.name, "dtype": c.dtype, "fault": c.fault, "ended": c.outcome.kind.value} for c in refused
            ],
            "verdicts": [tables.verdict_record(v) for v in verdicts],
        }
        click.echo(json.dumps(record, indent=2, allow_nan=False))
    if not all(v.ok for v in verdicts):
        raise SystemExit(1)


def _seed(text: str | None) -> Seed:
    try:
        return Seed.parse(text) if text else Seed.draw()
    except ValueError:
        raise UsageError(f"'{text}' is no seed", hint="give it as a verdict prints it: PUBLIC:SECRET") from None


@click.command()
@_library
@_format
def inspect(path: Path, format_: str) -> None:
    """Show the provenance card inside a library."""
    card = inspecting.inspect(path)
    if format_ == "json":
        click.echo(json.dumps(card, indent=2))
    else:
        tables.show_card(card)


@click.command()
@click.argument("path", metavar="DIR", type=click.Path(path_type=Path))
@_plugins
@_format
def report(path: Path, plugins: tuple[Path, ...], format_: str) -> None:
    """Write share/tensorop/report.html: one page with every figure of a run, for any browser, without network."""
    record, page = reporting.report(path, plugins=plugins)
    if format_ == "json":
        click.echo(json.dumps(record, indent=2, allow_nan=False))
    else:
        click.echo(f"{page}")


@click.command()
@click.option("--platform", default=None, help="What a job on this platform needs; by default what any job may need.")
@_runner
@_plugins
@_format
def doctor(platform: str | None, runner: str | None, plugins: tuple[Path, ...], format_: str) -> None:
    """Say what is there, what is missing and how to get it; compile and run something tiny."""
    health = doctoring.doctor(platform, runner, plugins=plugins)
    if format_ == "json":
        click.echo(json.dumps(health.to_json(), indent=2))
    else:
        tables.show_health(health)
    if not health.ok:
        raise SystemExit(1)
