"""A platform made reachable: how programs start on it, and what one call of an entry costs there."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorop import boards
from tensorop.errors import JobError, UsageError
from tensorop.measure import clock, modelled, statistics
from tensorop.model.call import Call, Left
from tensorop.model.core import Core
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome, Samples
from tensorop.runners import choose, null
from tensorop.runners.base import Runner
from tensorop.runners.native import Native
from tensorop.runners.null import Null
from tensorop.runners.protocol import Entry
from tensorop.runners.qemu import Qemu
from tensorop.runners.session import Guest
from tensorop.runners.ssh import Ssh
from tensorop.specs import board, native

# A search needs many figures more than it needs exact ones: finalists are measured again.
SEARCH_PACE = clock.Pace(rounds=9, warm_ns=1_000_000, min_ns=400_000, max_ns=150_000_000)
INSTRUCTIONS = 0.1  # the power of them in a variant's merit
FINAL_PACE = clock.Pace(rounds=21, warm_ns=5_000_000, min_ns=2_000_000, max_ns=2_000_000_000)


@dataclass(frozen=True)
class Target:
    """model: the board model under an emulator; None where a clock on the target measures.

    core: what a board reached by ssh turned out to be.
    """

    platform: Platform
    runner: Runner
    model: board.BoardModel | None
    core: Core | None = None

    def at(self, vlen: int) -> Target:
        """The target where vectors are known to have this many bits; itself at 0."""
        return dataclasses.replace(self, platform=self.platform.at(vlen)) if vlen else self

    @property
    def unit(self) -> str:
        if isinstance(self.runner, Null):
            return null.UNIT
        return "ns" if self.model is None else modelled.UNIT

    @property
    def side_by_side(self) -> bool:
        """Whether measurements may overlap: a model counts the same whatever else the machine does."""
        return self.model is not None or isinstance(self.runner, Null)

    @property
    def cpu(self) -> int:
        """The processor a measurement stays on; -1 where that is not ours to say."""
        return clock.processor(self.runner)

    @property
    def described(self) -> Mapping[str, object]:
        """What goes beside a board's figures; empty for others."""
        if self.core is None or not isinstance(self.runner, Ssh):
            return {}
        return {"host": self.runner.host, **self.core.short}

    @property
    def vlens(self) -> tuple[int, ...]:
        """VLENs (bits) scores are made at; a real board has one, its own."""
        return self.platform.vlens if self.runner.emulated else self.platform.vlens[:1]

    @property
    def verify_vlens(self) -> tuple[int, ...]:
        return self.platform.verify_vlens if self.runner.emulated else self.platform.verify_vlens[:1]

    def cost(
        self,
        program: Path,
        calls: Callable[[int], Call],
        entries: Sequence[Entry],
        *,
        guest: Callable[[int], Guest | None] = lambda vlen: None,
        final: bool = False,
        tolerate: bool = False,
        judge: Callable[[tuple[Left, ...]], Outcome] | None = None,
    ) -> tuple[dict[int, Samples], ...] | Outcome:
        """For each entry, VLEN -> cost of one call, the entries' interleaved on a clock.

        calls, guest: the call and its surroundings at a VLEN; final: the slow, exact way (more rounds; the model's
        whole interval); tolerate: an unsteady clock is no failure, for the entries share its rounds;
        judge: of what an entry's timed calls left, on a clock. Returns the first failure's outcome.
        """
        found: list[dict[int, Samples]] = [{} for _ in entries]
        for vlen in self.vlens:
            measured: Sequence[Samples] | Outcome
            if self.model is not None:
                assert isinstance(self.runner, Qemu)
                measured = modelled.count_entries(
                    self.runner,
                    program,
                    calls(vlen),
                    entries,
                    model=self.model,
                    vlen=vlen,
                    scenarios="interval" if final else "best",
                    guest=guest(vlen),
                )
            else:
                pace = FINAL_PACE if final else SEARCH_PACE
                timed = clock.time_entries(
                    self.runner,
                    program,
                    calls(vlen),
                    entries,
                    pace=pace,
                    guest=guest(vlen),
                    tolerate=tolerate,
                    keep=judge is not None,
                )
                measured = timed if isinstance(timed, Outcome) else _judged(timed, judge)
            if isinstance(measured, Outcome):
                return measured
            for into, samples in zip(found, measured, strict=True):
                into[vlen] = samples
        return tuple(found)

    def search_costs(
        self,
        program: Path,
        calls: Callable[[int], Sequence[Call]],
        entry: Entry,
        warm: Sequence[int],
        judge: Callable[[int, int, tuple[Left, ...]], Outcome],
    ) -> tuple[dict[int, Samples], ...] | Outcome:
        """For each call, VLEN -> cost, of a candidate in its own static program: the quick way, for searches.

        warm: by call, how often it is made before it is counted; a clock warms by time. judge: at a VLEN, of a call by
        its number, what it left.
        """
        found: list[dict[int, Samples]] = []
        for vlen in self.vlens:
            given = calls(vlen)
            found = found or [{} for _ in given]
            measured: Sequence[Samples] | Outcome
            of_vlen = functools.partial(judge, vlen)
            if self.model is not None:
                assert isinstance(self.runner, Qemu)
                measured = modelled.count_calls(
                    self.runner, program, given, entry, warm=warm, model=self.model, vlen=vlen, judge=of_vlen
                )
            else:
                measured = clock.time_calls(self.runner, program, given, entry, pace=SEARCH_PACE, judge=of_vlen)
            if isinstance(measured, Outcome):
                return measured
            for into, samples in zip(found, measured, strict=True):
                into[vlen] = samples
        return tuple(found)


