"""Transports around another transport: limits of a run, and a recording that answers repeated calls.

Each call is one JSON file without the key: `NNN.json`. It is written before the call, without an answer, and again
after it. `transcript.json` says when answers joined a search. A run that was killed gets the recorded answers when it
starts again, at no cost. A recording from another machine is replayed in the same way.

A reply is found by its place: the model, the seed, which grows with each template, the number of repairs, and the
trials done. The words of the prompt do not count, so a recording outlives them. Files of earlier versions,
`NNN-<digest>.json`, have no number of trials: it was 0.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from tensorop.author.llm.messages import Failure, ModelReply, ReplyPlace, Request, Transport
from tensorop.errors import JobError, SpecError, of_system
from tensorop.model.trial import Kind, Outcome
from tensorop.specs import files, jsontext, yamlfile
from tensorop.specs.prices import TokenPrice
from tensorop.store import durable

T = TypeVar("T")

SCHEMA = 1
HEAD = "transcript.json"
OF_RUN = Path("work") / "llm"  # of a transcript, in the folder of a run
_NAME = re.compile(r"([0-9]{3,9})(?:-.*)?\.json", re.DOTALL)


@dataclass(frozen=True)
class AuthorLimits:
    """The limits of a whole run."""

    calls: int = 12
    tokens: int = 200_000
    seconds: float = 1800.0
    call_seconds: float = 600.0  # for one call with its retries
    cost: float | None = None  # in the price's currency
    price: TokenPrice | None = None


@dataclass(frozen=True)
class TranscriptHead:
    """What a transcript says besides its calls."""

    model: str = ""
    seed: int = 0  # the job's; a question's seed is this plus the number of its template
    verification: str = ""  # the seed of the operands of verified and measured calls; empty: unknown
    before: int | None = None  # templates that were asked for before the search; None: unknown
    left_out: str = ""  # of its questions, as in Brief
    configurations: int = 0  # the most that were asked for of a shipped template
    # seed of a question during a search -> number of trials after which its answer joined
    joined: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordedCall:
    """One call of a transcript."""

    request: Request
    answer: ModelReply | Failure | None  # None: it was in flight when its process ended
    path: Path
    template: str = ""  # the name of the template in the answer; empty if it has none
    outcome: Outcome | None = None  # of the answer; None: it was not judged

    @property
    def failed(self) -> bool:
        return isinstance(self.answer, Failure)


@dataclass(frozen=True)
class _File:
    """The file of a call. Older ones lack some keys."""

    request: Request
    reply: ModelReply | None
    failure: Failure | None = None
    template: str = ""
    outcome: Outcome | None = None


@dataclass
class LimitedTransport:
    """A transport that fails a call if a limit is reached. Calls of earlier processes count; recorded answers do not
    count again."""

    transport: Transport
    limits: AuthorLimits
    calls: int = field(default=0, init=False)
    tokens: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)
    cost: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        if isinstance(self.transport, RecordedTransport):
            for answer in self.transport.answers:
                self._count(answer)

    @property
    def exhausted(self) -> str:
        """The limit that is reached; empty if none is."""
        limits = self.limits
        spent = (
            (self.calls >= limits.calls, f"{limits.calls} calls"),
            (self.tokens >= limits.tokens, f"{limits.tokens} tokens"),
            (self.seconds >= limits.seconds, f"{limits.seconds:g} seconds"),
            (
                limits.cost is not None and self.cost >= limits.cost,
                f"{limits.cost or 0:g} {limits.price.currency if limits.price else ''}",
            ),
        )
        return next((what for over, what in spent if over), "")

    def complete(self, request: Request, seconds: float) -> ModelReply | Failure:
        if isinstance(self.transport, RecordedTransport) and self.transport.knows(request):
            return self.transport.complete(request, seconds)
        if what := self.exhausted:
            return Failure(Outcome(Kind.LOST, "author", f"the llm author's limit of {what} is reached"), final=True)
        left = min(seconds, self.limits.call_seconds, self.limits.seconds - self.seconds)
        answer = self.transport.complete(request, left)
        if isinstance(answer, ModelReply) or not answer.pending:
            self._count(answer)
        return answer

    def _count(self, answer: ModelReply | Failure) -> None:
        self.calls += 1
        self.seconds += answer.seconds
        self.tokens += answer.prompt_tokens + answer.completion_tokens
        self.cost += answer.cost or 0.0


class RecordedTransport:
    """A transport that answers from a folder, sends other requests to `live`, and records the answers.

    The n-th request at the same place gets the n-th recorded reply. Failures are recorded, but never replayed.
    live None: a request that was not recorded raises JobError. price: of the live model
    """

    def __init__(self, folder: Path, live: Transport | None, price: TokenPrice | None = None) -> None:
        self._folder = folder
        self._live = live
        self._price = price
        self._calls, self._number = _load(folder)
        self.head = head(folder)
        self._asked: Counter[ReplyPlace] = Counter()

    def complete(self, request: Request, seconds: float) -> ModelReply | Failure:
        place = request.place
        if (known := self._recorded(request)) is not None:
            self._asked[place] += 1
            return known
        if self._live is None:
            raise JobError(
                f"{self._folder} has no recorded answer number {self._asked[place] + 1} to {place}",
                hint="the model, the seed or an outcome differs from the recorded run; record again with --author llm",
            )
        call = self._begun(request)
        answer = self._live.complete(request, seconds)
        if isinstance(answer, Failure) and answer.pending:
            self._calls.append(call)
            return answer
        if self._price is not None:
            answer = replace(answer, cost=self._price.of(answer.prompt_tokens, answer.completion_tokens))
        call = replace(call, answer=answer)
        self._calls.append(call)
        self._asked[place] += isinstance(answer, ModelReply)
        self._write(call)
        return answer

    def settle(self, request: Request, template: str, outcome: Outcome) -> None:
        """Records the outcome of the last answer to a request. template: its name; empty if the answer has none"""
        open_calls = (n for n, call in enumerate(self._calls) if call.outcome is None and call.answer is not None)
        number = next((n for n in open_calls if self._calls[n].request.place == request.place), None)
        if number is not None and not self.replays:
            self._calls[number] = replace(self._calls[number], template=template, outcome=replace(outcome, log=""))
            self._write(self._calls[number])

    @property
    def replays(self) -> bool:
        """Whether every answer must be recorded."""
        return self._live is None

    @property
    def requests(self) -> list[Request]:
        """All calls, in their order."""
        return [one.request for one in self._calls]

    @property
    def model(self) -> str:
        """The model that answered; empty if the transcript does not say it."""
        return self.head.model or next((one.model for one in self.requests), "")

    @property
    def answers(self) -> list[ModelReply | Failure]:
        """What earlier calls got."""
        return [one.answer for one in self._calls if one.answer is not None]

    @property
    def in_flight(self) -> list[Request]:
        """Calls that had no answer when the process that made them ended."""
        return [one.request for one in self._calls if one.answer is None]

    def knows(self, request: Request) -> bool:
        """Whether the answer is recorded."""
        return self._recorded(request) is not None

    def same(self, request: Request) -> Request:
        """The call in flight at the request's place, with its own words; the request if there is none."""
        return next((one for one in self.in_flight if one.place == request.place), request)

    def next_question(self, seed: int, dtypes: Collection[str]) -> Request | None:
        """The first question of the next template after this seed that was answered or in flight; None if none was.

        dtypes: as in Request
        """
        usable = [one for one in self._calls if not one.failed and not (one.answer is None and self.replays)]
        later = [one.request for one in usable if one.request.seed > seed and one.request.dtype in dtypes]
        return min((one for one in later if not one.place.repair), key=lambda one: one.seed, default=None)

    def joined_after(self, seed: int) -> int | None:
        """The number of trials after which the answer to the question with this seed joined the search."""
        return self.head.joined.get(str(seed))

    def join(self, seed: int, trials: int) -> None:
        """Records that the answer joined the search after so many trials."""
        self.begin(replace(self.head, joined={**self.head.joined, str(seed): trials}))

    def begin(self, head: TranscriptHead) -> None:
        """Records the facts of the run."""
        self.head = head
        self._put(self._folder / HEAD, {"schema": SCHEMA, **asdict(head)})

    def _recorded(self, request: Request) -> ModelReply | None:
        place = request.place
        at_place = [call.answer for call in self._calls if call.request.place == place]
        replies = [answer for answer in at_place if isinstance(answer, ModelReply)]
        return replies[self._asked[place]] if self._asked[place] < len(replies) else None

    def announce(self, request: Request) -> None:
        """Records a question whose answer may come in another process."""
        self._calls.append(self._begun(request))

    def _begun(self, request: Request) -> RecordedCall:
        """Records a call before it is made; one that was in flight keeps its number."""
        open_calls = (call for call in self._calls if call.answer is None)
        again = next((call for call in open_calls if call.request.place == request.place), None)
        if again is not None:
            self._calls.remove(again)
        call = RecordedCall(request, None, again.path if again else self._folder / f"{self._number:03d}.json")
        self._number += again is None
        self._write(call)
        return call

    def _write(self, call: RecordedCall) -> None:
        answer = call.answer
        record: dict[str, Any] = {
            "schema": SCHEMA,
            "request": asdict(call.request),
            "reply": asdict(answer) if isinstance(answer, ModelReply) else None,
            "failure": asdict(answer) if isinstance(answer, Failure) else None,
            "template": call.template,
            "outcome": asdict(call.outcome) if call.outcome else None,
        }
        self._put(call.path, record)

    def _put(self, path: Path, record: dict[str, Any]) -> None:
        durable.write(path, json.dumps(record, indent=1) + "\n")


