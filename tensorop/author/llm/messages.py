"""Requests to an endpoint and their answers: the records between prompt, transport and transcript."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tensorop.author.llm.refusal import Rejection
from tensorop.model.steering import Choice
from tensorop.model.trial import Kind, Outcome


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: str  # system | user | assistant
    text: str


@dataclass(frozen=True)
class ReplyPlace:
    """What a recorded reply is found by."""

    model: str
    seed: int
    repair: int  # 0 for the question for a new template
    trials: int

    def __str__(self) -> str:
        asked = f"repair {self.repair}" if self.repair else "the first question"
        return f"{asked} with seed {self.seed} to model '{self.model}' after {self.trials} trials"


@dataclass(frozen=True)
class Request:
    """One question: the whole conversation so far, and how to sample the answer."""

    model: str
    messages: tuple[Message, ...]
    temperature: float = 0.7
    max_tokens: int = 8192
    seed: int = 0  # the job's seed plus the number of the template
    trials: int = 0  # of the search that were done when it was asked
    # of that search; empty: it was asked before the search, or by an earlier version of the first dtype
    dtype: str = ""
    choice: Choice = field(default_factory=Choice)  # what it asks for
    answers: tuple[str, ...] = ()  # the only texts that may be answered; empty: any

    @property
    def place(self) -> ReplyPlace:
        """Where it stands among a job's requests, whatever the words of the prompt."""
        repair = sum(message.role == "assistant" for message in self.messages)
        return ReplyPlace(self.model, self.seed, repair, self.trials)


@dataclass(frozen=True)
class ModelReply:
    """A whole answer. Token counts are 0 if the endpoint does not return them."""

    text: str
    model: str = ""
    prompt_tokens: int = 0  # of all attempts of the call, as those below
    completion_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = None  # in the currency of the price file; None without a price


@dataclass(frozen=True)
class Failure:
    """A call without an answer. Tokens, seconds and cost are as those of a reply: an answer that is cut costs too.

    outcome: kind `target-lost` if the endpoint failed, `timeout` past the deadline, `refused` if the answer is invalid.
    final: another request is useless (no quota, wrong key, budget spent), so the author stops.
    """

    outcome: Outcome
    final: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = None
    pending: bool = False  # the answer may come in another process


@dataclass(frozen=True)
class NoAnswer:
    """One attempt that gave no answer."""

    kind: Kind
    message: str
    again: bool = False  # worth another attempt
    busy: bool = False  # worth attempts until the deadline
    final: bool = False  # every other request will fail too
    learned: bool = False  # ask again at once, in another form
    misplaced: bool = False  # the address may be wrong
    wait: float | None = None  # seconds until the next attempt, if the endpoint gives them
    rejection: Rejection | None = None  # the error in a body whose status is a success
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Transport(Protocol):
    """Sends a request to an endpoint, or to a recording of one."""

    def complete(self, request: Request, seconds: float) -> ModelReply | Failure:
        """The answer, at most `seconds` from now. No behaviour of an endpoint raises an error."""
