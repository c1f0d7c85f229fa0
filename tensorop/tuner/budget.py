"""How long a search may take: seconds on the monotonic clock, a number of trials, or both."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from tensorop.errors import UsageError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "ms": 0.001}


@dataclass(frozen=True)
class Budget:
    """A limit. `seconds` and `trials` may both be given; the first one reached ends the search."""

    seconds: float | None = None
    trials: int | None = None

    def __post_init__(self) -> None:
        if self.seconds is None and self.trials is None:
            raise UsageError("a search needs a budget", hint="give --budget 2m or --trials 100")
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise UsageError(f"a budget of {self.seconds:g} seconds", hint="give a positive time, e.g. --budget 2m")
        if self.trials is not None and self.trials < 1:
            raise UsageError(f"a budget of {self.trials} trials", hint="give at least --trials 1")

    def share(self, part: float) -> Budget:
        """That fraction of it, at least one trial."""
        seconds = None if self.seconds is None else self.seconds * part
        return Budget(seconds, None if self.trials is None else max(1, round(self.trials * part)))


def parse_seconds(text: str) -> float:
    """'90s', '3m', '1h', '1m30s' in seconds; raises UsageError for anything else, a number without a unit included."""
    if re.fullmatch(r"\s*\d+(\.\d+)?\s*", text):
        number = text.strip()
        raise UsageError(f"'{text}' has no unit: {number}s or {number}m?", hint="write e.g. 90s, 3m or 1h30m")
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|[smh])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise UsageError(f"'{text}' is not a time", hint="write e.g. 90s, 3m or 1h30m")
    return float(sum(float(number) * _UNITS[unit] for number, unit in parts))


class Clock:
    """What is left of a budget. `seconds` and `trials`: spent before this run, known from the journal."""

    def __init__(self, budget: Budget, seconds: float = 0.0, trials: int = 0) -> None:
        self._budget = budget
        self._began = time.monotonic() - seconds
        self._trials = trials

    @property
    def elapsed(self) -> float:
        """Seconds spent, earlier runs included."""
        return time.monotonic() - self._began

    @property
    def trials(self) -> int:
        return self._trials

    @property
    def out_of_time(self) -> bool:
        return self._budget.seconds is not None and self.elapsed >= self._budget.seconds

    @property
    def trials_left(self) -> int | None:
        return None if self._budget.trials is None else max(0, self._budget.trials - self._trials)

    @property
    def spent(self) -> bool:
        return self.out_of_time or self.trials_left == 0

    @property
    def seconds_left(self) -> float | None:
        """By the limit that is known to come: None under a budget of trials alone before the first one ended."""
        by_time = None if self._budget.seconds is None else max(0.0, self._budget.seconds - self.elapsed)
        if self.trials_left is None or not self._trials:
            return by_time
        by_trials = self.elapsed / self._trials * self.trials_left
        return by_trials if by_time is None else min(by_time, by_trials)

    def count(self) -> None:
        """One more trial ended."""
        self._trials += 1
