"""Template, judge, repair once: how a model's answers become templates.

Every answer, good or not, is a `Round`; nothing that a model or an endpoint does ends the run. An answer that
breaks a rule, does not compile or computes the wrong thing is sent back with what went wrong; what an endpoint
does wrong is not the model's to repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field

from tensorop.author.llm import prompt, reading
from tensorop.author.llm.messages import Failure, Message, Request, Transport
from tensorop.author.llm.prompt import Brief, Told
from tensorop.author.llm.repeatable import repeatable
from tensorop.model.kernel import KernelTemplate
from tensorop.model.trial import Kind, Outcome
from tensorop.process import barrier

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

    repairs: of one template; seconds: for one answer
    """

    brief: Brief
    transport: Transport
    model: str
    _: KW_ONLY
    seed: int = 0
    repairs: int = REPAIRS
    seconds: float = 600.0
    _told: Told = field(default_factory=Told, init=False)
    _seen: set[str] = field(default_factory=set, init=False)

    def rounds(self, count: int, judge: Judge) -> Iterator[Round]:
        """Up to `count` templates, each with its repairs; ends early when asking on is useless."""
        for number in range(1, count + 1):
            answer = self._ask(prompt.opening(self.brief, self._told), number)
            for repair in range(self.repairs + 1):
                outcome = answer.outcome or self._judged(answer.template, judge)
                yield Round(number, repair, answer.template, outcome)
                self._learn(answer.template, outcome)
                if answer.final:
                    return
                if answer.text is None or outcome.kind in _NOT_ITS_FAULT or repair == self.repairs:
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
        strategies, failures = self._told.strategies, self._told.failures
        if outcome.ok and template is not None:
            strategies = (*strategies, template.strategy)
        elif outcome.kind not in _NOT_ITS_FAULT:
            failures = (*failures, f"{outcome.kind.value}: {repeatable(outcome).message[:300]}")
        self._told = Told(strategies, failures)
