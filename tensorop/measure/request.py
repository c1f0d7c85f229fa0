"""What a target is asked to measure, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tensorop.model.call import Call, CallOutput, Reply
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.runners import session
from tensorop.runners.base import Runner
from tensorop.runners.protocol import Count, Entry, Time
from tensorop.runners.session import Guest

_OK = Outcome(Kind.OK, "measure")

Judge = Callable[[int, tuple[CallOutput, ...]], Outcome]  # of a call, by its number: what it left


class Purpose(Enum):
    """What figures are for, which says how they are taken."""

    SEARCH = "search"  # quickly: several calls of one entry in one process
    CHOICE = "choice"  # one call of several entries, by turns on a clock
    RANGES = "ranges"  # so too, over a model's assumed constants (`choices`) and alternatives (`under`)
    COMPARISON = "comparison"  # one call of a library and its baseline, which comes last: a wrong one has a figure too
    FINAL = "final"  # so too, slowly and exactly


@dataclass(frozen=True)
class MeasureRequest:
    """Several calls of one entry, or one call of several entries."""

    program: Path
    calls: Sequence[Call]
    entries: Sequence[Entry] = (Entry(),)
    purpose: Purpose = Purpose.SEARCH
    vlen: int = 0  # bits, under a model
    warm: Sequence[int] = ()  # by call, how often it is made before it is counted: once where nothing is said
    judge: Judge | None = None
    empty: bool = False  # what a call costs before and after its function is taken off
    judged_by: str = ""  # what the judge is made of; with it figure and verdict of a program are remembered for good
    guest: Guest | None = None  # how the process is started
    timeout_s: float = 120.0  # for each call

    @property
    def compares(self) -> bool:
        return self.purpose in (Purpose.COMPARISON, Purpose.FINAL)

    def verdict(self, number: int, left: tuple[CallOutput, ...]) -> Outcome:
        """On what the call of this number left."""
        return self.judge(number, left) if self.judge else _OK

    def replies(self, runner: Runner, asked: Sequence[Time | Count]) -> list[Reply] | Outcome:
        """Of the harness, or the first failure's outcome. Raises as `session.run`."""
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
    empty: float | None = None  # cost of a call whose function returns at once, which is taken off
    rounds: tuple[float, ...] = ()  # of a clock, ns a call; those of entries of one request are paired
    steady: bool = True  # the clock's reference did not drift
