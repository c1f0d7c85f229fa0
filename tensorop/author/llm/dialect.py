"""The form of requests that an endpoint accepts, learned from its refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorop.author.llm.messages import Request
from tensorop.author.llm.refusal import TOKENS, Rejection

_LOWERINGS = 3  # times that one call may lower the number of tokens


@dataclass
class CallState:
    """One request with its retries."""

    tokens: int | None = None  # the most that an answer can have beside this prompt
    lowerings: int = 0


class Dialect:
    """The options and roles that one endpoint accepts. Each option is dropped at most once, so a call ends."""

    def __init__(self) -> None:
        self._dropped: set[str] = set()
        self._tokens: int | None = None
        self._streams = False
        self._system_inside = False

    def options(self, request: Request, call: CallState) -> dict[str, Any]:
        tokens = min(n for n in (request.max_tokens, self._tokens, call.tokens) if n is not None)
        name = next((name for name in TOKENS if name not in self._dropped), None)
        options: dict[str | None, Any] = {"temperature": request.temperature, "seed": request.seed, name: tokens}
        if request.answers:
            schema: dict[str, Any] = {"type": "object"}
            schema |= {"properties": {"choice": {"type": "string", "enum": [*request.answers]}}}
            schema |= {"required": ["choice"], "additionalProperties": False}
            form = {"name": "choice", "strict": True, "schema": schema}
            options["response_format"] = {"type": "json_schema", "json_schema": form}
        if self._streams and "stream" not in self._dropped:
            options |= {"stream": True, "stream_options": {"include_usage": True}}
        return {name: value for name, value in options.items() if name is not None and name not in self._dropped}

    def messages(self, request: Request) -> list[dict[str, str]]:
        """The conversation. If the endpoint has no system role, that text begins the user's first message."""
        messages = [{"role": one.role, "content": one.text} for one in request.messages]
        if self._system_inside and _has_system(request):
            system, first, *others = messages
            return [{**first, "content": f"{system['content']}\n\n{first['content']}"}, *others]
        return messages

    def learn(self, refusal: Rejection, request: Request, sent: dict[str, Any], call: CallState) -> bool:
        """Learns from a refusal. True if the request will differ when it is sent again. sent: the request's options."""
        refused = refusal.options(sent)
        named = bool(refused and refusal.named)
        if not named and refusal.of_the_system_role and _has_system(request) and not self._system_inside:
            self._system_inside = True
            return True
        if not named and refusal.wants_a_stream and not self._streams:
            self._streams = True
            return True
        tokens = next((name for name in TOKENS if name in sent), None)
        if tokens is not None and not set(refused) - {tokens} and self._lowered(refusal, sent[tokens], call):
            return True
        other = next((name for name in TOKENS if name != tokens), "")
        if tokens is not None and not refused and other not in self._dropped and refusal.advises(other):
            refused = (tokens,)
        self._dropped |= set(refused)
        return bool(refused)

    def _lowered(self, refusal: Rejection, asked: int, call: CallState) -> bool:
        room = refusal.room(asked)
        if room is None or call.lowerings == _LOWERINGS:
            return False
        call.lowerings += 1
        if room.whole:
            self._tokens = room.tokens
        call.tokens = room.tokens
        return True


def _has_system(request: Request) -> bool:
    return [one.role for one in request.messages[:2]] == ["system", "user"]
