"""Transports around another transport: limits of a run, and a recording that answers repeated calls.

Each call is one JSON file without the key: `NNN.json`. A run that was killed gets the recorded answers when it starts
again, at no cost. A recording from another machine is replayed in the same way. A reply is found by its place: the
model, the seed, which grows with each template, the number of repairs, and the trials done. The words of the prompt do
not count, so a recording outlives them. Files of earlier versions, `NNN-<digest>.json`, have no number of trials: it
was 0.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tensorop.author.llm.messages import Failure, Message, ModelReply, ReplyPlace, Request, Transport
from tensorop.errors import JobError, SpecError
from tensorop.model.trial import Kind, Outcome
from tensorop.specs import files, jsontext
from tensorop.store import durable

SCHEMA = 1
_NAME = re.compile(r"([0-9]{1,9})(?:-.*)?\.json", re.DOTALL)
_KINDS: dict[str, Any] = {
    "text": str, "model": str, "prompt_tokens": int, "completion_tokens": int, "seconds": int | float
}  # fmt: skip


@dataclass(frozen=True)
class AuthorLimits:
    """The limits of a whole run."""

    calls: int = 12
    tokens: int = 200_000
    seconds: float = 1800.0
    call_seconds: float = 600.0  # for one call with its retries


@dataclass
class LimitedTransport:
    """A transport that fails a call if a limit is reached. Calls answered from a recording count too."""

    transport: Transport
    limits: AuthorLimits
    calls: int = field(default=0, init=False)
    tokens: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)

    def complete(self, request: Request, seconds: float) -> ModelReply | Failure:
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
        if isinstance(answer, ModelReply):
            self.tokens += answer.prompt_tokens + answer.completion_tokens
        return answer


class RecordedTransport:
    """A transport that answers from a folder, sends other requests to `live`, and records the answers.

    The n-th request at the same place gets the n-th recorded reply. Failures are recorded, but never replayed.
    live None: a request that was not recorded raises JobError.
    """

    def __init__(self, folder: Path, live: Transport | None) -> None:
        self._folder = folder
        self._live = live
        self._replies, self._number = _load(folder)
        self._asked: Counter[ReplyPlace] = Counter()

    def complete(self, request: Request, seconds: float) -> ModelReply | Failure:
        place = request.place
        known = self._replies.get(place, [])
        nth = self._asked[place]
        if nth < len(known):
            self._asked[place] += 1
            return known[nth]
        if self._live is None:
            raise JobError(
                f"{self._folder} has no recorded answer number {nth + 1} to {place}",
                hint="the model, the seed or an outcome differs from the recorded run; record again with --author llm",
            )
        answer = self._live.complete(request, seconds)
        if isinstance(answer, ModelReply):
            self._replies.setdefault(place, []).append(answer)
            self._asked[place] += 1
        self._write(request, answer)
        return answer

    def _write(self, request: Request, answer: ModelReply | Failure) -> None:
        record: dict[str, Any] = {
            "schema": SCHEMA,
            "request": asdict(request),
            "reply": asdict(answer) if isinstance(answer, ModelReply) else None,
            "failure": asdict(answer) if isinstance(answer, Failure) else None,
        }
        path = self._folder / f"{self._number:03d}.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            durable.replace(path, json.dumps(record, indent=1) + "\n")
        except OSError as error:
            raise JobError(
                f"{path} cannot be written: {error.strerror or error}",
                hint="free disk space or make the folder writable, then run the same command again",
            ) from error
        self._number += 1


def _load(folder: Path) -> tuple[dict[ReplyPlace, list[ModelReply]], int]:
    replies: dict[ReplyPlace, list[ModelReply]] = {}
    numbers = {path: int(name[1]) for path in folder.glob("[0-9]*.json") if (name := _NAME.fullmatch(path.name))}
    for path in sorted(numbers, key=lambda path: (numbers[path], path)):
        try:
            record = jsontext.loads(files.text(path, files.TEXT))
            if record["schema"] != SCHEMA:
                raise ValueError(f"schema {record['schema']!r}, expected {SCHEMA}")
            if record["reply"] is not None:
                replies.setdefault(_place(record["request"]), []).append(_reply(record["reply"]))
        except (SpecError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise JobError(
                f"{path} is not a valid recorded call: {str(error)[:300]}",
                hint="remove the file; the model is then asked again",
            ) from error
    return replies, 1 + max(numbers.values(), default=0)


def _place(record: dict[str, Any]) -> ReplyPlace:
    """The place of a recorded request. Raises KeyError, ValueError or TypeError for a record that is none."""
    messages = tuple(Message(**message) for message in record["messages"])
    place = Request(record["model"], messages, seed=record["seed"], trials=record.get("trials", 0)).place
    if not isinstance(place.model, str) or not type(place.seed) is type(place.trials) is int:
        raise ValueError(f"request is of {place!s:.60}")
    return place


def _reply(record: dict[str, Any]) -> ModelReply:
    """A recorded reply. Raises ValueError or TypeError for an unknown field, or for a value with a wrong type."""
    reply = ModelReply(**record)
    for name, kind in _KINDS.items():
        value = getattr(reply, name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"reply.{name} is {value!r:.60}")
    return reply
