"""What a run tells its caller while it works; the caller shows it, the run prints nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop.model.bench import Bench
from tensorop.search import loop


@dataclass(frozen=True)
class Phase:
    """A part of the pipeline begins. seconds: that it will take on a quiet machine, where that is known."""

    name: str
    detail: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class Note:
    """Something worth a line."""

    text: str


@dataclass(frozen=True)
class Trying:
    """An event of a search. unit: of its costs; bound: the cost where a core does nothing but multiply-adds."""

    stage: str
    dtype: str
    unit: str
    event: loop.Event
    bound: float | None = None


@dataclass(frozen=True)
class Done:
    """The end of a run: the product and how it compares. early: the user stopped it before it was through."""

    out: Path
    library: Path | None
    bench: Bench | None
    notes: tuple[str, ...] = ()
    early: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "out": str(self.out),
            "library": None if self.library is None else str(self.library),
            "notes": list(self.notes),
            "stopped_early": self.early,
            "bench": None if self.bench is None else self.bench.to_json(),
        }


Event = Phase | Note | Trying | Done
