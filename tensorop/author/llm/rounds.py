"""Turns a model's answers into templates: ask, judge, and ask for one repair.

Every answer is a `Round`, good or not; no answer of a model or an endpoint ends the run. If an answer breaks a rule,
does not compile or computes a wrong result, the model gets the error and may repair it. A fault of the endpoint needs
no repair by the model.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path

from tensorop import settings
from tensorop.author import offline, parse, plans, regions
from tensorop.author.llm import prompt, reading
from tensorop.author.llm import transcript as transcripts
from tensorop.author.llm.manual import ManualTransport
from tensorop.author.llm.messages import Failure, Message, Request, Transport
from tensorop.author.llm.prompt import AnyBrief, Lessons, Standing, repeatable
from tensorop.author.llm.transcript import AuthorLimits, LimitedTransport, RecordedTransport
from tensorop.errors import SpecError, UsageError
from tensorop.model.job import MOST_CONFIGURATIONS, Job
from tensorop.model.kernel import KernelTemplate
from tensorop.model.steering import CONFIGURE, Choice
from tensorop.model.trial import Finished, Kind, Outcome
from tensorop.process import barrier
from tensorop.settings import Settings
from tensorop.specs import prices
from tensorop.specs.prices import TokenPrice

MANUAL = "manual"  # the model's name in transcripts of --author manual
NAME = "llm"  # of the author; its templates are llm-1, llm-2, ...
REPAIRS = 1
_NOT_ITS_FAULT = frozenset({Kind.OK, Kind.LOST, Kind.NOISY})

Judge = Callable[[KernelTemplate], Outcome]  # gate, render, build, verify at a few points


@dataclass(frozen=True)
class Aimed:
    """What a question asks for."""

    choice: Choice = field(default_factory=Choice)
    current: KernelTemplate | None = None  # the template to change; None: a new one


Aim = Callable[[int], Aimed | None]  # number of a template -> what its question asks for; None: no question


@dataclass(frozen=True)
class Round:
    """One answer and its outcome."""

    number: int
    repair: int  # 0 for a first answer
    template: KernelTemplate | None  # None if the answer has none
    outcome: Outcome
    choice: Choice = field(default_factory=Choice)  # what it was asked for


@dataclass(frozen=True)
class Answer:
    """What came back, and what it was asked by."""

    request: Request
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
    recording: RecordedTransport | None = None  # of the transport's calls
    _lessons: Lessons = field(default_factory=Lessons, init=False)
    _seen: set[str] = field(default_factory=set, init=False)
    _plans: dict[str, int] = field(default_factory=dict, init=False)  # key of a plan -> number of its first template

    def rounds(self, count: int, judge: Judge, aim: Aim | None = None) -> Iterator[Round]:
        """Up to `count` templates, each with its repairs; ends early if further requests are useless.

        aim: by default all ask for new templates
        """
        for number in range(1, count + 1):
            aimed = aim(number) if aim else Aimed()
            if aimed is None:
                return
            choice, current = aimed.choice, aimed.current
            question: tuple[Message, ...] | None = self.asking(None, choice)
            for repair in itertools.count():
                if question is None:
                    break
                answer = self.ask(self.request(question, number, choice=choice), current)
                outcome = self.judged(answer, judge)
                yield Round(number, repair, answer.template, outcome, choice)
                if answer.final:
                    return
                question = self.repairing(answer, outcome)

    def asking(self, standing: Standing | None, choice: Choice | None = None) -> tuple[Message, ...]:
        """The question for a better template than the model's best; without one, for a new template."""
        if standing is None:
            return prompt.opening(self.brief, self._lessons, self.tokens, choice)
        return prompt.improvement(self.brief, standing, self._lessons, self.tokens, choice)

    def configuring(self, standing: Standing, tried: Sequence[Finished], most: int) -> tuple[Message, ...]:
        """The question for up to `most` configurations of the template that `standing` shows. tried: its trials"""
        return prompt.configurations(self.brief, standing, tried, most, self.tokens)

    @property
    def has_passed(self) -> bool:
        """Whether a template of this process passed."""
        return bool(self._lessons.strategies)

    @property
    def exhausted(self) -> bool:
        """Whether the run's limits allow no further call."""
        return isinstance(self.transport, LimitedTransport) and bool(self.transport.exhausted)

    def repairing(self, answer: Answer, outcome: Outcome) -> tuple[Message, ...] | None:
        """The question for a repair; None if the outcome is not the model's fault, or no repair is left."""
        spent = answer.request.place.repair >= REPAIRS
        if answer.final or answer.text is None or outcome.kind in _NOT_ITS_FAULT or spent:
            return None
        asked = answer.request
        return prompt.repair(self.brief, asked.messages, answer.text, repeatable(outcome), asked.choice.action)

    def request(
        self,
        messages: tuple[Message, ...],
        number: int,
        trials: int = 0,
        dtype: str = "",
        choice: Choice | None = None,
    ) -> Request:
        """The request for a template or its repair. trials, dtype, choice: as in Request"""
        seed = self.seed + number
        return Request(self.model, messages, seed=seed, trials=trials, dtype=dtype, choice=choice or Choice())

    def ask(self, request: Request, current: KernelTemplate | None = None) -> Answer:
        """An answer, however it failed. current: the template that its edits are of"""
        answer = self.transport.complete(request, self.seconds)
        if isinstance(answer, Failure):
            return Answer(request, None, None, answer.outcome, answer.final)
        found = barrier.guarded("author", self._read, answer.text, request, current)
        if isinstance(found, Outcome):
            return Answer(request, answer.text, None, found)
        return Answer(request, answer.text, found, None)

    def _read(self, answer: str, request: Request, current: KernelTemplate | None) -> KernelTemplate:
        name, operator = f"{NAME}-{request.seed - self.seed}", self.brief.operator.name
        text = parse.written(current) if current else ""
        if current and request.choice.action == CONFIGURE:
            points = reading.configurations(answer, text, operator=operator, most=MOST_CONFIGURATIONS)
            return replace(current, seed_configurations=points)
        found = reading.template(answer, operator=operator, name=name, author=NAME, current=text)
        if current:
            regions.require_only(request.choice.region, current, found)
        self._require_new(found, current, request.seed - self.seed)
        return found

    def _require_new(self, found: KernelTemplate, current: KernelTemplate | None, number: int) -> None:
        """Raises SpecError if another template of the model has the same plan, and it is not the one to change."""
        key = plans.key(found.plan)
        if not key or (current and key == plans.key(current.plan)):
            return
        if (first := self._plans.setdefault(key, number)) != number:
            raise SpecError(f"plan: it is that of {NAME}-{first}, word for word; plan something else")

    def judged(self, answer: Answer, judge: Judge) -> Outcome:
        """The outcome of an answer; the next question knows it."""
        outcome = answer.outcome or self._judged(answer.template, judge)
        self._learn(answer.template, outcome)
        if self.recording is not None:
            template = answer.template
            name = template.name if template and template.author not in offline.AUTHORS else ""
            self.recording.settle(answer.request, name, outcome)
        return outcome

    def relearn(self, outcomes: Mapping[tuple[int, int], Outcome]) -> None:
        """Learns from recorded answers what an earlier process learned. outcomes: by number of template and repair"""
        assert self.recording is not None
        for request in self.recording.requests:
            outcome = outcomes.get((request.seed - self.seed, request.place.repair))
            if outcome is not None and self.recording.knows(request):
                answer = self.ask(request)
                self._seen |= {answer.template.digest} if answer.template else set()
                self._learn(answer.template, outcome)

    def _judged(self, template: KernelTemplate | None, judge: Judge) -> Outcome:
        assert template is not None
        if template.author in offline.AUTHORS:
            return barrier.guarded("judge", judge, template)
        if template.digest in self._seen:
            return Outcome(Kind.REFUSED, "author", "this template was answered before, word for word")
        self._seen.add(template.digest)
        return barrier.guarded("judge", judge, template)

    def _learn(self, template: KernelTemplate | None, outcome: Outcome) -> None:
        strategies, failures = self._lessons.strategies, self._lessons.failures
        if outcome.ok and template is not None and template.author not in offline.AUTHORS:
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
    recording = RecordedTransport(work / "llm", Http(where), limits.price)
    most = prompt.token_limit(settings)
    return LlmAuthor(
        brief,
        LimitedTransport(recording, limits),
        where.model,
        seed=seed,
        seconds=limits.call_seconds,
        tokens=most,
        recording=recording,
    )


