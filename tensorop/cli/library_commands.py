"""`inspect`, `report` and `doctor`: of libraries and machines. COMMANDS has those of all files of this kind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tensorop.cli import screen, tables
from tensorop.cli.bench_command import bench
from tensorop.cli.command import Format, LibraryPath, Plugins, Runner, command
from tensorop.cli.explain_command import explain
from tensorop.cli.judge_command import judge
from tensorop.cli.preload_command import preload
from tensorop.cli.prompt_command import prompt
from tensorop.cli.record_command import record
from tensorop.cli.verify_command import verify
from tensorop.commands import doctor as doctoring
from tensorop.commands import opened
from tensorop.commands import report as reporting
from tensorop.errors import JobError
from tensorop.model.option import Option


@command("inspect build/gemm-rvv", "inspect build/gemm-rvv/lib/libtensorop_gemm.so --format json")
def inspect(
    path: LibraryPath,
    trees: Annotated[bool, Option("Print the dispatch trees too: which variant serves which shape.")] = False,
    format_: Format = "table",
) -> None:
    """Show how a library was made.

    Every library contains its provenance card: platform, compiler, tuned kernels and measurements. For a product, the
    command shows the card of each library.
    """
    cards = opened.cards(path)
    if format_ == "json":
        screen.echo_json(cards if len(cards) > 1 else next(iter(cards.values())))
    else:
        try:
            for text in (text for card in cards.values() for text in tables.card_lines(card, trees)):
                tables.line(text)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise JobError(
                f"the provenance card of {path} is damaged: {type(error).__name__}: {error!s:.200}",
                hint="use --format json to see its raw content, or build the library again",
            ) from None


@command("report build/gemm-rvv", "report build/gemm-rvv --format json")
def report(
    path: Annotated[Path, Option(metavar="DIR", positional=True)],
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Write the HTML report of a run.

    The report is DIR/share/tensorop/report.html, one file that any browser shows without network. A run already writes
    it; run this command after `bench --threads` or with a newer version of tensorop.
    """
    found, page = reporting.report(path, plugins=plugins)
    if format_ == "json":
        screen.echo_json(found.to_json())
    else:
        screen.echo(f"{page}")
        if lacking := found.absent.get("operator and platform"):
            screen.echo("the report is incomplete: " + lacking.replace("\n", "; "), err=True)


_ToBring = Annotated[
    str | None, Option("Check what this platform needs.", "NAME", "rvv", shown="what any platform may need")
]


@command("doctor", "doctor --platform rvv", "doctor --format json")
def doctor(platform: _ToBring = None, runner: Runner = None, plugins: Plugins = (), format_: Format = "table") -> None:
    """Check that this machine has what you need.

    The command lists each tool, shows how to get the missing ones, and builds and runs a small test program.
    """
    health = doctoring.doctor(platform, runner, plugins=plugins)
    screen.answer(format_, health.to_json(), lambda: tables.show_health(health), ok=health.ok)


COMMANDS = (bench, judge, verify, inspect, explain, report, record, preload, doctor, prompt)
