"""Measures time with the target's clock: pinned, warmed and interleaved, with a reference that detects drift."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from tensorop import paths
from tensorop.measure import statistics
from tensorop.measure.request import Measurement, MeasureRequest, Purpose
from tensorop.model.call import Call, CallOutput
from tensorop.model.trial import Kind, Outcome
from tensorop.process import locks
from tensorop.runners.base import Runner
from tensorop.runners.protocol import Entry, Time
from tensorop.runners.session import Guest

DRIFT = 0.10
REPEATS = 2


@dataclass(frozen=True)
class Pace:
    """How long to measure; the fields are those of protocol.Time."""

    rounds: int = 15
    warm_ns: int = 5_000_000
    min_ns: int = 2_000_000
    max_ns: int = 2_000_000_000

    def request(self, call: Call, entries: Sequence[Entry], keep: bool, alone: bool = False) -> Time:
        return Time(call, tuple(entries), **asdict(self), keep=keep, alone=alone)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Holds a lock so that this user's processes measure one at a time on this machine."""
    with locks.held(paths.cache_dir("locks") / "clock.lock", "it measures by the clock of this machine"):
        yield


def measure(runner: Runner, request: MeasureRequest, pace: Pace) -> tuple[Measurement, ...] | Outcome:
    """Time in ns of each call, or of one call by each entry.

    The process is pinned, by default to the runner's processor.

    Returns the outcome of the first failure; also of a wrong result, unless libraries are compared. Raises as
    `session.run`.
    """
    request = replace(request, guest=request.guest or Guest(cpu=runner.processor))
    if request.purpose is Purpose.SEARCH:
        return _one_by_one(runner, request, pace)
    return _interleaved(runner, request, pace)


def _one_by_one(runner: Runner, request: MeasureRequest, pace: Pace) -> tuple[Measurement, ...] | Outcome:
    """Times calls without a reference: a search needs many results rather than exact ones."""
    asked = [pace.request(call, (entry,), keep=True, alone=True) for call, entry in request.pairs]
    with alone():
        replies = request.replies(runner, asked)
    if isinstance(replies, Outcome):
        return replies
    verdicts = (request.verdict(number, reply.left[0]) for number, reply in enumerate(replies))
    wrong = next((verdict for verdict in verdicts if not verdict.ok), None)
    return wrong or tuple(Measurement(statistics.summary(reply.samples[0])) for reply in replies)


@dataclass(frozen=True)
class _Window:
    """Interleaved entries: ns of a call by entry and round, and the subtracted medians of empty calls."""

    moved: float  # drift of the reference, as a share
    rounds: Sequence[tuple[float, ...]]
    empty: Sequence[float]
    left: Sequence[tuple[CallOutput, ...]]


def _interleaved(runner: Runner, request: MeasureRequest, pace: Pace) -> tuple[Measurement, ...] | Outcome:
    """Times interleaved entries.

    If the reference drifts by more than 10 % within a window, the window is repeated, at most twice. The window with
    the least drift counts, since paired ratios tolerate it. NOISY if some call was faster than an empty one in every
    window.
    """
    entries = tuple(request.entries)
    every = (*entries, *(replace(entry, empty=True) for entry in entries)) if request.empty else entries
    asked = pace.request(request.calls[0], every, keep=request.judge is not None)
    best: _Window | None = None
    for _ in range(1 + REPEATS):
        with alone():
            replies = request.replies(runner, [asked])
        if isinstance(replies, Outcome):
            return replies
        samples = replies[0].samples
        empty = [statistics.quartiles(rounds)[1] for rounds in samples[len(entries) :]]
        taken_off = empty or [0.0] * len(entries)
        rounds = [tuple(x - off for x in own) for own, off in zip(samples[: len(entries)], taken_off, strict=True)]
        if min(map(min, rounds)) <= 0:  # the machine was slow for a moment, or the call does nothing
            continue
        moved = statistics.drift(samples[len(entries) - 1 if request.compares else 0])
        if best is None or moved < best.moved:
            best = _Window(moved, rounds, empty, replies[0].left)
        if moved <= DRIFT:
            break
    if best is None:
        why = "a call took no longer than one that does nothing"
        return Outcome(Kind.NOISY, "measure", f"{why} in each of {1 + REPEATS} windows")
    verdicts = [request.verdict(0, best.left[i] if best.left else ()) for i in range(len(entries))]
    wrong = next((verdict for verdict in verdicts if not verdict.ok), None)
    if wrong and not request.compares:
        return wrong
    return tuple(
        Measurement(
            statistics.summary(rounds), verdict, best.empty[i] if best.empty else None, rounds, best.moved <= DRIFT
        )
        for i, (rounds, verdict) in enumerate(zip(best.rounds, verdicts, strict=True))
    )
