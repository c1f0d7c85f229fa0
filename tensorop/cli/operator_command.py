"""`tensorop <operator>`: from a wish to a library, with its progress on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_type_hints

import click

from tensorop import tuning
from tensorop.cli import screen, tables
from tensorop.cli.command import FORMAT, examples, is_given, parameter
from tensorop.cli.ctrl_c import INTERRUPTED
from tensorop.cli.progress import follow
from tensorop.model.job import Job
from tensorop.specs import catalog, operators

STOPPED_EARLY = 3  # exit status: the user stopped it, and there is a verified product


def operator_command(name: str, plugins: tuple[Path, ...] = ()) -> click.Command:
    """The command of one operator, whose options are those of a job. plugins: known before the command line is
    parsed."""
    operator = operators.load(name, plugins)
    example = operator.example
    more = {
        "platform": f" Known: {', '.join(catalog.names('platforms', plugins))}.",
        "dtypes": f" {name} has {', '.join(operator.dtypes)}.",
        "shapes": f" Suites: {', '.join(operator.suites)}; shapes are {operator.shapes.help}, e.g. {example}."
        f"  [default: {operator.usual}]",
        "tuner": f" Known: {', '.join(catalog.names('tuners', plugins))}.",
    }
    names = {option.name or of: of for of, (_, option) in Job.options().items()}  # click's of the job's
    types, hidden = get_type_hints(Job), {"c_dtype"} if not operators.serves_devices(operator) else ()
    parameters = [
        parameter(option.name or of, types[field.name], option.default, option, more.get(of, ""), of in hidden)
        for of, (field, option) in Job.options().items()
    ]

    def run(format_: str, **values: Any) -> None:
        given = frozenset(option for option in values if is_given(option))
        job = tuning.job(name, {names[option]: values[option] for option in given}, given)
        try:
            done = follow(job)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted; the same command goes on where it stopped") from None
        screen.answer(format_, done.to_json(), lambda: tables.show_result(done, job.plugins))
        if done.early:
            raise SystemExit(STOPPED_EARLY if done.library else INTERRUPTED)

    text = (
        f"Tune {name} for a platform and make a C library of it: {operator.description}\n\n"
        "Ctrl-C once ends the search, verifies what has passed and packages it; twice ends the job without a product. "
        "The same command again goes on where it stopped.\n\n"
        "Exit status: 0 done, 1 failed, 2 wrong usage, 3 stopped early with a verified product, 130 stopped without "
        "one."
    )
    lines = (
        f"{name}",
        f"{name} --platform rvv --budget 5m",
        f"{name} --platform avx2 --dtype {operator.dtypes[0]} --shapes {example} --out build/mine",
    )
    parameters.append(parameter("format_", str, "table", FORMAT))
    return click.Command(name, callback=run, params=parameters, help=text, epilog=examples(*lines))
