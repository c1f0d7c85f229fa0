"""What each further thread adds: a library and its baselines at several numbers of threads, from `bench --threads`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorop.model.bench import geomean
from tensorop.report.labels import sizes

KEPT = Path("share") / "tensorop" / "threads.json"


def gains(by_threads: Mapping[str, Mapping[str, Any]], who: str = "") -> dict[str, dict[tuple[str, ...], float]]:
    """Of a record's `by_threads`, at each number of threads and for each problem: how many times as fast as at the
    first number a library is. who: a baseline; ours by default."""
    counts = list(by_threads)
    speeds = {count: {_place(row): _speed(row, who) for row in one["results"]} for count, one in by_threads.items()}
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for count in counts:
        pairs = {place: (speed, speeds[counts[0]].get(place)) for place, speed in speeds[count].items()}
        found[count] = {place: now / then for place, (now, then) in pairs.items() if now and then}
    return found


def mean_gains(by_threads: Mapping[str, Mapping[str, Any]], dtype: str, who: str = "") -> dict[str, float]:
    """Geometric means of `gains` over a dtype's problems, by number of threads."""
    found = {
        count: geomean(gain for place, gain in of_each.items() if place[0] == dtype)
        for count, of_each in gains(by_threads, who).items()
    }
    return {count: mean for count, mean in found.items() if not math.isnan(mean)}


def _place(row: Mapping[str, Any]) -> tuple[str, ...]:
    return row["dtype"], row["layout"], *map(str, sizes(row).values())


def _speed(row: Mapping[str, Any], who: str) -> float | None:
    if not who:
        return float(row["ours"])
    return float(row["ours"] / row["ratio"][who]) if row["ratio"].get(who) else None
