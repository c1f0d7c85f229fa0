"""`tensorop <operator>`: tunes an operator and builds a library, with progress on the screen."""

from __future__ import annotations

from collections.abc import Mapping
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

GROUPS = ("Target", "Search", "Output", "Language model", "Other")  # headings of options in the help
STOPPED_EARLY = 3  # exit status: the user stopped the run, and there is a verified product


class GroupedCommand(click.Command):
    """A command whose help shows options under headings. groups: parameter -> heading."""

    def __init__(self, groups: Mapping[str, str], *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for one in self.get_params(ctx):
            if record := one.get_help_record(ctx):
                records[self.groups.get(one.name or "") or GROUPS[-1]].append(record)
        for group, of_group in records.items():
            with formatter.section(group):
                formatter.write_dl(of_group)


def operator_command(name: str, plugins: tuple[Path, ...] = ()) -> GroupedCommand:
    """The command of one operator. Its options are those of a job.

    plugins: plug-in folders, found before the command line is parsed
    """
    operator = operators.load(name, plugins)
    example = operator.example
    more = {
        "platform": f" Platforms: {', '.join(catalog.names('platforms', plugins))}. Example: --platform rvv.",
        "dtypes": f" {name} supports {', '.join(operator.dtypes)}.",
        "shapes": f" Suites: {', '.join(operator.suites)}. A shape is {operator.shapes.help}."
        f" Example: --shapes {operator.usual},{example}.  [default: {operator.usual}]",
        "tuner": f" Tuners: {', '.join(catalog.names('tuners', plugins))}.",
    }
    names = {option.name or of: of for of, (_, option) in Job.options().items()}  # click's name -> the job's name
    types, hidden = (
        get_type_hints(Job),
        {"c_dtype", "math", "epilogue"} if not operators.serves_devices(operator) else (),
    )
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
            raise KeyboardInterrupt("interrupted; run the same command again to resume") from None
        screen.answer(format_, done.to_json(), lambda: tables.show_result(done, job.plugins))
        if done.early:
            raise SystemExit(STOPPED_EARLY if done.library else INTERRUPTED)

    text = (
        f"Tune {name} and build a C library: {operator.description}\n\n"
        "Press Ctrl-C once to end the search early: the best kernels so far are verified and packaged. Press it twice "
        "to stop without a library. Run the same command again to resume.\n\n"
        "Exit status: 0 done, 1 failed, 2 wrong usage, 3 stopped early with a verified library, 130 stopped without "
        "a library."
    )
    lines = (
        f"{name}",
        f"{name} --platform rvv --budget 5m",
        f"{name} --platform avx2 --dtype {operator.dtypes[0]} --shapes {example} --out build/mine",
    )
    parameters.append(parameter("format_", str, "table", FORMAT))
    groups = {option.name or of: option.group for of, (_, option) in Job.options().items()}
    return GroupedCommand(
        groups | {"format_": FORMAT.group},
        name,
        callback=run,
        params=parameters,
        help=text,
        short_help=f"Tune {name} for a platform and build a C library.",
        epilog=examples(*lines),
    )
