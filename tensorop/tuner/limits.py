"""How long a trial may take, by what those of its search took that passed; and which templates are too slow.

Everything here follows from trials that ended, in their order, so that a run that goes on has the limits of one that
never stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import ParamSpec, TypeVar

from tensorop import barrier, deadline
from tensorop.errors import JobError
from tensorop.model.trial import Finished, Kind, Measured, Outcome

P = ParamSpec("P")
T = TypeVar("T")

FACTOR = 10.0  # of the median of those that passed
FIRST_S = 60.0  # while none has; twice that after each that ran into it, for a machine can be slow
LEAST_S = 10.0  # a machine stumbles, and of points that share a build one makes it
STRIKES = 2


@dataclass(frozen=True)
class Limit:
    """What one trial may take, in seconds, and how that came about."""

    seconds: float
    why: str


class Limits:
    """The limits of one search. first_s: the limit while no trial has passed, in seconds."""

    def __init__(self, first_s: float = FIRST_S) -> None:
        self._first_s = first_s
        self._passed: list[float] = []
        self._late = 0  # before any has passed
        self._struck: Counter[str] = Counter()

    @property
    def now(self) -> Limit:
        """Of a trial that begins now, from rendering to measuring."""
        if not self._passed:
            return Limit(self._first_s * 2.0**self._late, "as none of its stage has passed yet")
        many = FACTOR * median(self._passed)
        said = f"{FACTOR:g} times the median of those of its stage that passed"
        return Limit(many, said) if many >= LEAST_S else Limit(LEAST_S, f"more than {said}")

    def tell(self, finished: Finished) -> bool:
        """A trial ended; whether its template is given up with it."""
        if finished.outcome.ok:
            self._passed.append(sum(finished.seconds.values()))
        if finished.outcome.kind is not Kind.TIMEOUT:
            return False
        self._late += not self._passed
        template = finished.trial.variant.draft.digest
        self._struck[template] += 1
        return self._struck[template] == STRIKES


def in_time(where: str, limit: Limit, used: float, call: Callable[P, T], *args: P.args, **how: P.kwargs) -> T | Outcome:
    """A step of a trial behind the barrier, as `barrier.guarded`, in what of its limit is not `used` (seconds).

    What failed after a process of its ran into the limit is TIMEOUT, also where it would have ended the job; a target
    that went away stays LOST.
    """
    found: T | Outcome
    with deadline.within(max(0.0, limit.seconds - used)) as end:
        try:
            found = barrier.guarded(where, call, *args, **how)
        except JobError as error:
            if not end.struck:
                raise
            found = Outcome(Kind.TIMEOUT, where, error.message)
    failed = found if isinstance(found, Outcome) else found.outcome if isinstance(found, Measured) else None
    if not end.struck or failed is None or failed.ok or failed.kind is Kind.LOST:
        return found
    message = f"the trial took longer than its limit of {limit.seconds:.3g} s, {limit.why}"
    return Outcome(Kind.TIMEOUT, failed.where or where, message, failed.log)
