"""Events of a run for its caller, which shows them; the run itself prints nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tensorop.model.bench import Bench
from tensorop.model.search_events import SearchEvent


@dataclass(frozen=True)
class Phase:
    """A part of the pipeline begins."""

    name: str  # name of the part
    detail: str = ""  # further description
    seconds: float | None = None  # expected duration, if it is known


@dataclass(frozen=True)
class Note:
    """A line for the user."""

    text: str  # the line


@dataclass(frozen=True)
class Trying:
    """An event of a search."""

    stage: str  # part of the search
    dtype: str  # element type
    unit: str  # unit of costs
    event: SearchEvent  # a trial began or ended, or the search ended
    bound: float | None = None  # lowest cost that the core's multiply-add units allow


@dataclass(frozen=True)
class Building:
    """One of many kernels is built, or could not be."""

    number: int  # of those that ended
    count: int  # of all
    seconds: float  # expected time for the others

    def __str__(self) -> str:
        left = f"{self.seconds / 60:.0f} minutes" if self.seconds >= 90 else f"{self.seconds:.0f} seconds"
        return f"kernel {self.number} of {self.count}, about {left} left"


@dataclass(frozen=True)
class Done:
    """The end of a run, with the product and its comparison."""

    out: Path  # folder of the product
    library: Path | None  # the shared library; None: stopped before there was one
    bench: Bench | None  # comparison with the baselines; None: there was none
    notes: tuple[str, ...] = ()  # remarks for the user
    early: bool = False  # whether the user stopped the run before it was complete

    def to_json(self) -> dict[str, object]:
        return {
            "out": str(self.out),
            "library": None if self.library is None else str(self.library),
            "notes": list(self.notes),
            "stopped_early": self.early,
            "bench": None if self.bench is None else self.bench.to_json(),
        }


Event = Phase | Note | Trying | Building | Done
