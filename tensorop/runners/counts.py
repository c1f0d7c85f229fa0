"""How many calls a timing's batches have, and how long they took by this process's own clock.

The process that times holds a stranger's code. So it times what it is told, and what it says is held against what
passed here between the first answer and its last word.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_PATIENCE = 8  # times the least warm-up, for batches that go on getting faster
_ENOUGH = 1 << 40  # calls: no batch of real ones is that long
_REPORTS = 64  # of an entry, and one more for each of its rounds


Clocks = Callable[[], tuple[float, float | None]]  # seconds that passed, and that the process ran where that is known


def clocks(process: int | None = None) -> tuple[float, float | None]:
    """This process's clock, and how long another one here ran: its kernel says so, whatever runs in it."""
    ran = None
    if process is not None:
        with contextlib.suppress(OSError):  # it has ended
            ran = time.clock_gettime(~process << 3 | 2)  # clock_getcpuclockid(3)
    return time.monotonic(), ran


class BadReport(Exception):
    """A report that no honest process makes."""


@dataclass
class _Entry:
    named: list[int] = field(default_factory=list)
    spent: float = 0.0
    before: float = 0.0
    settled: bool = False
    reports: int = 0


class Counts:
    """Of one timing. entries: how many; rounds: of each at most; warm_ns, min_ns: of warming up and of a batch at
    least; cold: each batch is a single call, with no warm-up."""

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
        """Seconds that the process ran meanwhile."""
        before, after = self._began[1], self._ended[1]
        return None if before is None or after is None else after - before

    def answer(self, number: int, calls: int, ns: int) -> tuple[int, bool] | None:
        """How many calls come next and whether they are to be timed, after a batch of so many that took so long; None
        where nothing comes. Raises BadReport."""
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
        """Of a timed batch: as many calls as were asked for, and those fill it. Raises BadReport."""
        fits = [n for n in self._entries[number].named if self._made(n, calls)]
        if not fits or not (self._cold or max(fits) * ns / calls >= 0.999 * self._min_ns):
            raise BadReport(f"a timed batch of {calls:g} calls, {ns:g} ns, that was not asked for")

    @staticmethod
    def _made(named: int, calls: float) -> bool:
        """The harness draws how many of at most an eighth and one it leaves out."""
        return max(1, named - named // 8 - 1) <= calls <= named

    def _next(self, entry: _Entry, calls: int, ns: int) -> int:
        """Calls that last min_ns and a tenth: found while warming up for warm_ns, and on until a batch is no faster
        than the one before, but not for much longer."""
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
