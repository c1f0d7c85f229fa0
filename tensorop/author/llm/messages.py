"""What goes to an endpoint and what comes back: the records between prompt, transport and transcript."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Protocol

from tensorop.author.llm.refusal import Rejection
from tensorop.model.trial import Kind, Outcome


@dataclass(frozen=True)
class Message:
    """role: system | user | assistant."""

    role: str
    text: str


@dataclass(frozen=True)
class Request:
    """One question: the whole conversation so far and how to sample the answer."""

    model: str
    messages: tuple[Message, ...]
    temperature: float = 0.7
    max_tokens: int = 8192
    seed: int = 0

    @property
    def digest(self) -> str:
        parts = [self.model, [[m.role, m.text] for m in self.messages], self.temperature, self.max_tokens, self.seed]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ModelReply:
    """A whole answer. Token counts are 0 where the endpoint does not tell."""

    text: str
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Failure:
    """No answer. `final`: asking again is useless (no quota, wrong key, budget spent), so the author stops.

    outcome: kind `target-lost` where the endpoint failed, `timeout` past the deadline, `refused` where the answer
    is not one.
    """

    outcome: Outcome
    final: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class NoAnswer:
    """One attempt that gave no answer."""

    kind: Kind
    message: str
    again: bool = False  # worth another attempt
    busy: bool = False  # worth as many as there is time for
    final: bool = False  # no other request will do better
    learned: bool = False  # to be asked again at once, in another way
    misplaced: bool = False  # perhaps nobody's address
    wait: float | None = None  # seconds until the next attempt, where the endpoint says so
    rejection: Rejection | None = None  # the error in a body that calls itself a success


class Transport(Protocol):
    """Carries a request to an endpoint, or to a recording of one."""

    def complete(self, request: Request, seconds: float) -> ModelReply | Failure:
        """The answer, no later than `seconds` from now; never raises for what an endpoint does."""
