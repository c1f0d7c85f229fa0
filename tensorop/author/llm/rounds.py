"""Turns a model's answers into templates: ask, judge, and ask for one repair.

Every answer is a `Round`, good or not; no answer of a model or an endpoint ends the run. If an answer breaks a rule,
does not compile or computes a wrong result, the model gets the error and may repair it. A fault of the endpoint needs
no repair by the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path

from tensorop import settings
from tensorop.author.llm import prompt, reading
from tensorop.author.llm.messages import Failure, Message, Request, Transport
from tensorop.author.llm.prompt import AnyBrief, Lessons, repeatable
from tensorop.author.llm.transcript import AuthorLimits, LimitedTransport, RecordedTransport
from tensorop.model.job import Job
from tensorop.model.kernel import KernelTemplate
from tensorop.model.trial import Kind, Outcome
from tensorop.process import barrier
from tensorop.settings import Settings

NAME = "llm"  # of the author; its templates are llm-1, llm-2, ...
REPAIRS = 1
_NOT_ITS_FAULT = frozenset({Kind.OK, Kind.LOST, Kind.NOISY})

Judge = Callable[[KernelTemplate], Outcome]  # gate, render, build, verify at a few points


@dataclass(frozen=True)
class Round:
    """One answer and its outcome."""

    number: int
    repair: int  # 0 for a first answer
    template: KernelTemplate | None  # None if the answer has none
    outcome: Outcome


@dataclass(frozen=True)
class _Answer:
    asked: tuple[Message, ...]
    text: str | None  # None: the endpoint gave no answer
    template: KernelTemplate | None
    outcome: Outcome | None  # the reason if there is no template
    final: bool = False


@dataclass
class LlmAuthor:
    """Asks a transport for templates. The same brief, seed, replies and outcomes give the same templates."""

    brief: AnyBrief
    transport: Transport
    model: str
    _: KW_ONLY
    seed: int = 0
    seconds: float = 600.0  # for one answer
    tokens: int = prompt.MAX_TOKENS  # of a question for a new template
    _lessons: Lessons = field(default_factory=Lessons, init=False)
    _seen: set[str] = field(default_factory=set, init=False)

    def rounds(self, count: int, judge: Judge) -> Iterator[Round]:
        """Up to `count` templates, each with its repairs; ends early if further requests are useless."""
        for number in range(1, count + 1):
            answer = self._ask(prompt.opening(self.brief, self._lessons, self.tokens), number)
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
        return reading.template(answer, operator=self.brief.operator.name, name=f"{NAME}-{number}", author=NAME)

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


def live(brief: AnyBrief, settings: Settings, work: Path, limits: AuthorLimits, seed: int = 0) -> LlmAuthor:
    """An author over the environment's endpoint. Calls are recorded under `work`/llm, and answered from there again.

    Raises UsageError if the environment sets no usable endpoint, or an invalid limit.
    """
    from tensorop.author.llm.transport import Http, endpoint  # here, since the client's import is slow

    where = endpoint(settings)
    transport = LimitedTransport(RecordedTransport(work / "llm", Http(where)), limits)
    most = prompt.token_limit(settings)
    return LlmAuthor(brief, transport, where.model, seed=seed, seconds=limits.call_seconds, tokens=most)


def replay(brief: AnyBrief, recording: Path, model: str, *, seed: int = 0) -> LlmAuthor:
    """An author over a recording; raises JobError at a request that was not recorded."""
    return LlmAuthor(brief, RecordedTransport(recording, None), model, seed=seed)


def of_job(job: Job, brief: AnyBrief, work: Path) -> LlmAuthor:
    """The author that a job names; its calls are below `work`. Raises UsageError as `live`."""
    environment = _environment(job)
    if job.author == "replay":
        return replay(brief, work / "llm", environment.llm_model or "recorded", seed=job.seed)
    limits = AuthorLimits(seconds=3 * job.author_timeout_s, call_seconds=job.author_timeout_s)
    return live(brief, environment, work, limits, seed=job.seed)


def require(job: Job) -> None:
    """Raises UsageError if the job's author cannot be asked: without a model, or a valid endpoint."""
    if job.author == "replay":
        return  # needs no endpoint
    from tensorop.author.llm.transport import endpoint  # here, since the client's import is slow

    environment = _environment(job)
    endpoint(environment)
    prompt.token_limit(environment)


def _environment(job: Job) -> Settings:
    """The environment's settings, with the job's --offline."""
    found = settings.read()
    return replace(found, offline=found.offline or job.offline)
