"""Base class of backends that a clock measures; a backend of your own may derive from it."""

from __future__ import annotations

from tensorop.errors import TensoropError
from tensorop.measure import clock
from tensorop.measure import peak as measuring
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.model.budget import CLOCK
from tensorop.process import deadline
from tensorop.target import Answer, Target
from tensorop.toolchain import programs

# A search needs many results rather than exact ones; finalists are measured again.
SEARCH_PACE = clock.Pace(rounds=9, warm_ns=1_000_000, min_ns=400_000, max_ns=150_000_000)
FINAL_PACE = clock.Pace(rounds=21, warm_ns=5_000_000, min_ns=2_000_000, max_ns=2_000_000_000)


class Clocked(Target):
    """Measures with the target's clock, at the target's own VLEN."""

    unit = "ns"
    speed = "GFLOP/s"
    shown = "ns/kflop"
    budgets = CLOCK

    @property
    def vlens(self) -> tuple[int, ...]:
        return self.platform.vlens[:1]

    @property
    def verify_vlens(self) -> tuple[int, ...]:
        return self.platform.verify_vlens[:1]

    def peak(self, dtype: str, vlen: int, fresh: bool = False) -> float:
        try:
            with deadline.none():  # the peak serves all trials, so no trial's time limit holds
                program = programs.peak_program(self.platform, dtype)
                return measuring.fma_peak(program, self.runner, dtype, fresh=fresh)
        except TensoropError:
            return 0.0

    def measure(self, request: MeasureRequest) -> Answer:
        return clock.measure(self.runner, request, FINAL_PACE if request.purpose is Purpose.FINAL else SEARCH_PACE)
