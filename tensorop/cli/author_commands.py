"""`author`: what the calls of a language model cost, and what they gained."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import click

from tensorop.author.llm import accounting
from tensorop.author.llm.accounting import Account, AccountedCall
from tensorop.cli import screen, tables
from tensorop.cli.command import Format, command, examples
from tensorop.model.option import Option


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


def question(call: AccountedCall) -> str:
    return f"template {call.question}" + (f", repair {call.repair}" if call.repair else "")


def outcome(call: AccountedCall) -> str:
    if call.accepted:
        return f"{call.template} accepted"
    return f"{call.kind} at {call.failed_at}: {call.message[:60]}" if call.kind else "not settled"


def _figures(of: Account | AccountedCall) -> tuple[str, ...]:
    cost = "" if of.cost is None else f"{of.cost:.4f}"
    return f"{of.prompt_tokens}", f"{of.completion_tokens}", f"{of.seconds:.1f}", cost


author = click.Group(
    "author",
    commands=[stats],
    help="Account for the calls to a language model.",
    epilog=examples("author stats build/mine"),
)
