"""Each problem's speed under its target's two roofs: multiply-adds and memory (Williams et al., CACM 52(4), 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorop.measure import statistics
from tensorop.measure.model_peak import modelled_peak
from tensorop.model.bench import Bench
from tensorop.model.number import NUMBERS
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.specs import board


@dataclass(frozen=True)
class Reached:
    shape: str
    intensity: float  # flop per byte of the least memory traffic
    ours: float  # speed in the roof's unit


@dataclass(frozen=True)
class Roofline:
    """The roofline of one dtype; under a model, of one VLEN."""

    dtype: str
    vlen: int | None
    unit: str
    peak: float  # of all cores in use
    bandwidth: float | None  # bytes per ns or cycle; None if not measured
    points: Sequence[Reached]


def rooflines(operator: Operator, platform: Platform, bench: Bench) -> list[Roofline]:
    out: list[Roofline] = []
    threads = 1 if bench.model else bench.threads
    for dtype in bench.dtypes:
        for vlen, (peak, bandwidth) in roofs(platform, dtype, bench).items():
            points = []
            for row in bench.rows:
                if row.dtype == dtype:
                    problem = operator.reference.problem(dtype, dict(row.dims), operator.layouts[0])
                    intensity = operator.reference.work(problem) / operator.reference.traffic(problem)
                    points.append(Reached(problem.shape, intensity, row.by_vlen.get(vlen or 0, row).ours))
            out.append(Roofline(dtype, vlen, bench.unit, peak * threads, bandwidth, points))
    return out


def roofs(platform: Platform, dtype: str, bench: Bench | None) -> dict[int | None, tuple[float, float | None]]:
    """The peak (flop) and the bandwidth (bytes) of one core, per ns or cycle; under a model, by VLEN.

    {} if they are unknown, e.g. on a clock before the comparison.
    """
    if bench and bench.model is None:
        peak = bench.peak.get(dtype)
        return {None: (peak, bench.machine.get("bandwidth"))} if peak else {}
    accumulator = NUMBERS[platform.formats(dtype).accumulator]
    if not platform.board or accumulator.whole:  # a model has only floating-point multiply-adds
        return {}
    model = board.load(platform.board, f"platform '{platform.name}'")
    bandwidth = model.memory.l1.line / model.memory.dram_interval.value
    return {vlen: (modelled_peak(model, vlen, accumulator.name), bandwidth) for vlen in platform.vlens}


def bound(platform: Platform, dtype: str, bench: Bench | None, unit: str) -> float | None:
    """The cost at peak speed, as `statistics.bound`; None if the peak in this unit is unknown."""
    peaks = [peak for peak, _ in roofs(platform, dtype, bench).values()]
    alike = (unit == "ns") == bool(bench and bench.model is None)
    return statistics.bound(peaks) if alike else None
