"""The rounds with a language model: each call with what was asked, what came back, and what it gained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorop.author import offline
from tensorop.author.llm import accounting, transcript
from tensorop.author.llm.accounting import Account, AccountedCall
from tensorop.author.llm.messages import ModelReply
from tensorop.report.choices import Choices
from tensorop.report.searches import TemplateUse

MOST_SHOWN = 8000  # characters of a question or an answer


@dataclass(frozen=True)
class AuthorRound:
    """A call, and what became of the template in its answer. Gains are those of micro-kernels, by dtype."""

    call: AccountedCall
    asked: str  # the last message of the question
    answered: str
    parent: str  # name of the template that it was made from; empty: of none
    cost: Mapping[str, float]  # the lowest of its trials
    over_parent: Mapping[str, float]  # cost of the parent / its cost - 1
    over_shipped: Mapping[str, float]  # the lowest cost of shipped templates / its cost - 1
    serves: int  # problems on which the library chooses it
    reason: str  # why the policy asked for its action


@dataclass(frozen=True)
class Rounds:
    account: Account
    rounds: Sequence[AuthorRound]


def has_rounds(folder: Path) -> bool:
    """Whether a run asked a language model."""
    return any((folder / transcript.OF_RUN).glob("[0-9]*.json"))


def rounds(folder: Path, uses: Sequence[TemplateUse], chosen: Sequence[Choices]) -> Rounds | None:
    """The rounds of a run; None if it has no transcript. Raises JobError for a damaged one."""
    if not has_rounds(folder):
        return None
    account = accounting.account(folder)
    costs = {use.name: use.best for use in uses}
    shipped: dict[str, float] = {}
    for use in uses:
        for dtype, cost in use.best.items() if use.author in offline.AUTHORS else ():
            shipped[dtype] = min(cost, shipped.get(dtype, cost))
    parents = {use.name: use.parent for use in uses}
    served = [won for choice in chosen for won in choice.won]
    found = []
    for call, recorded in zip(account.calls, transcript.calls(folder / transcript.OF_RUN), strict=True):
        own = costs.get(call.template, {}) if call.accepted else {}
        parent = parents.get(call.template, "") if call.accepted else ""
        asked = recorded.request.messages[-1].text if recorded.request.messages else ""
        answered = recorded.answer.text if isinstance(recorded.answer, ModelReply) else ""
        found.append(
            AuthorRound(
                call=call,
                asked=_cut(asked),
                answered=_cut(answered),
                parent=parent,
                cost=own,
                over_parent=_gain(costs.get(parent, {}), own),
                over_shipped=_gain(shipped, own),
                serves=sum(won.served for won in served if call.accepted and won.template == call.template),
                reason=recorded.request.choice.reason,
            )
        )
    return Rounds(account, found)


def _gain(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    return {dtype: before[dtype] / cost - 1 for dtype, cost in now.items() if dtype in before}


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}\n... ({len(text)} characters)"
