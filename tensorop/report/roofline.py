"""Each problem's speed under its target's two roofs: multiply-adds and memory (Williams et al., CACM 52(4), 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    dtypes = list(dict.fromkeys(row["dtype"] for row in bench["results"]))
    for dtype in dtypes:
        rows = [row for row in bench["results"] if row["dtype"] == dtype]
        if bench["model"] is None:
            peak = bench.get("peak", {}).get(dtype)
            if peak:
                bandwidth = bench.get("machine", {}).get("bandwidth")
                out.append(_roof(operator, dtype, None, bench, rows, peak * bench["threads"], bandwidth))
            continue
        accumulator = NUMBERS[platform.formats(dtype).accumulator]
        if not platform.board or accumulator.whole:  # a model's multiply-adds are floating-point ones
            continue
        model = board.load(platform.board, f"platform '{platform.name}'")
        for vlen in platform.vlens:
            line = model.memory.l1.line
            peak = modelled_peak(model, vlen, accumulator.name)
            out.append(_roof(operator, dtype, vlen, bench, rows, peak, line / model.memory.dram_interval.value))
    return out


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
