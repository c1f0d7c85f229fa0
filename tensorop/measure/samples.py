"""One figure of several: a cost over VLENs, and the value by which variants are compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tensorop.measure.statistics import geomean
from tensorop.model.trial import Samples

INSTRUCTIONS = 0.1  # exponent of the instruction count in a variant's objective


def combine(by_vlen: Mapping[int, Samples]) -> Samples:
    """One cost for several VLENs: the geometric mean, with the counters of the first VLEN."""
    several = list(by_vlen.values())
    if len(several) == 1:
        return several[0]
    return dataclasses.replace(
        several[0],
        value=geomean(s.value for s in several),
        low=geomean(s.low for s in several),
        high=geomean(s.high for s in several),
        by_vlen={vlen: s.value for vlen, s in by_vlen.items()},
    )


def objective(samples: Samples, vlen: int) -> float:
    """The value by which variants are compared on a problem: the cost, times a small power of the instruction count.

    Ten per cent more instructions weigh like one per cent more modelled cycles. The count does not depend on assumed
    constants of the model, so it decides between variants with nearly equal cycles.
    """
    return samples.at(vlen) * float(samples.counters.get("instructions", 1.0) ** INSTRUCTIONS)
