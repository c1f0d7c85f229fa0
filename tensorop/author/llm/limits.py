"""How much a run may ask: calls, tokens, seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorop.author.llm.messages import Failure, Reply, Request, Transport
from tensorop.model.trial import Kind, Outcome


@dataclass(frozen=True)
class Limits:
    """For a whole run; `call_seconds` for one call with its retries."""

    calls: int = 12
    tokens: int = 200_000
    seconds: float = 1800.0
    call_seconds: float = 600.0


@dataclass
class Limited:
    """A transport that stops, before a call, when a limit is reached. Calls answered by a recording count too."""

    transport: Transport
    limits: Limits
    calls: int = field(default=0, init=False)
    tokens: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)

    def complete(self, request: Request, seconds: float) -> Reply | Failure:
        limits = self.limits
        spent = (
            (self.calls >= limits.calls, f"{limits.calls} calls"),
            (self.tokens >= limits.tokens, f"{limits.tokens} tokens"),
            (self.seconds >= limits.seconds, f"{limits.seconds:g} seconds"),
        )
        for over, what in spent:
            if over:
                return Failure(Outcome(Kind.LOST, "author", f"the llm author's limit of {what} is reached"), final=True)
        left = min(seconds, limits.call_seconds, limits.seconds - self.seconds)
        answer = self.transport.complete(request, left)
        self.calls += 1
        self.seconds += answer.seconds
        if isinstance(answer, Reply):
            self.tokens += answer.prompt_tokens + answer.completion_tokens
        return answer
