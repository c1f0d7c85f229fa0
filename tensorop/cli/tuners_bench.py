"""`tuners bench`: search strategies compared on recorded spaces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tensorop.cli import screen, tables
from tensorop.cli.command import Format, Jobs, Plugins, command
from tensorop.commands import replay
from tensorop.model.bench import Span
from tensorop.model.option import Option
from tensorop.space import strategy


@command(
    "tuners bench",
    "tuners bench --tuner grid --seeds 10",
    "tuners bench --tuner mine --plugins mine --space my-space.jsonl.gz",
    name="bench",
)
def bench(
    tuners: Annotated[
        tuple[str, ...], Option("May be given several times; by default all.", "NAME", multiple=True, name="tuner")
    ] = (),
    spaces: Annotated[
        tuple[Path, ...],
        Option(
            "A recorded space; may be given several times. By default those that are shipped.",
            must_be="file",
            multiple=True,
            name="space",
        ),
    ] = (),
    seeds: Annotated[int, Option("Searches of each.", least=2)] = replay.SEEDS,
    jobs: Jobs = 2,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Replay recorded spaces and count the trials until a configuration is within 5 % and 1 % of the best.

    The table has the median over the seeds with a 95 % bootstrap interval, and the time that `ask` and `tell` take. It
    also has the speedup over random search: a geometric mean over the spaces where random search needs 30 trials or
    more.
    """
    found = replay.compare(
        tuners or strategy.names(plugins),
        spaces or replay.shipped(),
        seeds,
        plugins,
        jobs,
        lambda text: screen.echo(text, err=True),
    )
    if format_ == "json":
        screen.echo_json(found.to_json())
        return
    for near in found.hard:
        numbers = (*found.spaces, "fewer than random", "ask + tell, ms")
        table = tables.table(f"trials to {near} of the best", ["tuner"], numbers)
        for row in found.rows:
            each = (_figure(row.trials[space][near], ".0f") for space in found.spaces)
            took = "" if row.ask_ms is None else f"{row.ask_ms:.1f}"
            table.add_row(row.tuner, *each, _figure(row.over[near], ".2f"), took)
        tables.console().print(table)
        names = ", ".join(found.hard[near]) or "none"
        tables.line(f"the mean is over spaces where chance needs {replay.HARD} trials or more: {names}\n")


def _figure(interval: Span | None, form: str) -> str:
    if interval is None:
        return ""
    if interval.value >= replay.MOST:
        return f">= {replay.MOST}"
    return f"{interval.value:{form}} ({interval.low:{form}}-{interval.high:{form}})"
