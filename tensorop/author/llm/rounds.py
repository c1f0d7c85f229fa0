"""Template, judge, repair once: how a model's answers become templates.

Every answer, good or not, is a `Round`; nothing that a model or an endpoint does ends the run. An answer that
breaks a rule, does not compile or computes the wrong thing is sent back with what went wrong; what an endpoint
does wrong is not the model's to repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from tensorop.author.llm import prompt, reading
from tensorop.author.llm.messages import Failure, Message, Request, Transport
from tensorop.author.llm.prompt import Brief, Lessons, repeatable
from tensorop.author.llm.transcript import AuthorLimits, LimitedTransport, RecordedTransport
from tensorop.model.kernel import KernelTemplate
from tensorop.model.trial import Kind, Outcome
from tensorop.process import barrier
from tensorop.settings import Settings

NAME = "llm"  # of the author; its templates are numbered
REPAIRS = 1
_NOT_ITS_FAULT = frozenset({Kind.OK, Kind.LOST, Kind.NOISY})

Judge = Callable[[KernelTemplate], Outcome]  # gate, render, build, verify at a few points


@dataclass(frozen=True)
class Round:
    """One answer and what became of it. template: None where the answer held none; repair: 0 for a first answer."""

    number: int
    repair: int
    template: KernelTemplate | None
    outcome: Outcome


@dataclass(frozen=True)
class _Answer:
    asked: tuple[Message, ...]
    text: str | None  # None: the endpoint gave no answer
    template: KernelTemplate | None
    outcome: Outcome | None  # why there is no template
    final: bool = False


@dataclass
class LlmAuthor:
    """Asks a transport for templates. The same brief, seed, replies and outcomes give the same templates.

    seconds: for one answer
    """

    brief: Brief
    transport: Transport
    model: str
    _: KW_ONLY
    seed: int = 0
    seconds: float = 600.0
    _lessons: Lessons = field(default_factory=Lessons, init=False)
    _seen: set[str] = field(default_factory=set, init=False)

    def rounds(self, count: int, judge: Judge) -> Iterator[Round]:
        """Up to `count` templates, each with its repairs; ends early when asking on is useless."""
        for number in range(1, count + 1):
            answer = self._ask(prompt.opening(self.brief, self._lessons), number)
            for repair in range(REPAIRS + 1):
                outcome = answer.outcome or self._judged(answer.template, judge)
                yield Round(number, repair, answer.template, outcome)
                self._learn(answer.template, outcome)
                if answer.final:
                    return
                if answer.text is None or outcome.kind in _NOT_ITS_FAULT or repair == REPAIRS:
                    break
                answer = self._ask(prompt.repair(self.brief, answer.asked, answer.text, repeatable(outcome)), number)

    def _ask(self, messages: tuple[Message, ...], number: int) -> _Answer:
        request = Request(self.model, messages, seed=self.seed + number)
        answer = self.transport.complete(request, self.seconds)
        if isinstance(answer, Failure):
            return _Answer(messages, None, None, answer.outcome, answer.final)
        found = barrier.guarded("author", self._read, answer.text, number)
        if isinstance(found, Outcome):
            return _Answer(messages, answer.text, None, found)
        return _Answer(messages, answer.text, found, None)

    def _read(self, answer: str, number: int) -> KernelTemplate:
        return reading.template(answer, operator=self.brief.operator, name=f"{NAME}-{number}", author=NAME)

    def _judged(self, template: KernelTemplate | None, judge: Judge) -> Outcome:
        assert template is not None
        if template.digest in self._seen:
            return Outcome(Kind.REFUSED, "author", "this template was answered before, word for word")
        self._seen.add(template.digest)
        return barrier.guarded("judge", judge, template)

    def _learn(self, template: KernelTemplate | None, outcome: Outcome) -> None:
        strategies, failures = self._lessons.strategies, self._lessons.failures
        if outcome.ok and template is not None:
            strategies = (*strategies, template.strategy)
        elif outcome.kind not in _NOT_ITS_FAULT:
            failures = (*failures, f"{outcome.kind.value}: {repeatable(outcome).message[:300]}")
        self._lessons = Lessons(strategies, failures)


def live(brief: Brief, settings: Settings, work: Path, limits: AuthorLimits, seed: int = 0) -> LlmAuthor:
    """Over the endpoint the environment names; every call is kept under `work`/llm and answered from there again.

    Raises UsageError where no endpoint is named.
    """
    from tensorop.author.llm.transport import Http, endpoint  # the client takes longer to load than a command takes

    where = endpoint(settings)
    transport = LimitedTransport(RecordedTransport(work / "llm", Http(where)), limits)
    return LlmAuthor(brief, transport, where.model, seed=seed, seconds=limits.call_seconds)


def replay(brief: Brief, recording: Path, model: str, *, seed: int = 0) -> LlmAuthor:
    """Over a recording; raises JobError at a request that was not recorded."""
    return LlmAuthor(brief, RecordedTransport(recording, None), model, seed=seed)
