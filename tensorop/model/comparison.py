"""Two comparisons of a library side by side: an older one and a newer one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tensorop.model.bench import Span

IMPROVED, SAME, WORSE = "improved", "same", "worse"


@dataclass(frozen=True)
class Place:
    """What a figure was measured of; vlen: bits, 0 where there is one width."""

    op: str
    dtype: str
    dims: tuple[tuple[str, int], ...]
    layout: str
    vlen: int = 0
    written: str = field(default="", compare=False)

    def at(self, vlen: int) -> Place:
        return replace(self, vlen=vlen)

    @property
    def shape(self) -> str:
        return self.written or "x".join(str(side) for _, side in self.dims)

    def __str__(self) -> str:
        """`OPERATOR f32 16x16x16 row`."""
        return f"{self.op} {self.dtype} {self.shape} {self.layout}" + (f" VLEN {self.vlen}" if self.vlen else "")


@dataclass(frozen=True)
class Figure(Span):
    """The library's own speed in the record's unit, with the quartiles of a clock's rounds; a model's counts repeat
    exactly, so theirs are the value.

    beside: by baseline with its version, how many times as fast the library is, where a clock measured both by turns
    """

    noisy: bool = False
    beside: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True)
class Recorded:
    """A comparison as it was written down. model: name and version of the board model, None by a clock."""

    origin: str
    platform: str
    threads: int
    unit: str
    model: tuple[str, int] | None
    cpu: str
    figures: Mapping[Place, Figure]


@dataclass(frozen=True)
class Change:
    """One place in both records.

    verdict: improved or worse when the speeds differ by more than the threshold and their intervals do not meet, and so
    do, by a clock, the ratios to each baseline of one version that both have; else same.
    """

    place: Place
    old: Figure
    new: Figure
    verdict: str

    @property
    def ratio(self) -> float:
        """New speed over old: above 1, faster than before."""
        return self.new.value / self.old.value

    def to_json(self) -> dict[str, Any]:
        vlen = {"vlen": self.place.vlen} if self.place.vlen else {}
        return {
            "op": self.place.op,
            "dtype": self.place.dtype,
            **dict(self.place.dims),
            "layout": self.place.layout,
            **vlen,
            "old": self.old.value,
            "old_interval": [self.old.low, self.old.high],
            "new": self.new.value,
            "new_interval": [self.new.low, self.new.high],
            "change": self.ratio - 1,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Comparison:
    """All places of two records. threshold: a share of the old speed; gone, added: only in the old or new record."""

    old: str
    platform: str
    threads: int
    unit: str
    threshold: float
    changes: tuple[Change, ...]
    gone: tuple[Place, ...] = ()
    added: tuple[Place, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def count(self, verdict: str) -> int:
        return sum(change.verdict == verdict for change in self.changes)

    @property
    def geomean(self) -> float:
        """Of new speed over old."""
        return math.exp(sum(math.log(change.ratio) for change in self.changes) / len(self.changes))

    def to_json(self) -> dict[str, Any]:
        return {
            "old": self.old,
            "platform": self.platform,
            "threads": self.threads,
            "unit": self.unit,
            "threshold": self.threshold,
            "results": [change.to_json() for change in self.changes],
            "geomean": self.geomean,
            **{verdict: self.count(verdict) for verdict in (IMPROVED, SAME, WORSE)},
            "gone": [str(place) for place in self.gone],
            "added": [str(place) for place in self.added],
            "notes": list(self.notes),
        }
