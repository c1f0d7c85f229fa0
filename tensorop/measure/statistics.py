"""Statistics of rounds: medians, quartiles, paired ratios, drift."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tensorop.model.bench import Ratio
from tensorop.model.bench import geomean as geomean
from tensorop.model.trial import Samples

# Largest credible share of the peak: beyond it, the processor's clock rate changed between the two measurements.
CREDIBLE = 1.03


def significant(value: float | None, digits: int = 3) -> str:
    """A number with `digits` significant digits and no exponent; "" for None."""
    if value is None:
        return ""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def of_peak(share: float | None, unit: str = "") -> str:
    """A share of the peak as text; empty for None. unit: follows the number"""
    if share is None:
        return ""
    return f"{share:.0%}{unit}" if share <= CREDIBLE else "clock unsteady"


def bound(peaks: Sequence[float]) -> float | None:
    """The cost of 1000 flops at the peak, geometric mean over VLENs; None if a peak is unknown.

    peaks: VLEN -> flops per unit of cost
    """
    return 1e3 / geomean(peaks) if peaks and all(peaks) else None


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile, by linear interpolation."""
    low, middle, high = np.quantile(np.asarray(values, dtype=np.float64), (0.25, 0.5, 0.75))
    return float(low), float(middle), float(high)


def summary(rounds: Sequence[float]) -> Samples:
    """Median and quartiles of one entry's rounds, in ns a call."""
    low, middle, high = quartiles(rounds)
    return Samples("ns", middle, low, high, len(rounds))


def ratio(ours: Sequence[float], baseline: Sequence[float]) -> Ratio:
    """Ratios baseline / ours of rounds that were measured next to each other, so that common slowdowns cancel."""
    low, middle, high = quartiles([b / o for o, b in zip(ours, baseline, strict=True)])
    return Ratio(middle, low, high)


def halves(rounds: Sequence[float]) -> tuple[list[float], list[float]]:
    """The rounds that decide which of several is the fastest, and those that report its figure.

    The least of several noisy figures is too low in the rounds by which it was chosen. Two rounds of each in turn,
    since the order within a round changes from one to the next. Fewer than three rounds do both.
    """
    if len(rounds) < 3:
        return [*rounds], [*rounds]
    deciding, reporting = ([x for number, x in enumerate(rounds) if number // 2 % 2 == half] for half in (0, 1))
    return deciding, reporting


def drift(rounds: Sequence[float]) -> float:
    """Change of the median from the first third to the last third, as a share."""
    third = max(1, len(rounds) // 3)
    first, last = quartiles(rounds[:third])[1], quartiles(rounds[-third:])[1]
    return abs(last / first - 1)
