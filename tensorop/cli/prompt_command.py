"""`prompt`: prints what a job would ask a language model."""

from __future__ import annotations

from typing import Annotated

from tensorop import settings, tuning
from tensorop.author.llm.prompt import Lessons, opening, token_limit, tokens
from tensorop.cli import screen
from tensorop.cli.command import Format, Plugins, command
from tensorop.commands import prompt as asking
from tensorop.errors import UsageError
from tensorop.model.job import Job
from tensorop.model.option import Option
from tensorop.specs import operators, platforms


@command(
    "prompt gemm --platform rvv",
    "prompt gemm --platform rvv --dtype f32 --shapes 512x512x512 --format json",
)
def prompt(
    operator: Annotated[str, Option(metavar="OPERATOR", positional=True)],
    platform: Annotated[
        str, Option("Name the platform it runs on; see `tensorop platforms list`.", "NAME", "rvv")
    ] = Job.platform,
    dtype: Annotated[
        str | None, Option("Use these element types.", "NAME,...", "f32", shown="as the operator's command")
    ] = None,
    shapes: Annotated[
        str | None,
        Option("Use these suites and shapes.", "SUITE|SHAPE,...", "512x512x512", shown="the operator's first suite"),
    ] = None,
    round_: Annotated[
        int, Option("Print the question of this round; there is only the first.", "N", "1", name="round", least=1)
    ] = 1,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Print what a job would ask a language model, without asking it.

    The text goes to stdout, and an estimate of its tokens to stderr. `--format json` prints the messages as a chat
    endpoint takes them.

    Exit status: 0 printed, 2 wrong usage or nothing to ask for.
    """
    found, target = operators.load(operator, plugins), platforms.load(platform, plugins)
    if round_ > 1:
        raise UsageError(
            f"--round {round_}: there is only the first round; measured results do not go back to a model yet",
            hint="remove --round",
        )
    dtypes = tuning.dtypes(found, dtype) if dtype else Job.usual_dtypes(found, target)
    brief = asking.any_brief(found, target, dtypes, tuning.shapes(found, shapes or found.usual))
    messages = opening(brief, Lessons(), token_limit(settings.read()))
    screen.echo(f"about {tokens(*messages)} tokens (a token has four characters on average)", err=True)
    record = [{"role": message.role, "content": message.text} for message in messages]
    text = "\n".join(f"[{message.role}]\n{message.text}" for message in messages)
    screen.answer(format_, record, lambda: screen.echo(text))
