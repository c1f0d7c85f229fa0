"""The speedup by threads: a library and its baselines at several numbers of threads, from `bench --threads`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from tensorop.model.bench import Bench, Row, geomean
from tensorop.store import durable

KEPT = Path("share") / "tensorop" / "threads.json"

Place = tuple[str, str, str]  # dtype, layout, shape


def bench_each(threads: Sequence[int], bench: Callable[[int], Bench]) -> tuple[Bench, ...]:
    """A comparison for each number of threads, in order.

    It stops after a comparison with another number than requested: a board model has only one core.
    """
    found: list[Bench] = []
    for count in dict.fromkeys(threads):
        result = bench(count)
        found.append(result)
        if result.threads != count:
            break
    return tuple(found)


def record(found: Sequence[Bench]) -> dict[str, object]:
    """The first comparison in the format of `bench --format json`; if there are several, `by_threads` has each."""
    first = found[0].to_json()
    return first if len(found) == 1 else {**first, "by_threads": {str(one.threads): one.to_json() for one in found}}


def keep(folder: Path, found: Sequence[Bench]) -> Path | None:
    """Writes several comparisons into a product, for its report.

    None if `folder` is not a product or there is one comparison only. Raises JobError if the file cannot be written.
    """
    place = folder / KEPT
    if len(found) == 1 or not place.parent.is_dir():
        return None
    return durable.write(place, json.dumps(record(found), indent=1, allow_nan=False))


def gains(found: Sequence[Bench], who: str = "") -> dict[int, dict[Place, float]]:
    """The speedup over the first number of threads, by number of threads and problem.

    who: a baseline; "" is this library
    """
    speeds = [{(row.dtype, row.layout, row.shape): _speed(row, who) for row in one.rows} for one in found]
    out: dict[int, dict[Place, float]] = {}
    for one, of_one in zip(found, speeds, strict=True):
        pairs = {place: (speed, speeds[0].get(place)) for place, speed in of_one.items()}
        out[one.threads] = {place: now / then for place, (now, then) in pairs.items() if now and then}
    return out


def mean_gains(found: Sequence[Bench], dtype: str, who: str = "") -> dict[int, float]:
    """The geometric mean of `gains` over a dtype's problems, by number of threads."""
    means = {
        count: geomean(gain for place, gain in of_each.items() if place[0] == dtype)
        for count, of_each in gains(found, who).items()
    }
    return {count: mean for count, mean in means.items() if not math.isnan(mean)}


def _speed(row: Row, who: str) -> float | None:
    if not who:
        return row.ours
    return row.ours / row.ratios[who].value if who in row.ratios else None
