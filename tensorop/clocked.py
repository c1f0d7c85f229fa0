"""Targets that a clock measures: what their backends share, and what one of a plug-in folder may begin with."""

from __future__ import annotations

from collections.abc import Sequence

from tensorop.build import programs
from tensorop.errors import TensoropError
from tensorop.measure import clock
from tensorop.measure import peak as measuring
from tensorop.measure.clock import Pace, Timed
from tensorop.model.budget import CLOCK
from tensorop.model.call import Call
from tensorop.model.trial import Outcome
from tensorop.process import deadline
from tensorop.runners.protocol import Entry
from tensorop.target import Answer, Judge, JudgeEach, Run, Target

# A search needs many figures more than it needs exact ones: finalists are measured again.
SEARCH_PACE = clock.Pace(rounds=9, warm_ns=1_000_000, min_ns=400_000, max_ns=150_000_000)
FINAL_PACE = clock.Pace(rounds=21, warm_ns=5_000_000, min_ns=2_000_000, max_ns=2_000_000_000)


class Clocked(Target):
    """Measures by the target's own clock; it is of one configuration, its own."""

    unit = "ns"
    speed = "GFLOP/s"
    shown = "ns/kflop"
    budgets = CLOCK

    @property
    def configurations(self) -> tuple[int, ...]:
        return self.platform.vlens[:1]

    @property
    def checked(self) -> tuple[int, ...]:
        return self.platform.verify_vlens[:1]

    def peak(self, dtype: str, configuration: int, fresh: bool = False) -> float:
        try:
            with deadline.none():  # it serves all trials
                program = programs.peak_program(self.platform, dtype)
                return measuring.fma_peak(program, self.runner, dtype, fresh=fresh)
        except TensoropError:
            return 0.0

    def costs(self, run: Run, calls: Sequence[Call], entry: Entry, warm: Sequence[int], judge: JudgeEach) -> Answer:
        guest, until = run.guest, run.timeout_s
        return clock.time_calls(
            self.runner, run.program, calls, entry, pace=SEARCH_PACE, guest=guest, timeout_s=until, judge=judge
        )

    def together(
        self, run: Run, call: Call, entries: Sequence[Entry], judge: Judge | None = None, warm: int = 1
    ) -> Answer:
        timed = self._timed(run, call, entries, SEARCH_PACE, keep=judge is not None)
        if isinstance(timed, Outcome):
            return timed
        wrong = (found for left in timed.left if judge and not (found := judge(left)).ok)
        return next(wrong, None) or timed.samples

    def timed(self, run: Run, call: Call, entries: Sequence[Entry], final: bool, empty: bool) -> Timed | Outcome:
        pace = FINAL_PACE if final else SEARCH_PACE
        return self._timed(run, call, entries, pace, keep=True, empty=empty, reference=len(entries) - 1)

    def _timed(
        self,
        run: Run,
        call: Call,
        entries: Sequence[Entry],
        pace: Pace,
        keep: bool,
        empty: bool = False,
        reference: int = 0,
    ) -> Timed | Outcome:
        return clock.time_entries(
            self.runner,
            run.program,
            call,
            entries,
            pace=pace,
            guest=run.guest,
            timeout_s=run.timeout_s,
            reference=reference,
            tolerate=True,
            empty=empty,
            keep=keep,
        )
