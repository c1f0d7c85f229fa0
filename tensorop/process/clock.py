"""The seconds and trials that a budget still has, and the seconds that each step of a trial takes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace

from tensorop.model.budget import Budget


class Clock:
    """The rest of a budget. seconds: spent before this run, from the journal; trials: number that ended."""

    def __init__(self, budget: Budget, seconds: float = 0.0, trials: int = 0) -> None:
        self._budget = budget
        self._began = time.monotonic() - seconds
        self.trials = trials

    @property
    def elapsed(self) -> float:
        """Seconds spent, including earlier runs."""
        return time.monotonic() - self._began

    def pause(self, seconds: float) -> None:
        """Leaves the last seconds out: nothing was tried in them."""
        self._began += seconds

    def extend(self, trials: int) -> None:
        """Allows so many more trials than have ended, if that is more than the budget has."""
        if self._budget.trials is not None:
            self._budget = replace(self._budget, trials=max(self._budget.trials, self.trials + trials))

    @property
    def spent(self) -> float:
        """The part of the budget that is spent, from 0 to 1."""
        seconds, trials = self._budget.seconds, self._budget.trials
        return min(1.0, max(self.elapsed / seconds if seconds else 0.0, self.trials / trials if trials else 0.0))

    @property
    def out_of_time(self) -> bool:
        return self._budget.seconds is not None and self.elapsed >= self._budget.seconds

    @property
    def trials_in_time(self) -> int | None:
        """Trials until the time is over, at the pace so far; None without a time limit or an ended trial."""
        seconds = self._budget.seconds
        if seconds is None or not self.trials:
            return None
        return math.ceil(self.trials * max(0.0, seconds / self.elapsed - 1))

    @property
    def trials_left(self) -> int | None:
        return None if self._budget.trials is None else max(0, self._budget.trials - self.trials)

    def seconds_left(self, each: float, due: int = 0) -> float:
        """Expected seconds until the end. each: seconds of a trial; due: trials that run even without time."""
        by_time = math.inf if self._budget.seconds is None else max(0.0, self._budget.seconds - self.elapsed)
        trials = math.inf if self.trials_left is None else self.trials_left
        return max(min(by_time, trials * each), min(trials, due) * each)


class StageClock:
    """Seconds of each step of one trial."""

    def __init__(self, seconds: Mapping[str, float] | None = None) -> None:
        self.seconds: dict[str, float] = dict(seconds or {})
        self._last = time.monotonic()

    def lap(self, stage: str) -> dict[str, float]:
        now = time.monotonic()
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + now - self._last, 4)
        self._last = now
        return self.seconds
