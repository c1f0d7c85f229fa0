"""Each problem's speed under its target's two roofs: multiply-adds and memory (Williams et al., CACM 52(4), 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorop.measure import statistics
from tensorop.measure.model_peak import modelled_peak
from tensorop.model.number import NUMBERS
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.report.labels import sizes
from tensorop.specs import board


def rooflines(operator: Operator, platform: Platform, bench: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One a dtype (and VLEN under a model): peak in the bench's unit, bandwidth in bytes per ns or cycle (None where it
    was not measured), and for each row its intensity (flop per byte that must move at least) and speed."""
    out: list[dict[str, Any]] = []
    for dtype in dict.fromkeys(row["dtype"] for row in bench["results"]):
        rows = [row for row in bench["results"] if row["dtype"] == dtype]
        for vlen, (peak, bandwidth) in roofs(platform, dtype, bench).items():
            threads = 1 if bench["model"] else bench["threads"]
            out.append(_roof(operator, dtype, vlen, bench, rows, peak * threads, bandwidth))
    return out


def roofs(
    platform: Platform, dtype: str, bench: Mapping[str, Any] | None
) -> dict[int | None, tuple[float, float | None]]:
    """By VLEN under a model, of one core: the peak in flops and the bandwidth in bytes per ns or cycle; {} where they
    are not known, as on a clock before the comparison."""
    if bench and bench["model"] is None:
        peak = bench.get("peak", {}).get(dtype)
        return {None: (peak, bench.get("machine", {}).get("bandwidth"))} if peak else {}
    accumulator = NUMBERS[platform.formats(dtype).accumulator]
    if not platform.board or accumulator.whole:  # a model's multiply-adds are floating-point ones
        return {}
    model = board.load(platform.board, f"platform '{platform.name}'")
    bandwidth = model.memory.l1.line / model.memory.dram_interval.value
    return {vlen: (modelled_peak(model, vlen, accumulator.name), bandwidth) for vlen in platform.vlens}


def bound(platform: Platform, dtype: str, bench: Mapping[str, Any] | None, unit: str) -> float | None:
    """As `statistics.bound`; None where a peak in this unit is not known."""
    peaks = [peak for peak, _ in roofs(platform, dtype, bench).values()]
    alike = (unit == "ns") == bool(bench and bench["model"] is None)
    return statistics.bound(peaks) if alike else None


def _roof(
    operator: Operator,
    dtype: str,
    vlen: int | None,
    bench: Mapping[str, Any],
    rows: list[dict[str, Any]],
    peak: float,
    bandwidth: float | None,
) -> dict[str, Any]:
    points = []
    for row in rows:
        problem = operator.reference.problem(dtype, sizes(row), operator.layouts[0])
        at = row.get("by_vlen", {}).get(str(vlen), row)
        intensity = operator.reference.work(problem) / operator.reference.traffic(problem)
        points.append({"shape": problem.shape, "intensity": intensity, "ours": at["ours"]})
    limits = {"unit": bench["unit"], "peak": peak, "bandwidth": bandwidth}
    return {"dtype": dtype, "vlen": vlen, **limits, "points": points}
