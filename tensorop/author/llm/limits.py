"""How much a run may ask: calls, tokens, seconds."""

from __future__ import annotations

from dataclasses import dataclass

from tensorop.author.llm.messages import Failure, Reply, Request, Transport
from tensorop.model.trial import Kind, Outcome


@dataclass(frozen=True)
class Limits:
    """For a whole run; `call_seconds` for one call with its retries."""

    calls: int = 12
    tokens: int = 200_000
    seconds: float = 1800.0
    call_seconds: float = 600.0


class Limited:
    """A transport that stops, before a call, when a limit is reached. Calls answered by a recording count too."""

    def __init__(self, transport: Transport, limits: Limits) -> None:
        self._transport = transport
        self._limits = limits
        self.calls = 0
        self.tokens = 0
        self.seconds = 0.0

    def complete(self, request: Request, seconds: float) -> Reply | Failure:
        limits = self._limits
        spent = (
            (self.calls >= limits.calls, f"{limits.calls} calls"),
            (self.tokens >= limits.tokens, f"{limits.tokens} tokens"),
            (self.seconds >= limits.seconds, f"{limits.seconds:g} seconds"),
        )
        for over, what in spent:
            if over:
                return Failure(Outcome(Kind.LOST, "author", f"the llm author's limit of {what} is reached"), final=True)
        left = min(seconds, limits.call_seconds, limits.seconds - self.seconds)
        answer = self._transport.complete(request, left)
        self.calls += 1
        self.seconds += answer.seconds
        if isinstance(answer, Reply):
            self.tokens += answer.prompt_tokens + answer.completion_tokens
        return answer
