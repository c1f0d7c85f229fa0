"""What a run tells its caller while it works; the caller shows it, the run prints nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tensorop.model.bench import Bench
from tensorop.search import loop


@dataclass(frozen=True)
class Phase:
    """A part of the pipeline begins."""

    name: str
    detail: str = ""
    seconds: float | None = None  # that it will take, where that is known


@dataclass(frozen=True)
class Note:
    """Something worth a line."""

    text: str


@dataclass(frozen=True)
class Trying:
    """An event of a search."""

    stage: str
    dtype: str
    unit: str  # of costs
    event: loop.Event
    bound: float | None = None  # the cost where a core does nothing but multiply-adds


@dataclass(frozen=True)
class Done:
    """The end of a run: the product and how it compares."""

    out: Path
    library: Path | None
    bench: Bench | None
    notes: tuple[str, ...] = ()
    early: bool = False  # the user stopped it before it was through

    def to_json(self) -> dict[str, object]:
        return {
            "out": str(self.out),
            "library": None if self.library is None else str(self.library),
            "notes": list(self.notes),
            "stopped_early": self.early,
            "bench": None if self.bench is None else self.bench.to_json(),
        }


Event = Phase | Note | Trying | Done
