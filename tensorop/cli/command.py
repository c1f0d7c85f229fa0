"""Makes commands from functions: a parameter's annotation describes its option; its default is the option's default."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import click

from tensorop.errors import UsageError
from tensorop.model.job import Job
from tensorop.model.option import Option

Plugins = Annotated[tuple[Path, ...], Job.options()["plugins"][1]]
Offline = Annotated[bool, Job.options()["offline"][1]]
LibraryPath = Annotated[Path, Option(metavar="DIR|LIB", positional=True)]
Dtypes = Annotated[
    str | None,
    Option("Restrict the command to these element types.", "NAME,...", "f32", shown="all types of the library"),
]
Shapes = Annotated[
    str | None,
    Option(
        "Use these shapes, suites of shapes (`tensorop operators show NAME` lists them), or files of shapes.",
        "SUITE|SHAPE|@FILE,...",
        "64x64x64,quick",
        shown="the operator's first suite",
    ),
]
Routines = Annotated[
    str | None,
    Option(
        "Take these routines of a library of several, with or without the letter of a type.",
        "NAME,...",
        "dtrsm,gemv",
        shown="the operator's own",
    ),
]
Layout = Annotated[
    int, Option("Use the layout with this number; `tensorop operators show NAME` lists them.", "N", "1", least=0)
]
Jobs = Annotated[int, Option("Run up to N processes in parallel.", "N", "4", least=1, most=256)]
FORMAT = Option(
    "Print a table, or one JSON value on stdout. Progress goes to stderr.",
    example="json",
    group="Output",
    choices=("table", "json"),
    name="format",
)
Format = Annotated[str, FORMAT]
Runner = Annotated[
    str | None,
    Option(
        "Run programs on this machine, in an emulator, on a board, or by a backend of your own.",
        "native|qemu|ssh://HOST",
        "ssh://user@board",
        shown="as the platform file says",
    ),
]
NewSeed = Annotated[
    str,
    Option(
        "Seed the verification calls. N draws new calls; a full seed N:SECRET, as a run prints it, repeats its calls.",
        "N|N:SECRET",
        "7",
    ),
]


class _Read(click.ParamType[Any]):
    """A parameter type: `read` converts the text, or raises ValueError with a message for the user."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self._read = name, read

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value  # a default is not text
        try:
            return self._read(value.strip())
        except ValueError as error:
            self.fail(str(error), param, ctx)


def command(*lines: str, name: str | None = None, help: str = "") -> Callable[[Callable[..., None]], click.Command]:
    """Makes a function a command.

    lines: examples of command lines, without `tensorop`; help: help text; empty: the function's docstring
    """

    def made(function: Callable[..., None]) -> click.Command:
        hints = get_type_hints(function, include_extras=True)
        parameters = [
            parameter(one.name, get_args(hints[one.name])[0], one.default, hints[one.name].__metadata__[0])
            for one in inspect.signature(function).parameters.values()
        ]
        text, called = help or inspect.getdoc(function), name or function.__name__
        return click.Command(called, callback=function, params=parameters, help=text, epilog=examples(*lines))

    return made


def parameter(
    name: str, hint: Any, default: Any, option: Option, more: str = "", hidden: bool = False
) -> click.Parameter:
    """The click parameter for an option. hint: its type; more: text appended to its help."""
    types = {hint, *get_args(hint)}
    kind: Any = option.kind or next((one for one in (bool, int, Path) if one in types), str)
    if option.choices:
        kind = click.Choice(option.choices)
    elif kind is Path:
        folder, file = option.must_be != "file", option.must_be != "folder"
        kind = click.Path(path_type=Path, exists=bool(option.must_be), dir_okay=folder, file_okay=file)
    elif kind is int:
        kind = click.IntRange(option.least, option.most)
    elif kind not in (str, bool):
        kind = _Read(option.metavar, kind)
    required = default is inspect.Parameter.empty
    usual = {} if required else {"default": default}
    if option.positional:
        count = -1 if option.multiple else 1
        return click.Argument([name], type=kind, metavar=option.metavar, required=required, nargs=count, **usual)
    spelled = option.name or name.replace("_", "-")
    return click.Option(
        [f"--{spelled}", name],
        type=None if kind is bool else kind,
        is_flag=kind is bool,
        multiple=option.multiple,
        metavar=option.metavar or None,
        required=required,
        show_default=not (option.shown or required or default is None or default is False or default in ("", ())),
        help=option.text(f"--{spelled} {option.example}", more),
        hidden=hidden,
        **usual,
    )


def is_given(name: str) -> bool:
    """True if the command line has this option of the running command."""
    source = click.get_current_context().get_parameter_source(name)
    return source not in (None, click.core.ParameterSource.DEFAULT)


def refuse_given(where: str, options: Mapping[str, str]) -> None:
    """Raises UsageError if the command line has an option without effect. options: click's name -> spelling."""
    useless = [option for name, option in options.items() if is_given(name)]
    if useless:
        verb = "have" if len(useless) > 1 else "has"
        raise UsageError(f"{', '.join(useless)} {verb} no effect on {where}", hint=f"remove {' and '.join(useless)}")


def examples(*lines: str) -> str:
    """The end of a help text: examples of command lines."""
    return "\b\nExamples:\n" + "\n".join(f"  tensorop {line}" for line in lines)
