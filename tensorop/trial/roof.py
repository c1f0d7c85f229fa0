"""Lower bounds on a call's cost: the core's peak of multiply-adds, and the memory bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tensorop.measure import statistics
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.target import Target

MARGIN = 1.1
AGAIN = 3  # readings of peak and bandwidth before a verdict
MEASURED = ("f32", "f64")  # dtypes whose peak is measured or modelled; others use special instructions


@dataclass
class Roof:
    """Peaks of a target, measured at first use: flops of one core in a unit of the target's cost."""

    target: Target
    _peaks: dict[tuple[str, int], float] = field(default_factory=dict)
    _cache: int | None = None  # bytes of the last-level cache
    _memory: float | None = None  # bytes read from memory in a unit of cost; the highest reading

    def impossible(
        self, operator: Operator, problem: Problem, samples: Samples, vlen: int = 0, threads: int = 1
    ) -> Outcome | None:
        """The outcome for a cost below what the call's operations or operands allow; else None.

        Such a cost is a measurement fault or a cheat, whatever the outputs were. A busy machine lowers a reading of
        the peak or the bandwidth, so both are read again first, and the highest readings count. vlen: bits, under a
        model
        """
        least = self._least(operator, problem, vlen, threads)
        for _ in range(AGAIN):
            if samples.value >= least:
                return None
            self.peak(problem.dtype, vlen, again=True)
            self._memory = self._memory and max(self._memory, self.target.bandwidth())
            least = self._least(operator, problem, vlen, threads)
        if samples.value >= least:
            return None
        message = f"{samples.value:.0f} {samples.unit} for a call, where peak and memory allow {least:.0f} at best"
        return Outcome(Kind.IMPOSSIBLE, "measure", f"{problem.label}: {message}")

    def peak(self, dtype: str, vlen: int = 0, again: bool = False) -> float:
        """Flops of one core in a unit of the target's cost; 0 if unknown. The highest reading counts.

        vlen: bits, under a model; again: measure again
        """
        if (key := (dtype, vlen)) not in self._peaks or again:
            found = self.target.peak(dtype, vlen, fresh=again) if dtype in MEASURED else 0.0
            self._peaks[key] = max(self._peaks.get(key, 0.0), found)
        return self._peaks[key]

    def share(self, dtype: str, vlen: int, speed: float) -> float | None:
        """A speed as a share of the peak, which is measured again if the share is not credible; None: unknown."""
        peak = self.peak(dtype, vlen)
        if peak and speed > statistics.CREDIBLE * peak:
            peak = self.peak(dtype, vlen, again=True)
        return speed / peak if peak else None

    def bound(self, dtype: str, vlens: Sequence[int], cost: float | None = None) -> float | None:
        """As `statistics.bound`. cost: a measured cost of 1000 flops; if its share is not credible, peaks are measured
        again."""
        found = statistics.bound([self.peak(dtype, vlen) for vlen in vlens])
        if found and cost and found > statistics.CREDIBLE * cost:
            found = statistics.bound([self.peak(dtype, vlen, again=True) for vlen in vlens])
        return found

    def _least(self, operator: Operator, problem: Problem, vlen: int, threads: int) -> float:
        """The least credible cost."""
        peak = self.peak(problem.dtype, vlen)
        work, traffic = float(operator.reference.work(problem)), float(operator.reference.traffic(problem))
        by_peak = work / peak if peak else 0.0
        return max(by_peak, self._by_memory(traffic)) / threads / MARGIN

    def _by_memory(self, traffic: float) -> float:
        """The cost of reading the operands beyond the last-level cache."""
        if self._cache is None:
            self._cache = self.target.last_cache()
        if not self._cache or traffic <= 2 * self._cache:
            return 0.0
        if self._memory is None:
            self._memory = self.target.bandwidth()
        return (traffic - self._cache) / self._memory
