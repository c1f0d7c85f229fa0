"""`author`: what the calls of a language model cost, what they gained, and what the parts of questions are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Annotated

import click
from rich.table import Table

from tensorop import tuning
from tensorop.author.llm import accounting
from tensorop.author.llm.accounting import Account, AccountedCall, ActionCount
from tensorop.cli import screen, tables
from tensorop.cli.command import Format, Plugins, Runner, command, examples
from tensorop.cli.operator_command import STOPPED_EARLY
from tensorop.cli.progress import follow
from tensorop.commands import ablation, answers
from tensorop.commands import pairs as measured_pairs
from tensorop.commands.ablation import AblatedRun
from tensorop.commands.pairs import PairCount
from tensorop.model.job import Job
from tensorop.model.option import Option
from tensorop.model.steering import IMPROVE
from tensorop.process import scratch
from tensorop.specs import operators, platforms


@command("author stats build/mine", "author stats build/mine --format json", name="stats")
def stats(
    folder: Annotated[Path, Option(metavar="DIR", positional=True, must_be="folder")], format_: Format = "table"
) -> None:
    """Show tokens, time, money and outcome of each call to a language model.

    DIR is the folder of a run with `--author llm`, or a copy of its `work/llm`. Money is known if the run had
    `--author-prices`. The last tables show what an accepted kernel cost, and how many answers passed each stage.

    Exit status: 0 shown, 1 damaged record, 2 wrong usage or no recorded calls.
    """
    found = accounting.account(folder)
    screen.answer(format_, asdict(found), lambda: show(found))


def show(found: Account) -> None:
    numbers = ("tokens in", "tokens out", "seconds", "cost")
    calls = tables.table(f"calls to {found.model}", ["call", "asked for", "trials", "outcome"], numbers)
    for call in found.calls:
        calls.add_row(str(call.number), question(call), str(call.trials), outcome(call), *_figures(call))
    calls.add_section()
    calls.add_row("all", "", "", f"{found.accepted} accepted", *_figures(found))
    tables.console().print(calls)
    if found.accepted:
        spent = (found.tokens_per_accepted, found.seconds_per_accepted, found.cost_per_accepted)
        tokens, seconds, cost = ("unknown" if value is None else tables.figure(value) for value in spent)
        tables.line(f"an accepted kernel cost {tokens} tokens, {seconds} s; money: {cost}")
    stages = tables.table("answers by stage", ["stage"], ["came to it", "passed"])
    for one in found.stages:
        stages.add_row(one.stage, str(one.came), str(one.passed))
    tables.console().print(stages)
    if any(one.action != IMPROVE for one in found.actions):
        tables.console().print(actions_table(found.actions))


def actions_table(found: Sequence[ActionCount]) -> Table:
    table = tables.table("what was asked for", ["action", "region"], ("tries", "accepted", "best gain", "mean gain"))
    for one in found:
        best, mean = (f"{of(one.gains) - 1:+.1%}" if one.gains else "" for of in (max, fmean))
        table.add_row(one.action, one.region, str(one.tries), str(one.accepted), best, mean)
    return table


def question(call: AccountedCall) -> str:
    asked = f"template {call.question}" + (f", repair {call.repair}" if call.repair else "")
    return asked if call.action == IMPROVE else f"{asked}: {call.action} in {call.region}"


def outcome(call: AccountedCall) -> str:
    if call.accepted:
        return f"{call.template} accepted"
    return f"{call.kind} at {call.failed_at}: {call.message[:60]}" if call.kind else "not settled"


def _figures(of: Account | AccountedCall) -> tuple[str, ...]:
    cost = "" if of.cost is None else f"{of.cost:.4f}"
    return f"{of.prompt_tokens}", f"{of.completion_tokens}", f"{of.seconds:.1f}", cost


@command(
    "author ablate gemm --platform rvv --dtype f32",
    "author ablate gemm --platform rvv --arm no-hints --arm everything --trials 100",
    name="ablate",
)
def ablate(
    operator: Annotated[str, Option(metavar="OPERATOR", positional=True)],
    platform: Annotated[str, Job.options()["platform"][1]] = Job.platform,
    dtype: Annotated[str | None, Job.options()["dtypes"][1]] = None,
    shapes: Annotated[str | None, Job.options()["shapes"][1]] = None,
    arms: Annotated[
        tuple[str, ...],
        Option("Run this arm. You may repeat it.", "|".join(ablation.ARMS), "no-hints", multiple=True, name="arm",
               shown="all", choices=ablation.ARMS),
    ] = (),
    trials: Annotated[int, Option("Search N trials in each arm.", "N", "100", least=1, most=10**9)] = 200,
    calls: Annotated[
        int, Option("Ask the model N times in each arm, repairs included.", "N", "12", least=1, most=10_000,
                    name="author-calls")
    ] = 6,
    author_: Annotated[
        str, Option("Choose who answers, as the operator's command does.", example="replay", name="author",
                    choices=("llm", "manual", "replay"))
    ] = "llm",
    transcripts: Annotated[
        Path | None,
        Option("Replay the arms in the folder of an earlier ablation.", "DIR", "build/ablation", name="transcript",
               must_be="folder"),
    ] = None,
    withhold: Annotated[str | None, Job.options()["withhold"][1]] = None,
    seed: Annotated[str, Job.options()["seed"][1]] = "0",
    runner: Runner = None,
    plugins: Plugins = (),
    out: Annotated[
        Path | None, Option("Write a folder for each arm below this one.", "DIR", "build/mine",
                            shown="build/ablation-OPERATOR-PLATFORM")
    ] = None,
    format_: Format = "table",
) -> None:  # fmt: skip
    """Measure what the parts of questions to a language model are worth.

    The same job runs once in each arm, with equal trials and calls: without the platform's facts, without hints,
    without feedback, with feedback that has no counters, and with everything. Run the command again to resume.

    Costs are those of micro-kernels alone, for the first dtype. One run of an arm says little: repeat it with other
    seeds and folders.

    Exit status: 0 done, 1 failed, 2 wrong usage, 3 stopped early: the table has the arms that ended.
    """
    given = {
        "platform": platform, "dtypes": dtype, "shapes": shapes, "trials": trials, "author": author_,
        "transcript": transcripts, "withhold": withhold or (), "seed": seed, "runner": runner, "plugins": plugins,
        "out": out or Path("build") / f"ablation-{operator}-{platform}",
    }  # fmt: skip
    given |= {} if author_ == "replay" else {"author_calls": calls}
    whole = tuning.job(operator, {name: value for name, value in given.items() if value is not None})
    found: list[AblatedRun] = []
    early = False
    for name in arms or ablation.ARMS:
        screen.echo(f"arm {name}", err=True)
        job = ablation.job(whole, name)
        early = follow(job).early
        if early:
            break
        found.append(ablation.results(job, name))
    record = [asdict(one) | {"over_shipped": one.over_shipped} for one in found]
    screen.answer(format_, record, lambda: show_arms(found))
    if early:
        raise SystemExit(STOPPED_EARLY)


def show_arms(found: Sequence[AblatedRun]) -> None:
    numbers = ("calls", "accepted", "tokens", "money", "trials", "best of the model", "best shipped", "gain")
    table = tables.table("what the parts of questions are worth", ["arm"], numbers)
    for one in found:
        costs = ("" if cost is None else f"{cost:.4g}" for cost in (one.best, one.shipped))
        gain = "" if one.over_shipped is None else f"{one.over_shipped:+.1%}"
        money = "" if one.cost is None else f"{one.cost:.4f}"
        table.add_row(
            one.name, f"{one.calls}", f"{one.accepted}", f"{one.tokens}", money, f"{one.trials}", *costs, gain
        )
    tables.console().print(table)
    tables.line("one run of each arm; costs of micro-kernels alone for 1000 flops, less is better")


@command(
    "author pairs gemm --platform rvv --out pairs.jsonl",
    "author pairs gemm --platform rvv --from build/mine --out answers.jsonl",
    name="pairs",
)
def pairs(
    operator: Annotated[str, Option(metavar="OPERATOR", positional=True)],
    platform: Annotated[str, Job.options()["platform"][1]] = Job.platform,
    dtype: Annotated[str, Option("Measure kernels of this element type.", "NAME", "f32")] = "f32",
    trials: Annotated[
        int, Option("Measure N configurations of each template.", "N", "100", least=2, most=100_000)
    ] = 100,
    sources: Annotated[
        tuple[Path, ...],
        Option("Measure nothing: take the answers of a language model in this run. You may repeat it.", "DIR",
               "build/mine", multiple=True, name="from", must_be="folder"),
    ] = (),
    plugins: Plugins = (),
    out: Annotated[Path, Option("Write the rows to this file.", "FILE", "pairs.jsonl")] = Path("pairs.jsonl"),
    format_: Format = "table",
) -> None:  # fmt: skip
    """Measure what typed actions gain, without a language model.

    A template says which action each of its tunables stands for (`ideas`). Configurations that differ in one of them
    are pairs. Each is a line of JSON: state, action, gain. Under a board model the rows are the same in each run.

    With `--from`, rows are the answers of a language model in runs: what was asked for, and its gain by the run's
    journal. A dialogue without its run has no costs, so only failed answers count; `--author replay` makes it a run.

    Exit status: 0 written, 1 failed, 2 wrong usage or no board model.
    """
    found, target = operators.load(operator, plugins), platforms.load(platform, plugins)
    with scratch.folder("pairs") as work:
        rows = [row for folder in sources for row in answers.answers(found, target, dtype, folder, plugins)]
        rows = rows if sources else list(measured_pairs.pairs(found, target, dtype, trials, work, plugins))
    measured_pairs.write(out, rows)
    counts = measured_pairs.summary(rows)
    screen.answer(format_, [asdict(one) for one in counts], lambda: show_pairs(counts, out))


def show_pairs(counts: Sequence[PairCount], out: Path) -> None:
    table = tables.table("what actions gained", ["action"], ("pairs", "faster", "mean reward"))
    for one in counts:
        table.add_row(one.action, str(one.pairs), str(one.faster), f"{one.reward:.3f}")
    tables.console().print(table)
    tables.line(f"{sum(one.pairs for one in counts)} rows in {out}")


author = click.Group(
    "author",
    commands=[ablate, pairs, stats],
    help="Account for the calls to a language model, and measure what its questions are worth.",
    epilog=examples("author stats build/mine", "author ablate gemm --platform rvv"),
)
