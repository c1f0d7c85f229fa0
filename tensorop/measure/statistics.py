"""Figures out of rounds: medians, quartiles, paired ratios, drift."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from tensorop.model.bench import Ratio
from tensorop.model.trial import Samples


def bound(peaks: Sequence[float]) -> float | None:
    """The cost of 1000 flops, in geometric mean over VLENs, where a core does nothing but multiply-adds; None where
    a peak is not known. peaks: by VLEN, flops in the cost's unit."""
    return 1e3 / geomean(peaks) if peaks and all(peaks) else None


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """25 %, median, 75 %, by linear interpolation."""
    low, middle, high = np.quantile(np.asarray(values, dtype=np.float64), (0.25, 0.5, 0.75))
    return float(low), float(middle), float(high)


def summary(rounds: Sequence[float]) -> Samples:
    """Rounds of one entry, ns a call, as their median and quartiles."""
    low, middle, high = quartiles(rounds)
    return Samples("ns", middle, low, high, len(rounds))


def ratio(ours: Sequence[float], baseline: Sequence[float]) -> Ratio:
    """Baseline over ours by paired rounds, measured next to each other, so that what slows both cancels."""
    low, middle, high = quartiles([b / o for o, b in zip(ours, baseline, strict=True)])
    return Ratio(middle, low, high)


def drift(rounds: Sequence[float]) -> float:
    """How far the last third's median lies from the first third's, as a share of it."""
    third = max(1, len(rounds) // 3)
    first, last = quartiles(rounds[:third])[1], quartiles(rounds[-third:])[1]
    return abs(last / first - 1)


def geomean(values: Iterable[float]) -> float:
    """Geometric mean of positive numbers; NaN of none."""
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan
