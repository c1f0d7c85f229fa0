"""What every command's help has: examples, and options that many share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from tensorop.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

format_option = click.option(
    "--format",
    "format_",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="json: one JSON value on stdout; progress goes to stderr either way.",
)
plugins_option = click.option(
    "--plugins",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with platforms/, primitives/, templates/, tuners/, backends/ of your own; may be given several times.",
)
runner_option = click.option(
    "--runner",
    metavar="native|qemu|ssh://HOST",
    default=None,
    help="Where programs run, or a backend of your own; by default the platform says.",
)
offline_option = click.option("--offline", is_flag=True, help="Download nothing: use what is in the cache.")
seed_option = click.option(
    "--seed",
    metavar="N|N:SECRET",
    default=None,
    help="Draw the calls from this integer and a new secret, or repeat those of a whole seed as it was printed.",
)
jobs_option = click.option(
    "--jobs", type=click.IntRange(1, 256), default=2, show_default=True, help="Processes side by side."
)


def is_given(name: str) -> bool:
    """Whether the command line has this option of the command that runs."""
    source = click.get_current_context().get_parameter_source(name)
    return source not in (None, click.core.ParameterSource.DEFAULT)


def refuse_given(where: str, options: Mapping[str, str]) -> None:
    """Raises UsageError where one of the options is given, which have no effect there; by click's names for them."""
    useless = [option for name, option in options.items() if is_given(name)]
    if useless:
        raise UsageError(f"{', '.join(useless)}: no effect on {where}", hint=f"leave {' and '.join(useless)} out")


def examples(*lines: str) -> str:
    """A help text's end: command lines as they are typed."""
    return "\b\nExamples:\n" + "\n".join(f"  tensorop {line}" for line in lines)
