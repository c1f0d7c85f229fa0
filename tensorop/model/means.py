"""What a kind of target can afford, and how long the parts of a job take there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Means:
    """Flops, but where said.

    search: of one problem in a search; together: of all of them, in one layout; every_layout: of a problem that is
    tuned in all of them, for a layout changes packing, which large problems hide
    large: of all that the finalists are tried on, none where nothing is; a_second: that each gets through, where time
    makes more of it; compared: of one problem that the closing comparison can afford, `tensorop bench` has no limit
    probe, random: of a shape for the dispatch, and of a random one, which all variants are measured on; random_s:
    seconds that one variant takes on a random one, on one core
    by_clock: whether shapes are tuned and compared too that an operator has for clocks alone
    rates: seconds for a unit of each part's size, for the work of `forecast.slower`; empty where nobody knows
    fixed: what a trial and one problem of it, and a problem compared are, in what their stage is measured in; per: the
    flops of a problem that count as much as 1 of it; slowest: flops a second of the slowest call
    """

    search: float
    every_layout: float
    together: float = math.inf
    large: float = 0.0
    a_second: float = 0.0
    compared: float = math.inf
    probe: float = 0.0
    random: float = 0.0
    random_s: float = 0.0
    by_clock: bool = False
    rates: Mapping[str, float] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    per: float = math.inf
    slowest: float = 2e6

    def deadline(self, flops: float) -> float:
        """Seconds that calls of so much work may take."""
        return 120 + flops / self.slowest


# On a clock, tens of milliseconds a problem; seconds on two cores of an AMD EPYC (Zen 3, 2.45 GHz).
CLOCK = Means(
    search=3e9,
    every_layout=3e8,
    large=6e10,
    compared=3e10,
    probe=1e9,
    random=1e9,
    random_s=0.02,
    by_clock=True,
    rates={
        "set-up": 6.0,
        "micro": 2.0,
        "blocking": 0.055,
        "large": 0.055,
        "smallest": 0.03,
        "library": 15.0,
        "verification": 4.7,
        "comparison": 0.4,
        "report": 3.0,
    },
    fixed={"trial": 35.0, "problem": 1.0, "compared": 1.0},
)
