"""Chooses the number of calls in a timing's batches, and checks the reported times with this process's clock.

The timed process runs untrusted code. So this process chooses the batches, and compares the reported times with the
time that passed here between the first answer and the last report.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_PATIENCE = 8  # times the minimum warm-up, for batches that keep getting faster
_ENOUGH = 1 << 40  # calls: no real batch has so many
_REPORTS = 64  # maximum number of reports of an entry, besides one per round


Clocks = Callable[[], tuple[float, float | None]]  # elapsed seconds; processor seconds of the process if known


def clocks(process: int | None = None) -> tuple[float, float | None]:
    """This process's clock, and the processor time of another process on this machine.

    The kernel measures the processor time, whatever code runs in the process.
    """
    ran = None
    if process is not None:
        with contextlib.suppress(OSError):  # the process has ended
            ran = time.clock_gettime(~process << 3 | 2)  # clock_getcpuclockid(3)
    return time.monotonic(), ran


class BadReport(Exception):
    """A report that a correct harness never sends."""


@dataclass
class _Entry:
    named: list[int] = field(default_factory=list)  # requested numbers of calls
    spent: float = 0.0  # ns of its batches
    before: float = 0.0  # ns per call of the previous batch
    settled: bool = False  # warmed up: further batches are timed
    reports: int = 0


class Counts:
    """The batches of one timing.

    entries: how many; rounds: maximum number of timed batches of each entry; warm_ns: minimum warm-up; min_ns: minimum
    duration of a batch; cold: each batch is a single call without warm-up.
    """

    def __init__(
        self,
        entries: int,
        rounds: int,
        warm_ns: float,
        min_ns: float,
        cold: bool,
        clock: Clocks = clocks,
    ) -> None:
        self._entries = [_Entry() for _ in range(entries)]
        self._rounds, self._warm_ns, self._min_ns, self._cold = rounds, warm_ns, min_ns, cold
        self._clock = clock
        self._began = self._ended = clock()
        self.words = self.reported_ns = 0
        self._over = False

    @property
    def window(self) -> float:
        """Seconds from the first answer to the last report."""
        return self._ended[0] - self._began[0]

    @property
    def busy(self) -> float | None:
        """Seconds that the process ran in the window; None if unknown."""
        before, after = self._began[1], self._ended[1]
        return None if before is None or after is None else after - before

    def answer(self, number: int, calls: int, ns: int) -> tuple[int, bool] | None:
        """The next number of calls and whether they are timed, after a batch of `calls` calls that took `ns`.

        None if no batch follows. Raises BadReport.
        """
        self.words += 1
        self._ended = self._clock()
        if number == len(self._entries) and self.words > 1 and not self._over:
            self._over = True
            return None
        if number >= len(self._entries) or self._over:
            raise BadReport("a report of an entry that was not asked for")
        if self.words == 1:
            self._began = self._ended
        entry = self._entries[number]
        entry.reports += 1
        if not entry.named:
            entry.named.append(1)
            return 1, self._cold
        if self._cold or entry.reports > _REPORTS + self._rounds:
            raise BadReport("more reports than batches that were asked for")
        if not self._made(entry.named[-1], calls):
            raise BadReport(f"a batch of {calls} calls where {entry.named[-1]} were asked for")
        self.reported_ns += ns
        wanted = self._next(entry, calls, ns)
        if wanted > _ENOUGH:
            raise BadReport("calls that take no time")
        if wanted != entry.named[-1]:
            entry.named.append(wanted)
        return wanted, entry.settled

    def check(self, number: int, calls: float, ns: float) -> None:
        """Checks that a timed batch was requested and lasts min_ns. Raises BadReport."""
        fits = [n for n in self._entries[number].named if self._made(n, calls)]
        if not fits or not (self._cold or max(fits) * ns / calls >= 0.999 * self._min_ns):
            raise BadReport(f"a timed batch of {calls:g} calls, {ns:g} ns, that was not asked for")

    @staticmethod
    def _made(named: int, calls: float) -> bool:
        """Whether `calls` fits a request of `named` calls: the harness omits up to an eighth plus one, at random."""
        return max(1, named - named // 8 - 1) <= calls <= named

    def _next(self, entry: _Entry, calls: int, ns: int) -> int:
        """The number of calls that lasts 1.1 x min_ns.

        Warm-up lasts warm_ns, then until a batch is less than 10 % faster than the one before, at most 8 x warm_ns.
        """
        named, each = entry.named[-1], ns / calls
        entry.spent += ns
        if each * named < self._min_ns:
            wanted = 1.1 * self._min_ns / each if ns else 10.0 * named
            named = int(min(wanted, 10.0 * named)) + 1
        elif entry.spent >= _PATIENCE * self._warm_ns or (
            entry.spent >= self._warm_ns and 0 < 0.9 * entry.before < each
        ):
            entry.settled = True
        entry.before = each
        return named