def _judged(timed: clock.Timed, judge: Callable[[tuple[Left, ...]], Outcome] | None) -> tuple[Samples, ...] | Outcome:
    wrong = (found for left in timed.left if judge and not (found := judge(left)).ok)
    return next(wrong, None) or timed.samples


def combine(by_vlen: Mapping[int, Samples]) -> Samples:
    """One figure of several VLENs: the geometric mean of costs; counters of the first, `by_vlen` of all."""
    several = list(by_vlen.values())
    if len(several) == 1:
        return several[0]
    return dataclasses.replace(
        several[0],
        value=statistics.geomean(s.value for s in several),
        low=statistics.geomean(s.low for s in several),
        high=statistics.geomean(s.high for s in several),
        by_vlen={vlen: s.value for vlen, s in by_vlen.items()},
    )


def merit(samples: Samples, vlen: int) -> float:
    """What variants of one problem are compared by: the cost, under a model times a small power of the instructions.

    A tenth more instructions weigh like a hundredth more cycles: no constant of the model bends their number, so they
    decide where modelled cycles hardly differ.
    """
    return samples.at(vlen) * float(samples.counters.get("instructions", 1.0) ** INSTRUCTIONS)


def reach(platform: Platform, wanted: str | None) -> Target:
    """The target of a job. wanted: native, qemu, null or ssh://host; None for the platform's own.

    Raises UsageError for a runner nobody knows, JobError when this machine's CPU cannot run the platform's code or
    when nothing can be measured there, BoardError when a board does not answer or is not the declared core.
    """
    runner = choose.runner_for(platform, wanted)
    if isinstance(runner, Ssh):
        platform, runner, core = boards.meet(platform, runner)
        return Target(platform, runner, None, core)
    if isinstance(runner, Native):
        _require_cpu(platform)
        platform = boards.here(platform)
    if not isinstance(runner, Qemu):
        return Target(platform, runner, None)
    if not platform.qemu_cpu:
        raise UsageError(
            f"platform '{platform.name}' has no emulated core to run on",
            hint="leave --runner out, or use --runner native",
        )
    if not platform.board:
        raise JobError(
            f"platform '{platform.name}' has no board model, and an emulator's clock says nothing of it",
            hint="add a `model:` section (docs/board-model.md), or measure on a board with --runner ssh://host",
        )
    return Target(platform, runner, board.load(platform.board, f"platform '{platform.name}'"))


def _require_cpu(platform: Platform) -> None:
    missing = [flag for flag in platform.requires if flag not in native.cpu_flags()]
    if missing:
        raise JobError(
            f"this machine's CPU lacks {', '.join(missing)}, which platform '{platform.name}' needs",
            hint="tensorop platforms list; `--platform native` takes the best one for this machine",
        )