def manual(brief: AnyBrief, settings: Settings, work: Path, calls: int, seed: int = 0) -> LlmAuthor:
    """An author whose answers are files of the user in `work`/llm."""
    recording = RecordedTransport(work / "llm", ManualTransport(work / "llm"))
    transport = LimitedTransport(recording, AuthorLimits(calls, seconds=math.inf, call_seconds=math.inf))
    most = prompt.token_limit(settings)
    return LlmAuthor(brief, transport, MANUAL, seed=seed, tokens=most, recording=recording)


def replay(brief: AnyBrief, recording: Path, model: str = "", *, seed: int = 0) -> LlmAuthor:
    """An author over a recording; raises JobError at a request that was not recorded.

    model, seed: for recordings that do not name theirs
    """
    recorded = RecordedTransport(recording, None)
    seed = recorded.head.seed if recorded.head.model else seed
    return LlmAuthor(brief, recorded, recorded.model or model, seed=seed, recording=recorded)


def of_job(job: Job, brief: AnyBrief, work: Path) -> LlmAuthor:
    """The author that a job names; its calls are below `work`. Raises UsageError as `live`."""
    environment = _environment(job)
    match job.author:
        case "replay":
            return replay(brief, transcript(job) or work / "llm", environment.llm_model or "recorded", seed=job.seed)
        case "manual":
            return manual(brief, environment, work, job.author_calls, job.seed)
    return live(brief, environment, work, limits(job), seed=job.seed)


