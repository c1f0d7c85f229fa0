"""`prompt`: prints what a job would ask a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tensorop import settings, tuning
from tensorop.author.llm.manual import as_text
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
    "prompt gemm --platform rvv --run build/mine --round 3",
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
        Option(
            "Use these suites and shapes.", "SUITE|SHAPE|@FILE,...", "512x512x512", shown="the operator's first suite"
        ),
    ] = None,
    round_: Annotated[
        int, Option("Print the question of this round; later ones need --run.", "N", "2", name="round", least=1)
    ] = 1,
    run: Annotated[
        Path | None,
        Option("Print a question that this run asked. Its folder keeps them.", "DIR", "build/mine", must_be="folder"),
    ] = None,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Print what a job would ask a language model, without asking it.

    The text goes to stdout, and an estimate of its tokens to stderr. `--format json` prints the messages as a chat
    endpoint takes them.

    Exit status: 0 printed, 2 wrong usage or nothing to ask for.
    """
    found, target = operators.load(operator, plugins), platforms.load(platform, plugins)
    if round_ > 1 and run is None:
        raise UsageError(
            f"--round {round_}: later questions say what a search has measured, and no run is named",
            hint="add --run DIR, the folder of a run with --author llm, manual or replay",
        )
    dtypes = tuning.dtypes(found, dtype) if dtype else Job.usual_dtypes(found, target)
    if run is None:
        brief = asking.any_brief(found, target, dtypes, tuning.shapes(found, shapes or found.usual), plugins)
        messages = opening(brief, Lessons(), token_limit(settings.read()))
    else:
        messages = asking.recorded(run, round_)
    screen.echo(f"about {tokens(*messages)} tokens (a token has four characters on average)", err=True)
    record = [{"role": message.role, "content": message.text} for message in messages]
    screen.answer(format_, record, lambda: screen.echo(as_text(messages)))
