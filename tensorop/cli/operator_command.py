"""`tensorop <operator>`: from a wish to a library, with its progress on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tensorop.cli import options, screen, tables
from tensorop.cli.ctrl_c import INTERRUPTED
from tensorop.cli.helps import examples, format_option, is_given, offline_option, plugins_option
from tensorop.cli.progress import follow
from tensorop.errors import UsageError
from tensorop.model.budget import parse_seconds
from tensorop.model.job import Job
from tensorop.model.operator import Operator
from tensorop.specs import catalog, operators, platforms

MOST_PATIENCE = 86400.0  # seconds
_AS_GIVEN = (
    "platform", "trials", "tuner", "author", "jobs", "threads", "runner", "plugins", "offline", "fresh",
    "warm_start", "unsafe", "workers", "batch", "c_dtype",
)  # fmt: skip
STOPPED_EARLY = 3  # exit status: the user stopped it, and there is a verified product


def operator_command(name: str, plugins: tuple[Path, ...] = ()) -> click.Command:
    """The command of one operator. plugins: known before the command line is parsed."""

    operator = operators.load(name, plugins)
    example = operator.example
    usual = [dtype for dtype in Job.dtypes if dtype in operator.dtypes]
    text = (
        f"Tune {name} for a platform and make a C library of it: {operator.description}\n\n"
        "Ctrl-C once ends the search, verifies what has passed and packages it; twice ends the job without a product. "
        "The same command again goes on where it stopped.\n\n"
        "Exit status: 0 done, 1 failed, 2 wrong usage, 3 stopped early with a verified product, 130 stopped without "
        "one."
    )
    epilog = examples(
        f"{name}",
        f"{name} --platform rvv --budget 5m",
        f"{name} --platform avx2 --dtype {operator.dtypes[0]} --shapes {example} --out build/mine",
    )

    @click.command(name, help=text, epilog=epilog)
    @click.option("--platform", metavar="NAME", default=Job.platform, show_default=True, help=_platforms(plugins))
    @click.option(
        "--dtype",
        metavar="NAME,...",
        default=None,
        show_default=f"{','.join(usual)}, or what the platform has" if usual else "all that the platform has",
        help=f"Element types: {', '.join(operator.dtypes)}.",
    )
    @click.option(
        "--c-dtype",
        metavar="NAME",
        default=None,
        hidden=not operators.serves_devices(operator),
        help="Type of the result, where a platform has a choice: f32 beside bf16 and f16 on GPUs.",
    )
    @click.option(
        "--shapes",
        metavar="SUITE|SHAPE,...",
        default=operator.usual,
        show_default=True,
        help=f"Suites: {', '.join(operator.suites)}; shapes are {operator.shapes.help}, e.g. {example}.",
    )
    @click.option(
        "--budget",
        metavar="TIME",
        default=None,
        help="Search time of all dtypes together, e.g. 90s, 3m or 1h30m; set-up, verification and comparison are extra."
        f"  [default: {Job.budget_s / 60 if Job.budget_s else 0:g}m]",
    )
    @click.option("--trials", metavar="N", type=int, default=None, help="Search trials instead of a time.")
    @click.option(
        "--tuner",
        metavar="NAME",
        default=Job.tuner,
        show_default=True,
        help=f"Search strategy: {', '.join(catalog.names('tuners', plugins))}.",
    )
    @click.option(
        "--author",
        type=click.Choice(["offline", "llm", "replay"]),
        default=Job.author,
        show_default=True,
        help="Who writes micro-kernels: those shipped; a language model too (TENSOROP_LLM_MODEL, OPENAI_API_KEY or "
        "OPENAI_BASE_URL); a recorded one.",
    )
    @click.option(
        "--author-timeout",
        metavar="TIME",
        default=None,
        help="Longest wait for one answer of a model, e.g. 90s; all of a job's have three times that."
        f"  [default: {Job.author_timeout_s / 60:g}m]",
    )
    @click.option(
        "--jobs", type=click.IntRange(1, 256), default=Job.jobs, show_default=True, help="Builds side by side."
    )
    @click.option(
        "--workers",
        metavar="N|tcp://HOST:PORT",
        default=Job.workers,
        help="Carry trials out in N processes, or on the workers of a Dask scheduler (docs/workers.md); --jobs is then "
        "side by side in each of N.",
    )
    @click.option(
        "--batch",
        metavar="N",
        type=click.IntRange(1, 4096),
        default=None,
        help="Trials asked for at once, on which the search's path depends.  [default: as many as run side by side]",
    )
    @click.option(
        "--seed",
        metavar="N|N:SECRET",
        type=str,
        default=Job.seed,
        show_default=True,
        help="Of everything random; whole, as a job printed it, it repeats the calls that kernels are judged on.",
    )
    @click.option(
        "--threads",
        type=click.IntRange(1, 1024),
        default=Job.threads,
        show_default=True,
        help="Threads of the comparison, where a clock measures.",
    )
    @click.option(
        "--runner",
        metavar="native|qemu|null|ssh://HOST[,ssh://HOST...]",
        default=None,
        help="Where programs run, or a backend of your own; by default the platform says. null pretends.",
    )
    @plugins_option
    @offline_option
    @click.option(
        "--out",
        metavar="DIR",
        type=click.Path(path_type=Path),
        default=None,
        help=f"The product's folder.  [default: {Job.folder(name, 'PLATFORM')}]",
    )
    @click.option(
        "--fresh", is_flag=True, help="Forget what --out holds and start over, by its winners unless --warm-start says."
    )
    @click.option(
        "--warm-start",
        metavar="auto|none|FILE|DIR",
        default=Job.warm_start,
        show_default=True,
        help="Where the search begins: at shipped winners and those that --fresh forgets; at none; at those of a "
        "journal, a file of winners, a product or a folder of journals (docs/warm-start.md).",
    )
    @click.option(
        "--unsafe",
        is_flag=True,
        help="Run a model's kernels even on a target that cannot confine them (docs/security.md); the product says so.",
    )
    @format_option
    def command(**given: Any) -> None:
        job = _job(name, given)
        try:
            done = follow(job)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted; the same command goes on where it stopped") from None
        if given["format_"] == "json":
            screen.echo_json(done.to_json())
        else:
            tables.show_result(done, given["plugins"])
        if done.early:
            raise SystemExit(STOPPED_EARLY if done.library else INTERRUPTED)

    return command


def _platforms(plugins: tuple[Path, ...]) -> str:
    names = ", ".join(catalog.names("platforms", plugins))
    return f"What to tune for: {names}; `tensorop platforms list` says what each is."


def _dtypes(operator: Operator, given: dict[str, Any]) -> tuple[str, ...]:
    if given["dtype"]:
        return options.dtypes(operator, given["dtype"])
    return Job.usual_dtypes(operator, platforms.load(given["platform"], given["plugins"]))


def _job(name: str, given: dict[str, Any]) -> Job:
    operator = operators.load(name, given["plugins"])
    if given["budget"] is not None and given["trials"] is not None:
        raise UsageError("both --budget and --trials are given", hint="give one of them")
    if given["trials"] is not None and given["trials"] < 1:
        raise UsageError(f"--trials {given['trials']}: a search needs at least one trial", hint="give --trials 50, say")
    seconds = parse_seconds(given["budget"]) if given["budget"] else (None if given["trials"] else Job.budget_s)
    if seconds is not None and seconds <= 0:
        raise UsageError(f"--budget {given['budget']}: no time at all", hint="give e.g. --budget 2m")
    patience = parse_seconds(given["author_timeout"]) if given["author_timeout"] else Job.author_timeout_s
    if not 0 < patience <= MOST_PATIENCE:
        raise UsageError(f"--author-timeout {given['author_timeout']}: expected up to a day", hint="give e.g. 5m")
    seed, secret = options.seed_parts(given["seed"])
    return Job(
        operator=name,
        seed=seed,
        secret=secret,
        dtypes=_dtypes(operator, given),
        shapes=options.shapes(operator, given["shapes"]),
        suite=given["shapes"],
        budget_s=seconds,
        author_timeout_s=patience,
        out=given["out"] or Job.folder(name, given["platform"]),
        given=frozenset(option for option in given if is_given(option)),
        **{option: given[option] for option in _AS_GIVEN},
    )
