"""The command line: `tensorop <operator>` makes a library; the other commands inspect a library or the tool."""

from __future__ import annotations

import gc
import itertools
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from tensorop import __version__, subpackages
from tensorop.cli import author_commands, catalog_commands, library_commands, screen
from tensorop.cli.ctrl_c import INTERRUPTED, CtrlC
from tensorop.cli.operator_command import operator_command
from tensorop.errors import Stopped, TensoropError, UsageError, unknown_name
from tensorop.process import children, scratch
from tensorop.specs import catalog


class Commands(click.Group):
    """The fixed commands, and one command for each operator, plug-in folders included."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*catalog.names("templates"), *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        fixed = super().get_command(ctx, cmd_name)
        if fixed is not None:
            return fixed
        if cmd_name in catalog.names("templates", _plugins_in(sys.argv)):
            return operator_command(cmd_name, _plugins_in(sys.argv))
        return None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            error = unknown_name("command or operator", args[0], self.list_commands(ctx))
            error.hint = f"{error.hint}; `tensorop --help` describes them"
            raise error
        return super().resolve_command(ctx, args)


def _plugins_in(argv: list[str]) -> tuple[Path, ...]:
    """The folders of --plugins. They define operators, and so commands, so they are read before click parses."""
    following = itertools.pairwise(argv)
    return tuple(Path(b) for a, b in following if a == "--plugins") + tuple(
        Path(a.partition("=")[2]) for a in argv if a.startswith("--plugins=")
    )


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tensorop")
def cli() -> None:
    """Tune BLAS-style kernels for a platform and build a verified C library of them.

    \b
    tensorop doctor --platform rvv     check that this machine has what you need
    tensorop gemm --platform rvv       tune gemm and build build/gemm-rvv
    tensorop bench build/gemm-rvv      compare the library with OpenBLAS
    tensorop help COMMAND              show the options of a command, with examples
    """


for _module in (library_commands, *subpackages.offered("commands")):
    for _command in _module.COMMANDS:
        cli.add_command(_command)
cli.add_command(author_commands.author)
for _catalog in catalog_commands.CATALOGS:
    cli.add_command(catalog_commands.group_of(_catalog))


def main() -> None:
    """Entry point.

    Exit status: 0 done, 1 the job failed, 2 wrong usage, 3 stopped early with a verified product, 130 stopped without
    a product.
    """
    gc.freeze()  # loaded modules are never freed
    gc.set_threshold(50_000, 20, 100)  # fewer passes over objects that live as long as a job
    logger = logging.getLogger("tensorop")
    logger.setLevel(logging.INFO)
    logger.handlers = [_Stderr()]
    try:
        with CtrlC(lambda text: screen.echo(text, err=True)):
            cli.main(prog_name="tensorop", standalone_mode=False)
    except click.exceptions.Abort as abort:  # click turns Ctrl-C into this
        _interrupted(abort.__cause__)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except Stopped as stopped:
        screen.echo(f"{stopped.message}; {stopped.hint}", err=True)
        sys.exit(stopped.exit_status)
    except (TensoropError, click.ClickException) as raised:
        error = raised if isinstance(raised, TensoropError) else _refused(raised)
        screen.echo(error.shown, err=True)
        sys.exit(error.exit_status)
    except KeyboardInterrupt as interrupt:
        _interrupted(interrupt)
    except BrokenPipeError:
        sys.exit(1)


def _refused(error: click.ClickException) -> UsageError:
    """An error of click's parser, in the form of all others."""
    near: Sequence[str] = ()
    text = error.format_message()
    if isinstance(error, click.NoSuchOption):
        text, near = error.message, error.possibilities or ()
    message = " ".join(text.split()).rstrip(".")
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context else "tensorop"
    return UsageError(message[:1].lower() + message[1:], hint=f"{hint}`{command} --help` lists arguments and options")


class _Stderr(logging.Handler):
    """Shows log messages, such as the start of a download, on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        screen.echo(record.getMessage(), err=True)


def _interrupted(interrupt: BaseException | None) -> NoReturn:
    screen.echo(str(interrupt or "") or "interrupted", err=True)
    if children.ending_for_good():  # exit without waiting for threads, whose results are not needed
        children.kill_the_rest()  # the interrupt may have come between the start of a child and the note of it
        sys.stdout.flush()
        scratch.clear()
        os._exit(INTERRUPTED)
    sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
