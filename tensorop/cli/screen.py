"""All output to the screen goes through here. Control characters in texts are made printable."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tensorop.specs.printable import printable


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    click.echo(printable(text), err=err, nl=nl)


def echo_json(value: Any, **how: Any) -> None:
    """Prints one JSON value for `--format json`; its numbers must be finite. how: arguments of json.dumps."""
    echo(json.dumps(value, indent=2, allow_nan=False, **how))


def answer(format_: str, record: object, show: Callable[[], object], *, ok: bool = True) -> None:
    """Prints a command's result, as JSON or by `show`. Raises SystemExit(1) unless ok."""
    if format_ == "json":
        echo_json(record)
    else:
        show()
    if not ok:
        raise SystemExit(1)


class Screen(Console):
    """A rich console that makes texts printable. Its own control codes and colours stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def screen(stderr: bool = False, **how: Any) -> Screen:
    """A console on stdout or stderr."""
    return Screen(stderr=stderr, highlight=False, **how)
