"""What a run tells its caller while it works; the caller shows it, the run prints nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop.model.bench import Bench
from tensorop.tuner import loop


@dataclass(frozen=True)
class Phase:
    """A part of the pipeline begins."""

    name: str
    detail: str = ""


@dataclass(frozen=True)
class Note:
    """Something worth a line."""

    text: str


@dataclass(frozen=True)
class Trying:
    """An event of a search. unit: of its costs; reference: the cost of `against` on the same problems."""

    stage: str
    dtype: str
    unit: str
    event: loop.Event
    reference: float | None = None
    against: str = ""

    def share(self, ended: loop.Ended) -> float:
        """How much of the search is done, by the trials so far and the seconds left; 0 when nothing is known."""
        spent = sum(ended.finished.seconds.values()) * max(ended.trials, 1)
        return 0.0 if ended.left is None else min(spent / max(spent + ended.left, 1e-9), 1.0)


@dataclass(frozen=True)
class Done:
    """The end of a run: the product and how it compares."""

    out: Path
    library: Path | None
    bench: Bench | None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "out": str(self.out),
            "library": None if self.library is None else str(self.library),
            "notes": list(self.notes),
            "bench": None if self.bench is None else self.bench.to_json(),
        }


Event = Phase | Note | Trying | Done
