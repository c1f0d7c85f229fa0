"""`tensorop <operator>`: from a wish to a library, with its progress on the screen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from tensorop import pipeline
from tensorop.cli import options, tables
from tensorop.cli.catalog_commands import plugins_option
from tensorop.cli.progress import follow
from tensorop.errors import UsageError
from tensorop.model.job import Job
from tensorop.specs import operators
from tensorop.tuner.budget import parse_seconds


def operator_command(name: str) -> click.Command:
    """The command of one operator."""

    @click.command(name, help=f"Tune {name} for a platform and make a library of it.")
    @click.option("--platform", default="native", show_default=True, help="See `tensorop platforms list`.")
    @click.option("--dtype", default="f32,f64", show_default=True, help="Element types.")
    @click.option("--shapes", default="quick", show_default=True, help="A suite or MxNxK,...")
    @click.option("--budget", default=None, help="Search time, e.g. 90s or 3m.  [default: 2m]")
    @click.option("--trials", type=int, default=None, help="Search trials instead of a time.")
    @click.option("--tuner", default="bayes", show_default=True, help="See `tensorop tuners list`.")
    @click.option("--author", type=click.Choice(["offline", "llm", "replay"]), default="offline", show_default=True)
    @click.option("--jobs", type=click.IntRange(1, 256), default=2, show_default=True, help="Builds side by side.")
    @click.option("--seed", type=int, default=0, show_default=True)
    @click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True)
    @click.option("--runner", default=None, help="native, qemu, null or ssh://host; by default the platform's.")
    @plugins_option
    @click.option("--offline", is_flag=True, help="Use the cache alone.")
    @click.option("--out", type=click.Path(path_type=Path), default=None, help="[default: build/<op>-<platform>]")
    @click.option("--fresh", is_flag=True, help="Forget what --out holds and start over.")
    @click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
    def command(**given: Any) -> None:
        job = _job(name, given)
        try:
            done = follow(pipeline.run(job))
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted; the same command goes on where it stopped") from None
        if given["format_"] == "json":
            click.echo(json.dumps(done.to_json(), indent=2))
        else:
            tables.show_result(done)

    return command


def _job(name: str, given: dict[str, Any]) -> Job:
    operator = operators.load(name, given["plugins"])
    if given["budget"] is not None and given["trials"] is not None:
        raise UsageError("both --budget and --trials are given", hint="give one of them")
    if given["trials"] is not None and given["trials"] < 1:
        raise UsageError(f"--trials {given['trials']}: a search needs at least one trial", hint="give --trials 50, say")
    seconds = parse_seconds(given["budget"]) if given["budget"] else (None if given["trials"] else 120.0)
    if seconds is not None and seconds <= 0:
        raise UsageError(f"--budget {given['budget']}: no time at all", hint="give e.g. --budget 2m")
    return Job(
        operator=name,
        platform=given["platform"],
        dtypes=options.dtypes(operator, given["dtype"]),
        shapes=options.shapes(operator, given["shapes"]),
        suite=given["shapes"],
        budget_s=seconds,
        trials=given["trials"],
        tuner=given["tuner"],
        author=given["author"],
        jobs=given["jobs"],
        seed=given["seed"],
        threads=given["threads"],
        runner=given["runner"],
        plugins=given["plugins"],
        offline=given["offline"],
        out=given["out"] or Path("build") / f"{name}-{given['platform']}",
        fresh=given["fresh"],
    )
