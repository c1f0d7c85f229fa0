"""`bench --compare`: compares a library's speeds with those of an older comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tensorop.errors import UsageError
from tensorop.model.bench import Bench, Span, geomean

IMPROVED, SAME, WORSE = "improved", "same", "worse"


@dataclass(frozen=True)
class Place:
    """The operator, shape, layout and VLEN that a speed belongs to."""

    op: str
    dtype: str
    dims: tuple[tuple[str, int], ...]
    layout: str
    vlen: int  # bits; 0 if the target has a fixed width
    shape: str = field(compare=False)  # in the operator's notation

    def __str__(self) -> str:
        """`OPERATOR f32 16x16x16 row`."""
        return f"{self.op} {self.dtype} {self.shape} {self.layout}" + (f" VLEN {self.vlen}" if self.vlen else "")


@dataclass(frozen=True)
class Speed(Span):
    """The library's speed, in the unit of its comparison.

    With a clock, the interval comes from the quartiles of the rounds. Model counts repeat exactly, so their interval is
    the value.
    """

    noisy: bool = False
    # By baseline with its function and version: our speed over the baseline's, if a clock measured both in turns.
    against: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """One place in both comparisons."""

    place: Place
    old: Speed
    new: Speed
    verdict: str  # IMPROVED, SAME or WORSE

    @property
    def ratio(self) -> float:
        """New speed over old: above 1, faster than before."""
        return self.new.value / self.old.value

    def to_json(self) -> dict[str, object]:
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
    """Two comparisons, matched place by place."""

    old: str  # file of the older comparison
    platform: str
    threads: int
    unit: str
    threshold: float  # a share of the old speed
    changes: tuple[Change, ...]
    gone: tuple[Place, ...]  # only in the older comparison
    added: tuple[Place, ...]  # only in the newer comparison
    notes: tuple[str, ...]

    def count(self, verdict: str) -> int:
        return sum(change.verdict == verdict for change in self.changes)

    @property
    def geomean(self) -> float:
        """The geometric mean of new speed over old."""
        return geomean(change.ratio for change in self.changes)

    def to_json(self) -> dict[str, object]:
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


def compare(old: Bench, new: Bench, threshold: float, origin: str) -> Comparison:
    """Matches two comparisons by operator, dtype, dims, layout and VLEN.

    threshold: a share of the old speed; a smaller change counts as SAME
    origin: file of the older comparison
    Raises UsageError if platform, unit, threads or board model differ, or if no place is in both.
    """
    version = (new.model["name"], new.model["version"]) if new.model else None
    check(old, origin, new.platform, new.unit, version, new.threads)
    then, now = speeds(old), speeds(new)
    common = [place for place in now if place in then]
    if not common:
        raise UsageError(
            f"{origin} has {len(then)} results, and none has a shape, dtype and layout that was measured now",
            hint="use the same --shapes, --dtype and --layout as for the old result",
        )
    cpus = [str(one.machine.get("cpu", "")) or "unknown" for one in (old, new)]
    another = old.model is None and cpus[0] != cpus[1]
    return Comparison(
        old=origin,
        platform=new.platform,
        threads=new.threads,
        unit=new.unit,
        threshold=threshold,
        changes=tuple(_change(place, then[place], now[place], threshold) for place in common),
        gone=tuple(place for place in then if place not in now),
        added=tuple(place for place in now if place not in then),
        notes=(f"the CPUs differ: {cpus[0]} (old) and {cpus[1]} (new)",) if another else (),
    )


def check(old: Bench, origin: str, platform: str, unit: str, model: tuple[str, int] | None, threads: int) -> None:
    """Raises UsageError if the older comparison has another platform, board model, unit or number of threads.

    model: name and version of the board model; None if a clock measured
    """
    named = f"board model {model[0]} version {model[1]}" if model else "no board model"
    held = "board model {name} version {version}".format(**old.model) if old.model else "no board model"
    for key, then, now in (
        ("platform", old.platform, platform),
        ("model", held, named),
        ("unit", old.unit, unit),
        ("threads", old.threads, threads),
    ):
        if then != now:
            raise UsageError(
                f"{origin}: key '{key}': expected {now}, got {then}",
                hint="both results must have the same platform, unit, threads and model version",
            )


def speeds(bench: Bench) -> dict[Place, Speed]:
    """Every speed of the library: one for each row and VLEN."""
    found = {}
    for row in bench.rows:
        for vlen, at in row.measured.items():
            place = Place(row.op, row.dtype, tuple(row.dims.items()), row.layout, vlen, row.shape)
            if vlen or bench.model:
                found[place] = Speed(at.ours, at.ours, at.ours)
                continue
            half = row.ours * row.spread / 2
            named = {n: f"{n} {row.called.get(n, '')} {info.version}" for n, info in bench.baselines.items()}
            against = {text: row.ratios[n] for n, text in named.items() if n in row.ratios}
            found[place] = Speed(row.ours, row.ours - half, row.ours + half, row.noisy, against)
    return found


def _change(place: Place, old: Speed, new: Speed, threshold: float) -> Change:
    """IMPROVED or WORSE if the speeds differ by more than the threshold and their intervals do not overlap.

    A machine that is slower today slows a baseline as well. With a clock, the ratios to each baseline that both
    comparisons have in the same version must therefore give the same verdict; otherwise it is SAME.
    """
    verdicts = {_verdict(old, new, threshold)}
    verdicts |= {
        _verdict(old.against[name], new.against[name], threshold) for name in old.against if name in new.against
    }
    return Change(place, old, new, verdicts.pop() if len(verdicts) == 1 else SAME)


def _verdict(old: Span, new: Span, threshold: float) -> str:
    ratio = new.value / old.value
    if ratio < 1 - threshold and new.high < old.low:
        return WORSE
    return IMPROVED if ratio > 1 + threshold and new.low > old.high else SAME
