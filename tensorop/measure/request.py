"""Records of a measurement: what a target is asked to measure, and the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tensorop.measure.board import Executed
from tensorop.model.call import Call, CallOutput, Reply
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.runners import session
from tensorop.runners.base import Runner
from tensorop.runners.protocol import Count, Entry, Time
from tensorop.runners.session import Guest

_OK = Outcome(Kind.OK, "measure")

Judge = Callable[[int, tuple[CallOutput, ...]], Outcome]  # (number of a call, its outputs) -> outcome


class Purpose(Enum):
    """The purpose of a measurement, which decides how it is made."""

    SEARCH = "search"  # fast: several calls of one entry in one process
    CHOICE = "choice"  # one call of several entries, interleaved on a clock
    RANGES = "ranges"  # as CHOICE, also over a model's assumed constants (`choices`) and alternatives (`under`)
    COMPARISON = "comparison"  # one call of a library and its baseline, which is last; wrong ones are measured too
    FINAL = "final"  # as COMPARISON, with more rounds


@dataclass(frozen=True)
class MeasureRequest:
    """Several calls, all of one entry or each of its own, or one call of several entries."""

    program: Path
    calls: Sequence[Call]
    entries: Sequence[Entry] = (Entry(),)
    purpose: Purpose = Purpose.SEARCH
    vlen: int = 0  # bits, under a model
    warm: Sequence[int] = ()  # for each call, warming calls before it; default 1
    judge: Judge | None = None
    empty: bool = False  # subtract the cost of an empty call
    judged_by: str = ""  # identity of the judge; if set, cost and verdict are cached
    guest: Guest | None = None  # options of the process
    timeout_s: float = 120.0  # for each call
    profile: bool = False  # under a model, stalls by instruction too

    @property
    def pairs(self) -> list[tuple[Call, Entry]]:
        """Several calls, each with its entry."""
        entries = self.entries if len(self.entries) > 1 else [*self.entries] * len(self.calls)
        return list(zip(self.calls, entries, strict=True))

    @property
    def compares(self) -> bool:
        return self.purpose in (Purpose.COMPARISON, Purpose.FINAL)

    def verdict(self, number: int, left: tuple[CallOutput, ...]) -> Outcome:
        """The judge's outcome for the outputs of a call."""
        return self.judge(number, left) if self.judge else _OK

    def replies(self, runner: Runner, asked: Sequence[Time | Count]) -> list[Reply] | Outcome:
        """The harness's replies, or the outcome of the first failure. Raises as `session.run`."""
        replies = session.run(
            runner,
            self.program,
            asked,
            timeout_s=self.timeout_s,
            guest=self.guest or Guest(),
            give_up_after=1,
        )
        return next((reply.outcome for reply in replies if not reply.outcome.ok), replies)


@dataclass(frozen=True)
class Measurement:
    """The cost of one call of one entry."""

    samples: Samples
    verdict: Outcome = _OK
    empty: float | None = None  # subtracted cost of a call whose function returns at once
    rounds: tuple[float, ...] = ()  # on a clock: ns a call; rounds of one request's entries are paired
    steady: bool = True  # the clock's reference did not drift
    profile: tuple[Executed, ...] = ()  # if asked for
