"""Asks a language model again during a search, with what was measured of its templates.

A question is sent from a thread of its own, so that the search goes on while it waits. Answers are read and judged
between two batches of trials, and their templates join the search. The budget has a part for each question: when it is
spent, the search waits for the answer, and its clock stands still. A recording says after how many trials each question
was asked and each answer joined; a replay repeats both.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from tensorop.author import offline
from tensorop.author.llm.manual import ManualTransport
from tensorop.author.llm.messages import Request
from tensorop.author.llm.rounds import Answer, Judge, LlmAuthor, Round
from tensorop.author.llm.transcript import RecordedTransport
from tensorop.job.steering import Asking, Settled, Steering
from tensorop.model.kernel import KernelTemplate
from tensorop.model.steering import CONFIGURE, HEAD, Choice
from tensorop.model.trial import Finished, Outcome
from tensorop.search.arms import Remarks

PATIENCE = 6  # trials between an answer and the next question
NEAR = 1.03  # within this factor of the bound no question is asked

Recorded = Mapping[tuple[int, int], Outcome]  # (number of a template, repair) -> outcome in an earlier process


@dataclass(frozen=True)
class AskingPlan:
    """What is known of a search before its first question."""

    dtype: str
    first: bool  # whether it is the job's first dtype
    bound: float | None  # no kernel costs less; None if unknown
    before: int  # templates that were asked for before the search
    questions: int  # during the search
    configurations: int = 0  # the most of a shipped template that one of them asks for; 0: none does


@dataclass
class _Question:
    request: Request
    number: int  # of its template
    current: KernelTemplate | None  # edits are of its text
    until: float  # part of the budget after which the search waits for the answer
    answer: Future[Answer]
    ready: KernelTemplate | None = None  # judged, and waits for the trials after which it joined in the recording


@dataclass
class Reviser:
    """A source of templates during the search of one dtype."""

    author: LlmAuthor
    recording: RecordedTransport
    judge: Judge
    steering: Steering
    plan: AskingPlan
    recorded: Recorded
    note: Callable[[Round], None]
    note_question: Callable[[int, int, Choice], None]  # (number of its template, trials so far, what it asks for)
    remarks: Remarks
    manual: ManualTransport | None = None  # the search does not wait for its answers
    _number: int = field(init=False)  # of the last template that was asked for
    _left: int = field(init=False)  # questions
    _since: int = field(default=0, init=False)  # trials when the last question was settled
    _untried: int = field(default=-1, init=False)  # trials when the last template joined
    _question: _Question | None = field(default=None, init=False)
    _settled: list[Settled] = field(default_factory=list, init=False)
    _configured: bool = field(init=False)  # whether configurations were asked for

    def __post_init__(self) -> None:
        asked = (one.choice.action for one in self.recording.requests if one.dtype == self.plan.dtype)
        self._configured = not self.plan.configurations or CONFIGURE in asked
        self._number, self._left = self.plan.before, self.plan.questions

    def __call__(self, ended: Sequence[Finished], spent: float) -> Sequence[KernelTemplate]:
        """As `search.arms.Revise`."""
        while (question := self._question or self._next(ended, spent)) is not None:
            self._question = question
            if question.ready is None:
                if not question.answer.done() and not self._comes(question, spent):
                    return ()
                self._question = self._judged(question, len(ended))
                continue
            seed = question.request.seed
            joined = self.recording.joined_after(seed)
            if joined is not None and joined > len(ended) and spent < 1:
                return ()
            if joined is None and not self.recording.replays:
                self.recording.join(seed, len(ended))
            self._question, self._since = None, len(ended) if joined is None else joined
            self._untried = len(ended)
            return (question.ready,)
        return ()

    def _comes(self, question: _Question, spent: float) -> bool:
        """Whether the answer is here, or the search has to wait for it."""
        if self.manual is None:
            return spent >= question.until
        if not self.manual.has_answer(question.request):
            return False
        self.remarks.at_end.clear()
        question.answer.set_result(self._answer(question.request, question.current))
        return True

    def _next(self, ended: Sequence[Finished], spent: float) -> _Question | None:
        """The next question if it is due; it is on its way."""
        of = (self.plan.dtype, "") if self.plan.first else (self.plan.dtype,)
        recorded = self.recording.next_question(self.author.seed + self._number, of)
        if self._left <= 0 or (recorded is None and (self.recording.replays or self._ends(ended))):
            self._left = 0
            return None
        if recorded is None and len(ended) == self._untried:  # its trials are part of the question
            return None
        asked = self.plan.questions - self._left
        part = 1 / (self.plan.questions + 1)
        patient = self._since + PATIENCE if self._number else 0
        trials = recorded.trials if recorded is not None else patient
        if len(ended) < trials and spent < (1 if recorded is not None else (asked + 1) * part):
            return None
        if recorded is None:
            trials = len(ended)
        best = _best([one for one in ended[:trials] if one.trial.variant.template.author not in offline.AUTHORS])
        asking: Asking | None = None
        shipped = _best([one for one in ended[:trials] if one.trial.variant.template.author in offline.AUTHORS])
        if recorded is not None:
            request = recorded
        elif shipped is not None and not self._configured:
            request = self._for_configurations(ended, shipped)
        elif best is None and (not self.plan.first or (self.author.has_passed and spent < 1)):  # its trials are due
            return None
        else:
            if best is not None:
                asking = self.steering(ended, best, self._settled, self._left)
                if asking is None:  # the policy stops
                    self._left = 0
                    return None
            choice = asking.choice if asking else Choice()
            messages = self.author.asking(asking.standing if asking else None, choice)
            request = self.author.request(messages, self._next_number, trials, self.plan.dtype, choice)
        self._number, self._left = request.seed - self.author.seed, self._left - 1
        self.note_question(self._number, trials, request.choice)
        current = _named(request.choice.parent, ended[:trials]) or best
        return self._asked(request, current.trial.variant.template if current is not None else None, (asked + 2) * part)

    def _for_configurations(self, ended: Sequence[Finished], shipped: Finished) -> Request:
        """The question for configurations of the best shipped template."""
        self._configured = True
        template = shipped.trial.variant.template
        tried = [one for one in ended if one.trial.variant.template.digest == template.digest]
        messages = self.author.configuring(self.steering.standing(ended, shipped), tried, self.plan.configurations)
        choice = Choice(template.digest, CONFIGURE, HEAD, f"configurations of {template.name} before the tuner's")
        return self.author.request(messages, self._next_number, len(ended), self.plan.dtype, choice)

    @property
    def _next_number(self) -> int:
        """Of the next template; other dtypes have numbers too."""
        last = max((one.seed - self.author.seed for one in self.recording.requests), default=0)
        return max(last, self._number) + 1

    def _ends(self, ended: Sequence[Finished]) -> bool:
        """Whether no further question is useful."""
        best, bound = _best(ended), self.plan.bound
        near = best is not None and bound is not None and (best.score.cost or math.inf) <= NEAR * bound
        return near or self.author.exhausted

    def _asked(self, request: Request, current: KernelTemplate | None, until: float) -> _Question:
        found: Future[Answer] = Future()

        def ask() -> None:
            try:
                found.set_result(self._answer(request, current))
            except BaseException as error:
                found.set_exception(error)

        number = request.seed - self.author.seed
        if self.recording.knows(request):
            ask()
        elif self.manual is not None:
            self.recording.announce(request)
            text = self.manual.waiting(request)
            self.remarks.now.append(text)
            self.remarks.at_end[:] = [f"{text}, and run the same command again"]
        else:  # a daemon: the search may end, and the process with it, while a model still writes
            threading.Thread(target=ask, daemon=True, name=f"question {number}").start()
        return _Question(request, number, current, until, found)

    def _answer(self, request: Request, current: KernelTemplate | None) -> Answer:
        return self.author.ask(request, current)

    def _judged(self, question: _Question, trials: int) -> _Question | None:
        """The question with its template ready, or for a repair; None if nothing comes of it. Waits for the answer."""
        answer, repair = question.answer.result(), question.request.place.repair
        known = self.recorded.get((question.number, repair))
        outcome = self.author.judged(answer, self.judge if known is None else lambda _: known)
        if known is None:
            self.note(Round(question.number, repair, answer.template, outcome))
        if answer.final:
            self._left = 0
        again = self.author.repairing(answer, outcome)
        asked = question.request
        request = self.author.request(again or (), question.number, asked.trials, asked.dtype, asked.choice)
        may_ask = not (self.recording.replays or self.author.exhausted)
        if again is not None and (may_ask or self.recording.knows(request)):
            return self._asked(self.recording.same(request), question.current, question.until)
        accepted = answer.template.digest if outcome.ok and answer.template is not None else ""
        given = outcome if answer.text is not None else None
        if asked.choice.action != CONFIGURE:
            self._settled.append(Settled(asked.choice, given, answer.template is not None, accepted))
        if outcome.ok and answer.template is not None:
            parent = question.current.digest if question.current else ""
            return replace(question, ready=replace(answer.template, parent=parent))
        self._since = trials
        return None


def _named(digest: str, ended: Sequence[Finished]) -> Finished | None:
    return next((one for one in ended if digest and one.trial.variant.template.digest == digest), None)


def _best(ended: Sequence[Finished]) -> Finished | None:
    passed = [one for one in ended if one.outcome.ok and one.score.cost is not None]
    return min(passed, key=lambda one: one.score.cost or math.inf, default=None)
