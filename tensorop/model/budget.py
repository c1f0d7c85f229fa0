"""How long a search may take, and what a kind of target can afford."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tensorop.errors import UsageError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "ms": 0.001}


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
        """That fraction of it, at least one trial."""
        seconds = None if self.seconds is None else self.seconds * part
        return Budget(seconds, None if self.trials is None else max(1, round(self.trials * part)))


@dataclass(frozen=True)
class Budgets:
    """What a kind of target can afford, and how long the parts of a job take there."""

    problem_flops: float  # of one problem in a search
    every_layout_flops: float  # of a problem tuned in every layout: those change packing, which large ones hide
    all_problems_flops: float = math.inf  # of all problems of a search, in one layout
    finalists_flops: float = 0.0  # of all problems that the finalists are tried on; 0: none
    flops_per_s: float = 0.0  # how fast a finalist runs where more time buys more problems; 0: on a clock
    compared_flops: float = math.inf  # of one problem of the closing comparison; `tensorop bench` has no limit
    probe_flops: float = 0.0  # of a shape that some variants are measured on for the dispatch
    random_probe_flops: float = 0.0  # of a random shape, which all variants are measured on
    random_probe_s: float = 0.0  # that one variant takes on a random shape, on one core
    clock_probes: bool = False  # whether shapes that an operator has for clocks alone are tuned and compared too
    # seconds of a unit of each part's size, on two cores of an AMD EPYC (Zen 3, 2.45 GHz); empty: nobody knows
    part_seconds: Mapping[str, float] = field(default_factory=dict)
    # units of a trial, of one problem of it, and of a compared problem, beside their flops
    fixed_units: Mapping[str, float] = field(default_factory=dict)
    flops_per_unit: float = math.inf
    slowest_flops_per_s: float = 2e6  # of a single call

    def deadline(self, flops: float) -> float:
        """Seconds that calls of so much work may take."""
        return 120 + flops / self.slowest_flops_per_s


# On a clock, tens of milliseconds a problem; seconds on two cores of an AMD EPYC (Zen 3, 2.45 GHz).
CLOCK = Budgets(
    problem_flops=3e9,
    every_layout_flops=3e8,
    finalists_flops=6e10,
    compared_flops=3e10,
    probe_flops=1e9,
    random_probe_flops=1e9,
    random_probe_s=0.02,
    clock_probes=True,
    part_seconds={
        "set-up": 6.0,
        "micro": 2.0,
        "blocking": 0.055,
        "library": 15.0,
        "verification": 4.7,
        "comparison and report": 0.4,
    },
    fixed_units={"trial": 35.0, "problem": 1.0, "compared": 1.0},
)


def parse_seconds(text: str) -> float:
    """'90s', '3m', '1h', '1m30s' in seconds; raises UsageError for anything else, a number without a unit included."""
    if re.fullmatch(r"\s*[0-9]+(\.[0-9]+)?\s*", text):
        number = text.strip()
        raise UsageError(f"the time '{text}' has no unit", hint=f"write {number}s or {number}m")
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ms|[smh])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise UsageError(f"expected a time such as 90s, 3m or 1h30m; got '{text}'", hint="write a number and a unit")
    return float(sum(float(number) * _UNITS[unit] for number, unit in parts))
