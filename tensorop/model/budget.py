"""How long a search may take: seconds, a number of trials, or both."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tensorop.errors import UsageError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "ms": 0.001}


@dataclass(frozen=True)
class Budget:
    """A limit. `seconds` and `trials` may both be given; the first one reached ends the search."""

    seconds: float | None = None
    trials: int | None = None

    def __post_init__(self) -> None:
        if self.seconds is None and self.trials is None:
            raise UsageError("a search needs a budget", hint="give --budget 2m or --trials 100")
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise UsageError(f"a budget of {self.seconds:g} seconds", hint="give a positive time, e.g. --budget 2m")
        if self.trials is not None and self.trials < 1:
            raise UsageError(f"a budget of {self.trials} trials", hint="give at least --trials 1")

    def share(self, part: float) -> Budget:
        """That fraction of it, at least one trial."""
        seconds = None if self.seconds is None else self.seconds * part
        return Budget(seconds, None if self.trials is None else max(1, round(self.trials * part)))


def parse_seconds(text: str) -> float:
    """'90s', '3m', '1h', '1m30s' in seconds; raises UsageError for anything else, a number without a unit included."""
    if re.fullmatch(r"\s*[0-9]+(\.[0-9]+)?\s*", text):
        number = text.strip()
        raise UsageError(f"'{text}' has no unit: {number}s or {number}m?", hint="write e.g. 90s, 3m or 1h30m")
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ms|[smh])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise UsageError(f"'{text}' is not a time", hint="write e.g. 90s, 3m or 1h30m")
    return float(sum(float(number) * _UNITS[unit] for number, unit in parts))
