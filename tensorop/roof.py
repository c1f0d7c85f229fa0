"""What no call can be faster than: the peak of its core's multiply-adds, and what memory delivers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tensorop import deadline
from tensorop.build import peak as building
from tensorop.errors import TensoropError
from tensorop.measure import bandwidth
from tensorop.measure import peak as measuring
from tensorop.model.number import NUMBERS
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.runners.native import Native
from tensorop.runners.null import Null
from tensorop.specs import board
from tensorop.specs.board import BoardModel, Cycles
from tensorop.target import Target

MARGIN = 1.1
MEASURED = ("f32", "f64")  # dtypes whose peak is measured or modelled; others have instructions of their own
_FMA = "vfma"
_SIZES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass
class Roof:
    """Peaks of a target, found when they are first asked for; flops of a core in a unit of the target's cost."""

    target: Target
    _peaks: dict[tuple[str, int], float] = field(default_factory=dict)
    _memory: tuple[float, float] | None = None

    def impossible(
        self, operator: Operator, problem: Problem, samples: Samples, vlen: int = 0, threads: int = 1
    ) -> Outcome | None:
        """An outcome when a call of the problem cost less than its operations or its operands allow: a fault of the
        measurement or a cheat, whatever the outputs were. vlen: bits, under a model.

        A peak may have been measured on a busy machine: before there is an outcome it is measured anew.
        """
        key = problem.dtype, vlen
        least = self._least(operator, problem, vlen, threads)
        if samples.value < least and self.target.model is None:
            self._peaks[key] = max(self._peaks.get(key, 0.0), self._measured(problem.dtype, fresh=True))
            self._memory = None
            least = self._least(operator, problem, vlen, threads)
        if samples.value >= least:
            return None
        message = f"{samples.value:.0f} {samples.unit} for a call, where peak and memory allow {least:.0f} at best"
        return Outcome(Kind.IMPOSSIBLE, "measure", f"{problem.label}: {message}")

    def peak(self, dtype: str, vlen: int = 0) -> float:
        """Flops of one core in a unit of the target's cost; 0 where it cannot be told. vlen: bits, under a model."""
        if (key := (dtype, vlen)) not in self._peaks:
            model = self.target.model
            self._peaks[key] = self._measured(dtype) if model is None else _modelled(model, vlen, dtype)
        return self._peaks[key]

    def _least(self, operator: Operator, problem: Problem, vlen: int, threads: int) -> float:
        """The least cost that is to be believed."""
        peak = self.peak(problem.dtype, vlen)
        work, traffic = float(operator.reference.work(problem)), float(operator.reference.traffic(problem))
        by_peak = work / peak if peak else 0.0
        return max(by_peak, self._by_memory(traffic)) / threads / MARGIN

    def _measured(self, dtype: str, fresh: bool = False) -> float:
        """Flops a ns; 0 where it cannot be told."""
        if dtype not in MEASURED or isinstance(self.target.runner, Null):
            return 0.0
        try:
            with deadline.none():  # it serves all trials
                program = building.peak_program(self.target.platform, dtype)
                return measuring.fma_peak(program, self.target.runner, dtype, fresh=fresh)
        except TensoropError:
            return 0.0

    def _by_memory(self, traffic: float) -> float:
        """ns to read what does not fit in the last cache, on this machine."""
        if self.target.model is not None or not isinstance(self.target.runner, Native):
            return 0.0
        cache = max([_last_cache(), *(level.size for level in self.target.platform.caches.values())])
        if traffic <= 2 * cache:
            return 0.0
        if self._memory is None:
            self._memory = float(cache), bandwidth.read_bandwidth()
        return (traffic - self._memory[0]) / self._memory[1]


def _last_cache() -> int:
    """Bytes of the largest cache that this machine tells of."""
    sizes = [0]
    for file in _SIZES.glob("index*/size"):
        text = file.read_text().strip()
        if text.endswith("K") and text[:-1].isdigit():
            sizes.append(1024 * int(text[:-1]))
    return max(sizes)


def _modelled(model: BoardModel, vlen: int, dtype: str) -> float:
    """Flops a cycle; 0 where the model does not say it of multiply-adds."""
    return max(modelled_peak(model, vlen, dtype, lmul) for lmul in _LMULS) if dtype in MEASURED else 0.0


_LMULS: Mapping[str, int] = {"m1": 1, "m2": 2, "m4": 4, "m8": 8}


def modelled_peak(model: BoardModel, vlen: int, number: str, lmul: str = "m1") -> float:
    """Flops a cycle of a model's core whose vector units do nothing but multiply-adds of a format at an LMUL."""
    bits = 8 * NUMBERS[number].size
    cost = model.cost(_FMA)
    eew = board.EEWS.index(bits)
    lanes = _LMULS[lmul] * vlen / bits
    units = model.units[cost.unit] if cost.unit else 1
    assert cost.cycles is not None
    if isinstance(cost.cycles, Cycles):
        busy = cost.cycles.at(board.LMULS.index(lmul), eew) * (vlen / model.dlen(vlen)) / units
    else:
        busy = cost.cycles.eew.get(bits, cost.cycles.value) / units
        lanes = vlen / bits
    issue = 1 / model.core.issue_width.value
    return 2 * lanes / max(busy, issue)
