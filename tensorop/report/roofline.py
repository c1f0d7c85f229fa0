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
    intensity: float  # flop per byte that must move at least
    ours: float  # speed in the roof's unit


@dataclass(frozen=True)
class Roofline:
    """Of one dtype, and VLEN under a model."""

    dtype: str
    vlen: int | None
    unit: str
    peak: float  # of all cores that took part
    bandwidth: float | None  # bytes per ns or cycle; None where it was not measured
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
    """By VLEN under a model, of one core: the peak in flops and the bandwidth in bytes per ns or cycle; {} where they
    are not known, as on a clock before the comparison."""
    if bench and bench.model is None:
        peak = bench.peak.get(dtype)
        return {None: (peak, bench.machine.get("bandwidth"))} if peak else {}
    accumulator = NUMBERS[platform.formats(dtype).accumulator]
    if not platform.board or accumulator.whole:  # a model's multiply-adds are floating-point ones
        return {}
    model = board.load(platform.board, f"platform '{platform.name}'")
    bandwidth = model.memory.l1.line / model.memory.dram_interval.value
    return {vlen: (modelled_peak(model, vlen, accumulator.name), bandwidth) for vlen in platform.vlens}


def bound(platform: Platform, dtype: str, bench: Bench | None, unit: str) -> float | None:
    """As `statistics.bound`; None where a peak in this unit is not known."""
    peaks = [peak for peak, _ in roofs(platform, dtype, bench).values()]
    alike = (unit == "ns") == bool(bench and bench.model is None)
    return statistics.bound(peaks) if alike else None