def calls(folder: Path) -> list[RecordedCall]:
    """All calls of a transcript, in their order. Raises JobError for a file that is none."""
    return _load(folder)[0]


def _load(folder: Path) -> tuple[list[RecordedCall], int]:
    numbers = {path: int(name[1]) for path in folder.glob("[0-9]*.json") if (name := _NAME.fullmatch(path.name))}
    ordered = sorted(numbers, key=lambda path: (numbers[path], path))
    found = [(path, _read(path, "recorded call", _File)) for path in ordered]
    recorded = [RecordedCall(one.request, one.reply or one.failure, at, one.template, one.outcome) for at, one in found]
    return recorded, 1 + max(numbers.values(), default=0)


def discard(folder: Path) -> None:
    """Removes a transcript, with its questions and answers in files. Raises JobError if that fails."""
    with of_system(JobError, f"{folder} cannot be removed", "make the folder writable, or choose another --out"):
        if folder.exists():
            shutil.rmtree(folder)


def place(folder: Path) -> Path:
    """The transcript's folder: in the folder of a run, or that folder itself."""
    return folder / OF_RUN if (folder / OF_RUN).is_dir() else folder


def head(folder: Path) -> TranscriptHead:
    """The head of a transcript. Raises JobError for a file that is none."""
    path = folder / HEAD
    return _read(path, "head of a transcript", TranscriptHead) if path.exists() else TranscriptHead()


def _read(path: Path, what: str, kind: type[T]) -> T:
    try:
        record = jsontext.loads(files.text(path, files.TEXT))
        if not jsontext.is_schema(record["schema"], SCHEMA):
            raise ValueError(f"schema {record['schema']!r}, expected {SCHEMA}")
        return yamlfile.validate(kind, record, what)
    except (OSError, SpecError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise JobError(
            f"{path} is not a valid {what}: {str(error)[:300]}",
            hint="use the version of tensorop that wrote it, or remove the file; the model is then asked again",
        ) from error
