"""Trials from end to end, each within its time limit. A failure is an outcome, never an exception.

`side_by_side` carries out a batch, `carry_out` one trial. A unit is one trial, or several in company; its two steps are
in evaluator.py and company.py: build, then verify and measure.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from tensorop.errors import JobError
from tensorop.model.trial import Kind, Limit, Outcome, Trial, TrialResult
from tensorop.process import children, deadline
from tensorop.process.barrier import guarded
from tensorop.trial import company
from tensorop.trial.company import Apart, Programs
from tensorop.trial.evaluator import Evaluator, Prepared

FIRST_S = 60.0  # time limit of the first trials

P = ParamSpec("P")
T = TypeVar("T")


Built = Programs | Apart | Prepared
Results = Mapping[str, TrialResult]  # by the key of the trial


def side_by_side(evaluate: Evaluator, jobs: int, trials: Sequence[Trial], limit: Limit) -> Generator[TrialResult]:
    """Runs trials and yields their results in the same order. `jobs` units build at once.

    On a clock, the trials are built together, then measured one after the other (or one on each machine). On other
    targets whole trials run side by side.
    """
    units = company.units(evaluate, trials, jobs)
    if evaluate.target.side_by_side:
        with _threads(jobs) as pool:
            yield from _in_order(trials, pool.map(lambda unit: _carried_out(evaluate, unit, limit), units))
        return
    with _threads(jobs) as pool:
        prepared = list(pool.map(lambda unit: _prepared(evaluate, unit, limit), units))
    if (clocks := evaluate.target.clocks) == 1:
        each = (_measured(evaluate, unit, limit, *made) for unit, made in zip(units, prepared, strict=True))
        yield from _in_order(trials, each)
        return
    with _threads(clocks) as machines:
        found = machines.map(lambda unit, made: _measured(evaluate, unit, limit, *made), units, prepared)
        yield from _in_order(trials, found)


def _in_order(trials: Sequence[Trial], found: Iterator[Results]) -> Iterator[TrialResult]:
    done: dict[str, TrialResult] = {}
    for trial in trials:
        while trial.key not in done:
            done |= next(found)
        yield done[trial.key]


@contextlib.contextmanager
def _threads(count: int) -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(count)
    try:
        yield pool
    finally:
        pool.shutdown(wait=not children.ending_for_good(), cancel_futures=True)


def carry_out(evaluate: Evaluator, trial: Trial, limit: Limit) -> TrialResult:
    """Runs both steps of one trial."""
    return _carried_out(evaluate, [trial], limit)[trial.key]


def _carried_out(evaluate: Evaluator, unit: company.Unit, limit: Limit) -> Results:
    return _measured(evaluate, unit, limit, *_prepared(evaluate, unit, limit))


def _prepared(evaluate: Evaluator, unit: company.Unit, limit: Limit) -> tuple[Built | TrialResult, float]:
    """Builds a unit: the programs to measure or the failure, and the seconds that it took."""
    began = time.monotonic()
    found: Built | TrialResult | Outcome
    if company.takes(evaluate, unit[0].variant):
        found = in_time("prepare", limit.of(len(unit)), 0.0, company.prepare, evaluate, unit)
    else:
        found = in_time("prepare", limit, 0.0, company.prepare_apart, evaluate, unit[0])
    used = time.monotonic() - began
    return (_failed(found, build=used / len(unit)) if isinstance(found, Outcome) else found), used


def _measured(
    evaluate: Evaluator, unit: company.Unit, limit: Limit, prepared: Built | TrialResult, used: float
) -> Results:
    """Verifies and measures a built unit; a trial that fails in company is tried again alone.

    used: seconds of the limit that are spent
    """
    found: Results
    if isinstance(prepared, TrialResult):
        found = {unit[0].key: prepared} if len(unit) == 1 else {}
    elif isinstance(prepared, Programs):
        began = time.monotonic()
        made = in_time("measure", limit.of(len(unit)), used, company.measure, evaluate, unit, prepared)
        if isinstance(made, Outcome):
            failed = _failed(made, build=used / len(unit), measure=(time.monotonic() - began) / len(unit))
            alone = len(unit) == 1 or made.kind is Kind.LOST
            made = {trial.key: failed for trial in unit} if alone else {}
        found = made
    else:
        found = {unit[0].key: measure(evaluate, unit[0], limit, prepared, used)}
    again = [trial for trial in unit if trial.key not in found]
    return {**found, **{trial.key: carry_out(evaluate, trial, limit) for trial in again}}


def measure(evaluate: Evaluator, trial: Trial, limit: Limit, prepared: Prepared | Apart, used: float) -> TrialResult:
    """Verifies and measures a built trial. used: seconds of the limit that are spent."""
    began = time.monotonic()
    if isinstance(prepared, Apart):
        found = in_time("measure", limit, used, company.measure_apart, evaluate, trial, prepared)
    else:
        found = in_time("measure", limit, used, evaluate.measure, trial, prepared)
    took = time.monotonic() - began
    return _failed(found, build=used, measure=took) if isinstance(found, Outcome) else found


def _failed(outcome: Outcome, **seconds: float) -> TrialResult:
    return TrialResult(outcome, seconds={stage: round(took, 4) for stage, took in seconds.items()})


def in_time(where: str, limit: Limit, used: float, call: Callable[P, T], *args: P.args, **how: P.kwargs) -> T | Outcome:
    """Runs a step of a trial within the rest of its limit, as `guarded`. used: seconds that are spent.

    A failure after a process ran into the limit is TIMEOUT, even if it would have ended the job. An unreachable target
    stays LOST.
    """
    found: T | Outcome
    with deadline.within(max(0.0, limit.seconds - used)) as end:
        try:
            found = guarded(where, call, *args, **how)
        except JobError as error:
            if not end.struck:
                raise
            found = Outcome(Kind.TIMEOUT, where, error.message)
    failed = found if isinstance(found, Outcome) else found.outcome if isinstance(found, TrialResult) else None
    if not end.struck or failed is None or failed.ok or failed.kind is Kind.LOST:
        return found
    message = f"the trial took longer than its limit of {limit.seconds:.3g} s, {limit.why}"
    return Outcome(Kind.TIMEOUT, failed.where or where, message, failed.log)