def chooser(job: Job) -> Transport:
    """The endpoint of --policy-model: that of the author, with another model. Raises UsageError as `live`."""
    from tensorop.author.llm.transport import Http, endpoint  # here, since the client's import is slow

    return Http(endpoint(replace(_environment(job), llm_model=job.policy_model)))


def limits(job: Job) -> AuthorLimits:
    """The limits that a job sets."""
    seconds = 3 * job.author_timeout_s if job.author_time_s is None else job.author_time_s
    return AuthorLimits(
        job.author_calls, job.author_tokens, seconds, job.author_timeout_s, job.author_cost, _price(job)
    )


def transcript(job: Job) -> Path | None:
    """The folder of the transcript that the user names: that folder, or a run's."""
    return None if job.transcript is None else transcripts.place(job.transcript)


def original(job: Job, work: Path) -> str:
    """The author, for the product's card: of a replay the one of the transcript, so that it makes the same product."""
    if job.author != "replay":
        return job.author
    recorded = RecordedTransport(transcript(job) or work / "llm", None).head
    return MANUAL if recorded.model == MANUAL else NAME


def require(job: Job) -> None:
    """Raises UsageError if the job's author cannot be asked: without a model, a valid endpoint, or the transcript."""
    if job.author == "replay" and (folder := transcript(job)) and not RecordedTransport(folder, None).requests:
        raise UsageError(f"{folder} contains no transcript", hint="name a folder with files 001.json, 002.json, ...")
    if job.policy_model and job.author != "replay":
        chooser(job)
    if job.author != "llm":
        return  # needs no endpoint
    from tensorop.author.llm.transport import endpoint  # here, since the client's import is slow

    environment = _environment(job)
    endpoint(environment)
    prompt.token_limit(environment)
    _price(job)


def _price(job: Job) -> TokenPrice | None:
    """The language model's price; None without a price file. Raises UsageError if the file does not have it."""
    if job.author != "llm" or job.author_prices is None:
        return None
    return prices.price(job.author_prices, _environment(job).llm_model or "")


def _environment(job: Job) -> Settings:
    """The environment's settings, with the job's --offline."""
    found = settings.read()
    return replace(found, offline=found.offline or job.offline)
