"""Events of a search, in the order in which they happen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tensorop.model.kernel import Kernel
from tensorop.model.trial import Finished, Limit, Outcome, Trial


class EndReason(StrEnum):
    """Why a search ended."""

    BUDGET = "budget"
    EXHAUSTED = "exhausted"
    INTERRUPTED = "interrupted"
    LOST = "target-lost"


@dataclass(frozen=True)
class Began:
    """A trial begins. attempt: 2 if an earlier process died during it."""

    trial: Trial
    attempt: int


@dataclass(frozen=True)
class TrialEnded:
    """A trial ended.

    best: the best trial so far, this one included; replayed: it was read from the journal
    trials: trials that ended so far in this search; left: expected further seconds, None before a batch has ended
    """

    finished: Finished
    best: Finished | None
    replayed: bool
    trials: int
    left: float | None


@dataclass(frozen=True)
class Lost:
    """The target became unreachable during a trial; the trial will be repeated."""

    trial: Trial
    outcome: Outcome


@dataclass(frozen=True)
class Exhausted:
    """An arm has no legal point left."""

    arm: Kernel


@dataclass(frozen=True)
class GivenUp:
    """Trials of a template timed out too often; it gets no further ones in this search."""

    template: str
    limit: Limit


@dataclass(frozen=True)
class SearchEnded:
    """The last event of every search. trials, seconds: of the whole search, including earlier processes."""

    reason: EndReason
    best: Finished | None
    trials: int
    seconds: float


SearchEvent = Began | TrialEnded | Lost | Exhausted | GivenUp | SearchEnded
