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
MEASURED = ("f32", "f64")  # dtypes whose peak is measured or modelled; others use special instructions


@dataclass
class Roof:
    """Peaks of a target, measured at first use: flops of one core in a unit of the target's cost."""

    target: Target
    _peaks: dict[tuple[str, int], float] = field(default_factory=dict)
    _cache: int | None = None  # bytes of the last-level cache
    _memory: float | None = None  # bytes read from memory in a unit of cost

    def impossible(
        self, operator: Operator, problem: Problem, samples: Samples, vlen: int = 0, threads: int = 1
    ) -> Outcome | None:
        """The outcome for a cost below what the call's operations or operands allow; else None.

        Such a cost is a measurement fault or a cheat, whatever the outputs were. The peak may have been measured on a
        busy machine, so it is measured again first. vlen: bits, under a model
        """
        key = problem.dtype, vlen
        least = self._least(operator, problem, vlen, threads)
        if samples.value < least:
            self._peaks[key] = max(self._peaks.get(key, 0.0), self._target_peak(*key, fresh=True))
            self._memory = None
            least = self._least(operator, problem, vlen, threads)
        if samples.value >= least:
            return None
        message = f"{samples.value:.0f} {samples.unit} for a call, where peak and memory allow {least:.0f} at best"
        return Outcome(Kind.IMPOSSIBLE, "measure", f"{problem.label}: {message}")

    def peak(self, dtype: str, vlen: int = 0) -> float:
        """Flops of one core in a unit of the target's cost; 0 if unknown. vlen: bits, under a model."""
        if (key := (dtype, vlen)) not in self._peaks:
            self._peaks[key] = self._target_peak(dtype, vlen)
        return self._peaks[key]

    def bound(self, dtype: str, vlens: Sequence[int]) -> float | None:
        """As `statistics.bound`."""
        return statistics.bound([self.peak(dtype, vlen) for vlen in vlens])

    def _least(self, operator: Operator, problem: Problem, vlen: int, threads: int) -> float:
        """The least credible cost."""
        peak = self.peak(problem.dtype, vlen)
        work, traffic = float(operator.reference.work(problem)), float(operator.reference.traffic(problem))
        by_peak = work / peak if peak else 0.0
        return max(by_peak, self._by_memory(traffic)) / threads / MARGIN

    def _target_peak(self, dtype: str, vlen: int, fresh: bool = False) -> float:
        return self.target.peak(dtype, vlen, fresh) if dtype in MEASURED else 0.0

    def _by_memory(self, traffic: float) -> float:
        """The cost of reading the operands beyond the last-level cache."""
        if self._cache is None:
            self._cache = self.target.last_cache()
        if not self._cache or traffic <= 2 * self._cache:
            return 0.0
        if self._memory is None:
            self._memory = self.target.bandwidth()
        return (traffic - self._cache) / self._memory
