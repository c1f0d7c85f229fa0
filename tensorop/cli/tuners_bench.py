"""`tuners bench`: compares search strategies on recorded spaces."""

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
    "tuners bench --tuner grid --batch 16",
    "tuners bench --tuner mine --plugins mine --space my-space.jsonl.gz",
    name="bench",
)
def bench(
    tuners: Annotated[
        tuple[str, ...],
        Option("Compare this tuner. You may repeat it.", "NAME", "grid", multiple=True, name="tuner", shown="all"),
    ] = (),
    spaces: Annotated[
        tuple[Path, ...],
        Option(
            "Search this recorded space. You may repeat it.",
            "FILE",
            "my-space.jsonl.gz",
            must_be="file",
            multiple=True,
            name="space",
            shown="those that are shipped",
        ),
    ] = (),
    seeds: Annotated[int, Option("Run N searches per tuner and space.", "N", "10", least=2)] = replay.SEEDS,
    batch: Annotated[
        int, Option("Ask a tuner for N points before you give it their costs.", "N", "16", least=1, most=256)
    ] = 1,
    jobs: Jobs = 2,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Compare search strategies on recorded search spaces.

    The command counts the trials until a search finds a configuration that reaches 95 % and 99 % of the best speed. The
    tables show the median over the seeds with a 95 % bootstrap interval, and how many times fewer trials that is than
    with random search. That factor is the geometric mean over spaces where random search needs 30 trials or more.
    Random search itself runs with 200 seeds at least. The last column is the time that the
    tuner itself takes per trial.
    """
    found = replay.compare(
        tuners or strategy.names(plugins),
        spaces or replay.shipped(),
        seeds,
        plugins,
        jobs,
        lambda text: screen.echo(text, err=True),
        batch,
    )
    if format_ == "json":
        screen.echo_json(found.to_json())
        return
    for near in found.hard:
        numbers = (*found.spaces, "fewer than random", "tuner's own time, ms")
        title = f"trials to reach {near} of the best speed, batches of {found.batch}"
        table = tables.table(title, ["tuner"], numbers)
        for row in found.rows:
            each = (_figure(row.trials[space][near], ".0f") for space in found.spaces)
            took = "" if row.ask_ms is None else f"{row.ask_ms:.1f}"
            table.add_row(row.tuner, *each, _figure(row.over[near], ".2f"), took)
        tables.console().print(table)
        names = ", ".join(found.hard[near]) or "none"
        tables.line(
            f"'fewer than random' is the mean over spaces where random search needs {replay.HARD} trials: {names}\n"
        )


def _figure(interval: Span | None, form: str) -> str:
    if interval is None:
        return ""
    if interval.value >= replay.MOST:
        return f">= {replay.MOST}"
    return f"{interval.value:{form}} ({interval.low:{form}}-{interval.high:{form}})"
