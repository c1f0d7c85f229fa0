"""What fitting a board model's constants to a board's figures came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Root mean square of log(modelled / measured) up to which a fitted model is one of the board.
EXPLAINED = 0.3


@dataclass(frozen=True)
class Calibration:
    """Everything a board owner sends; the fields are explained in specs/calibration.py.

    constants: dotted key -> value, was, low, high, determined; figures: benchmark -> ns, mhz, spread, measured,
    before, after; residual: before, after, known; absent: benchmark -> why it has no figure; alternatives: of the
    model -> shown, refuted or open
    """

    platform: str
    model: str
    version: int
    board: Mapping[str, object]
    constants: Mapping[str, Mapping[str, float | bool]]
    residual: Mapping[str, float]
    figures: Mapping[str, Mapping[str, float]]
    absent: Mapping[str, str] = field(default_factory=dict)
    alternatives: Mapping[str, str] = field(default_factory=dict)
