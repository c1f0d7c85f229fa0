"""What each further thread adds: a library and its baselines at several numbers of threads, from `bench --threads`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensorop.model.bench import Bench, Row, geomean

KEPT = Path("share") / "tensorop" / "threads.json"

Place = tuple[str, str, str]  # dtype, layout, shape


def record(found: Sequence[Bench]) -> dict[str, Any]:
    """The first comparison as `bench --format json` has it; of several each too, under `by_threads`."""
    first = found[0].to_json()
    return first if len(found) == 1 else {**first, "by_threads": {str(one.threads): one.to_json() for one in found}}


def gains(found: Sequence[Bench], who: str = "") -> dict[int, dict[Place, float]]:
    """At each number of threads and for each problem: how many times as fast as at the first number a library is. who:
    a baseline; ours by default."""
    speeds = [{(row.dtype, row.layout, row.shape): _speed(row, who) for row in one.rows} for one in found]
    out: dict[int, dict[Place, float]] = {}
    for one, of_one in zip(found, speeds, strict=True):
        pairs = {place: (speed, speeds[0].get(place)) for place, speed in of_one.items()}
        out[one.threads] = {place: now / then for place, (now, then) in pairs.items() if now and then}
    return out


def mean_gains(found: Sequence[Bench], dtype: str, who: str = "") -> dict[int, float]:
    """Geometric means of `gains` over a dtype's problems, by number of threads."""
    means = {
        count: geomean(gain for place, gain in of_each.items() if place[0] == dtype)
        for count, of_each in gains(found, who).items()
    }
    return {count: mean for count, mean in means.items() if not math.isnan(mean)}


def _speed(row: Row, who: str) -> float | None:
    if not who:
        return row.ours
    return row.ours / row.ratios[who].value if who in row.ratios else None
