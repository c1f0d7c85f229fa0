"""A trial from end to end in its time: what there is to measure, then what it costs. A failure is an outcome."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Protocol, TypeVar

from tensorop.model.trial import Measured, Outcome, Trial
from tensorop.process.barrier import Limit, in_time

P = TypeVar("P")


class Evaluator(Protocol[P]):
    """Carries out trials; a failing candidate is an outcome, never an exception."""

    def prepare(self, trial: Trial) -> P | Measured:
        """Renders and builds; called from several threads at once. `Measured` when the trial failed here."""

    def measure(self, trial: Trial, prepared: P) -> Measured:
        """Verifies and measures; called from one thread at a time unless the search says otherwise."""


def whole(evaluate: Evaluator[P], trial: Trial, limit: Limit) -> Measured:
    """Both steps."""
    made = prepare(evaluate, trial, limit)
    return measure(evaluate, trial, made[0], limit, made[1])


def prepare(evaluate: Evaluator[P], trial: Trial, limit: Limit) -> tuple[P | Measured, float]:
    """What there is to measure, and the seconds that took."""
    began = time.monotonic()
    found = in_time("prepare", limit, 0.0, evaluate.prepare, trial)
    used = time.monotonic() - began
    return (_failed(found, {"build": used}) if isinstance(found, Outcome) else found), used


def measure(evaluate: Evaluator[P], trial: Trial, prepared: P | Measured, limit: Limit, used: float) -> Measured:
    """How it went. used: of the limit, in seconds."""
    if isinstance(prepared, Measured):
        return prepared
    began = time.monotonic()
    found = in_time("measure", limit, used, evaluate.measure, trial, prepared)
    seconds = {"build": used, "measure": time.monotonic() - began}
    return _failed(found, seconds) if isinstance(found, Outcome) else found


def _failed(outcome: Outcome, seconds: Mapping[str, float]) -> Measured:
    return Measured(outcome, seconds={stage: round(took, 4) for stage, took in seconds.items()})
