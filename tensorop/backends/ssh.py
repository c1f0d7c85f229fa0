"""The ssh backend: runs on boards and measures with their clocks.

Several identical boards run trials in parallel, one trial on each board at a time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from tensorop.clocked import Clocked
from tensorop.errors import BoardError, UsageError
from tensorop.measure import boards
from tensorop.model.core import Core
from tensorop.model.platform import Platform
from tensorop.runners import ssh
from tensorop.toolchain import programs

ALIKE = 1.05  # largest allowed ratio between the times of the slowest and the fastest board
SIZES = (4096, 1 << 20)  # elements in the fixed kernel's calls: one fits into L1, one exceeds most caches


class BoardPool:
    """Boards that threads share; one thread uses a board at a time. A lost board is removed unless it is the last."""

    def __init__(self, all_: Sequence[Backend]) -> None:
        self._free: queue.SimpleQueue[Backend] = queue.SimpleQueue()
        self._lock, self.size = threading.Lock(), len(all_)
        for board in all_:
            self._free.put(board)

    @contextlib.contextmanager
    def one(self) -> Iterator[Backend]:
        board = self._free.get()
        stays = True
        try:
            yield board
        except BoardError:
            with self._lock:
                stays = self.size == 1
                self.size -= not stays
            raise
        finally:
            if stays:
                self._free.put(board)


@dataclass(frozen=True)
class Backend(Clocked):
    """A board, or several identical boards."""

    runner: ssh.Ssh  # of the first board, which does all work but trials
    pool: BoardPool | None = field(default=None, compare=False, repr=False)  # None: a single board

    name = "ssh"
    address = "host"
    confined = True

    @classmethod
    def machine(cls, address: str) -> ssh.Ssh:
        return ssh.board(address)

    @classmethod
    def start(cls, platform: Platform, address: str) -> ssh.Ssh:
        return ssh.board(address)

    @classmethod
    def meet(cls, platform: Platform, address: str) -> tuple[Platform, ssh.Ssh, Core]:
        return boards.meet(platform, cls.start(platform, address))

    @classmethod
    def reach(cls, platform: Platform, address: str) -> Self:
        """The target. address: one host, or several as in ssh://a,ssh://b.

        Raises UsageError for a repeated or invalid host, BoardError if the boards are not identical.
        """
        addresses = [one.strip().removeprefix("ssh://").rstrip("/") for one in address.split(",")]
        if twice := next((one for one in addresses if addresses.count(one) > 1), None):
            raise UsageError(
                f"--runner lists ssh://{twice} twice", hint="list each board once; a board runs one trial at a time"
            )
        for one in addresses:  # reports an invalid address before any board is contacted
            ssh.board(one)
        all_ = [cls(*cls.meet(platform, one)) for one in addresses]
        if len(all_) == 1:
            return all_[0]
        names = [f"ssh://{one}" for one in addresses]
        agree(names, [one.identity for one in all_], [one.paces() for one in all_])
        return dataclasses.replace(all_[0], pool=BoardPool(all_))

    @property
    def identity(self) -> list[object]:
        return [self.core.label, self.core.vlen] if self.core else []

    def described(self) -> Mapping[str, object]:
        return {"host": self.runner.host, **self.core.short} if self.core else {}

    @property
    def clocks(self) -> int:
        return self.pool.size if self.pool else 1

    @contextlib.contextmanager
    def one(self) -> Iterator[Self]:
        with self.pool.one() if self.pool else contextlib.nullcontext(self) as board:
            yield dataclasses.replace(self, runner=board.runner, core=board.core, pool=None) if self.pool else self

    def paces(self) -> tuple[float, ...]:
        """The times of a fixed kernel's calls in nanoseconds, one for each of SIZES. Raises JobError, BoardError."""
        calls = [programs.sample_call(size) for size in SIZES]
        found = self.sample_costs(calls, f"{self.runner.host}: the kernel that boards are compared by")
        return tuple(samples.value for by_vlen in found for samples in by_vlen.values())


def agree(names: Sequence[str], cores: Sequence[list[object]], paces: Sequence[Sequence[float]]) -> None:
    """Raises BoardError if the boards are too different for one search. paces: times in ns, [board][size]."""
    hint = "use identical boards at a fixed clock (cpupower frequency-set -g performance), or one board"
    for (one, a), (other, b) in itertools.pairwise(zip(names, cores, strict=True)):
        if a != b:
            raise BoardError(f"{one} is {a} and {other} is {b}: boards used together must be identical", hint=hint)
    for size, figures in zip(SIZES, zip(*paces, strict=True), strict=True):
        (fast, first), (slow, last) = min(zip(figures, names, strict=True)), max(zip(figures, names, strict=True))
        if slow > ALIKE * fast:
            raise BoardError(
                f"{first} and {last} differ by {slow / fast - 1:.0%} on the same kernel ({fast:.4g} and {slow:.4g} ns "
                f"for {size} elements); boards used together may differ by at most {ALIKE - 1:.0%}",
                hint=hint,
            )
