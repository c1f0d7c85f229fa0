"""Limits of a search, and the sizes of problems that a kind of target can run."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tensorop.errors import UsageError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "ms": 0.001}
_UNIT_NAMES = "write a number and a unit: h (hours), m (minutes), s (seconds) or ms (milliseconds)"


@dataclass(frozen=True)
class Budget:
    """A limit. `seconds` and `trials` may both be given; the first one reached ends the search."""

    seconds: float | None = None
    trials: int | None = None

    def __post_init__(self) -> None:
        if self.seconds is None and self.trials is None:
            raise UsageError("the search has no limit: neither a time nor a number of trials", hint="e.g. --budget 2m")
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise UsageError(f"--budget must be a positive time; got {self.seconds:g} seconds", hint="e.g. --budget 2m")
        if self.trials is not None and self.trials < 1:
            raise UsageError(f"--trials must be at least 1; got {self.trials}", hint="e.g. --trials 100")

    def share(self, part: float) -> Budget:
        """A fraction of the budget; at least one trial."""
        seconds = None if self.seconds is None else self.seconds * part
        return Budget(seconds, None if self.trials is None else max(1, round(self.trials * part)))


@dataclass(frozen=True)
class Budgets:
    """Limits on the work for a kind of target, and how long the parts of a job take there."""

    problem_flops: float  # at most, of one problem in a search
    every_layout_flops: float  # of a problem tuned in every layout; large problems hide the cost of packing
    all_problems_flops: float = math.inf  # of all problems of a search, in one layout
    finalists_flops: float = 0.0  # of all problems for finalists; 0: none
    # assumed speed under a model of one of several finalists side by side; 0: a clock measures
    flops_per_s: float = 0.0
    compared_flops: float = math.inf  # of one problem of the final comparison; `tensorop bench` has no limit
    probe_flops: float = 0.0  # of a shape on which some variants are measured for the dispatch
    random_probe_flops: float = 0.0  # of a random shape, on which all variants are measured
    random_probe_s: float = 0.0  # time of one variant on a random shape, on one core
    clock_probes: bool = False  # also tune and compare the operator's clock_probes
    # part of a job -> seconds for one unit of its size, on two cores of an AMD EPYC (Zen 3, 2.45 GHz); empty: unknown
    part_seconds: Mapping[str, float] = field(default_factory=dict)
    # units of a trial, of each of its problems, and of a compared problem, in addition to those for flops
    fixed_units: Mapping[str, float] = field(default_factory=dict)
    flops_per_unit: float = math.inf
    slowest_flops_per_s: float = 2e6  # lowest speed of a single call, for deadlines

    def deadline(self, flops: float) -> float:
        """Time limit in seconds for calls with this much work."""
        return 120 + flops / self.slowest_flops_per_s


# For a clock: tens of milliseconds for each problem. Seconds are those of two cores of an AMD EPYC (Zen 3, 2.45 GHz).
CLOCK = Budgets(
    problem_flops=2e10,
    every_layout_flops=3e8,
    finalists_flops=6e10,
    compared_flops=3e10,
    probe_flops=1e9,
    random_probe_flops=1e9,
    random_probe_s=0.02,
    clock_probes=True,
    part_seconds={
        "set-up": 4.0,
        "micro": 2.0,
        "blocking": 0.055,
        "library": 15.0,
        "tunables": 1.4,
        "verification": 4.4,
        "routines": 1.5,
        "comparison and report": 0.4,
    },
    fixed_units={"trial": 35.0, "problem": 1.0, "compared": 1.0},
)


def parse_seconds(text: str) -> float:
    """'90s', '3m', '1h', '1m30s' in seconds. Raises UsageError for other texts, and for a number without a unit."""
    if re.fullmatch(r"\s*[0-9]+(\.[0-9]+)?\s*", text):
        number = text.strip()
        raise UsageError(f"the time '{text}' has no unit", hint=f"write {number}s or {number}m")
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ms|[smh])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise UsageError(f"expected a time such as 90s, 3m or 1h30m; got '{text}'", hint=_UNIT_NAMES)
    return float(sum(float(number) * _UNITS[unit] for number, unit in parts))
