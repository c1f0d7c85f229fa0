"""Time by the target's own clock: pinned, warmed, interleaved, with a reference that tells when not to trust it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tensorop import paths
from tensorop.measure import statistics
from tensorop.model.bench import Ratio
from tensorop.model.call import Call, Left
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.process import locks
from tensorop.runners import session
from tensorop.runners.base import Runner
from tensorop.runners.protocol import Entry, Time
from tensorop.runners.session import Guest

DRIFT = 0.10
REPEATS = 2


@dataclass(frozen=True)
class Pace:
    """How long to measure, as protocol.Time has it."""

    rounds: int = 15
    warm_ns: int = 5_000_000
    min_ns: int = 2_000_000
    max_ns: int = 2_000_000_000

    def request(self, call: Call, entries: Sequence[Entry], keep: bool) -> Time:
        return Time(call, tuple(entries), **asdict(self), keep=keep)


@dataclass(frozen=True)
class Timed:
    """samples: by entry, ns a call; rounds: by entry, the medians' raw figures, paired across entries by position.

    moved: how far the reference drifted, as a share.
    empty: by entry, ns of a call whose function returns at once, taken off all of the above; nothing where none was.
    left: by entry the different results of its batches, if kept.
    """

    samples: tuple[Samples, ...]
    rounds: tuple[tuple[float, ...], ...]
    moved: float = 0.0
    empty: tuple[float, ...] = ()
    left: tuple[tuple[Left, ...], ...] = ()

    @property
    def steady(self) -> bool:
        return self.moved <= DRIFT

    def ratio(self, ours: int, baseline: int) -> Ratio:
        """Of two entries of this measurement."""
        return statistics.ratio(self.rounds[ours], self.rounds[baseline])


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One measurement at a time on this machine, over all of its processes of this user."""
    with locks.held(paths.cache_dir("locks") / "clock.lock", "it measures by the clock of this machine"):
        yield


def time_entries(
    runner: Runner,
    program: Path,
    call: Call,
    entries: Sequence[Entry],
    *,
    pace: Pace = Pace(),
    guest: Guest | None = None,
    reference: int = 0,
    timeout_s: float = 120.0,
    tolerate: bool = False,
    empty: bool = False,
    keep: bool = False,
) -> Timed | Outcome:
    """Interleaved times of each entry on one call.

    reference: the entry (a baseline, or a kernel timed before) whose figure must not move by more than 10 % within the
    window: else the window is measured again, at most twice.
    guest: by default pinned to the runner's processor with the sandbox on.
    tolerate: where no window was steady, the one that moved least is returned in place of an outcome, for paired
    ratios, which bear it better than single figures.
    empty: measures beside each entry what a call costs before and after its function, and takes it off.
    keep: brings back what each entry's batches left.
    Returns an outcome when a call failed, no window was steady or a call took no longer than an empty one (NOISY).
    Raises as `session.run`.
    """
    if guest is None:
        guest = Guest(cpu=runner.processor)
    every = (*entries, *(replace(entry, empty=True) for entry in entries)) if empty else entries
    request = pace.request(call, every, keep)
    drifted = ""
    best: Timed | None = None
    for _ in range(1 + REPEATS):
        with alone():
            (reply,) = session.run(runner, program, [request], timeout_s=timeout_s, guest=guest, where="measure")
        if not reply.outcome.ok:
            return replace(reply.outcome, where="measure")
        rounds, off = _less(reply.samples, len(entries))
        if min(map(min, rounds)) <= 0:  # a slow moment of the machine, or a call that does nothing
            drifted = "a call took no longer than one that does nothing"
            continue
        moved = statistics.drift(reply.samples[reference])
        left = reply.left[: len(entries)]
        timed = Timed(tuple(statistics.summary(r) for r in rounds), rounds, moved, off, left)
        if timed.steady:
            return timed
        best = timed if best is None or moved < best.moved else best
        drifted = f"the reference moved by {100 * moved:.0f} %"
    if tolerate and best is not None:
        return best
    return Outcome(Kind.NOISY, "measure", f"{drifted} in each of {1 + REPEATS} windows")


def _less(
    samples: tuple[tuple[float, ...], ...], entries: int
) -> tuple[tuple[tuple[float, ...], ...], tuple[float, ...]]:
    """The rounds of the first `entries` without the medians of their empty calls, which follow; those medians."""
    off = tuple(statistics.quartiles(rounds)[1] for rounds in samples[entries:])
    taken = off or (0.0,) * entries
    rounds = tuple(tuple(x - less for x in own) for own, less in zip(samples[:entries], taken, strict=True))
    return rounds, off


def time_calls(
    runner: Runner,
    program: Path,
    calls: Sequence[Call],
    entry: Entry,
    *,
    pace: Pace = Pace(),
    guest: Guest | None = None,
    timeout_s: float = 120.0,
    judge: Callable[[int, tuple[Left, ...]], Outcome],
) -> tuple[Samples, ...] | Outcome:
    """Times of one entry on several calls, in a single process, without a reference: for searches, whose finalists are
    measured again. judge: of a call, by its number, what its batches left. Returns the first failure's outcome."""
    if guest is None:
        guest = Guest(cpu=runner.processor)
    requests = [pace.request(call, (entry,), keep=True) for call in calls]
    with alone():
        replies = session.run(
            runner, program, requests, timeout_s=timeout_s, guest=guest, give_up_after=1, where="measure"
        )
    failed = next((reply.outcome for reply in replies if not reply.outcome.ok), None)
    failed = failed or next((o for i, reply in enumerate(replies) if not (o := judge(i, reply.left[0])).ok), None)
    return failed or tuple(statistics.summary(reply.samples[0]) for reply in replies)
