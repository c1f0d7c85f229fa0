"""A comparison with baselines: what `bench --format json` prints and the report shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tensorop.model.trial import Outcome

OURS = "ours"


@dataclass(frozen=True)
class BaselineInfo:
    """Which build of a baseline served: version and its own word for its configuration (core name, threads).

    remarks: what a reader of its ratios must know; cores: by VLEN (0 where there is one width) and dtype the core name.
    """

    version: str
    config: str
    remarks: tuple[str, ...] = ()
    cores: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        record: dict[str, object] = {
            "version": self.version,  # of the build that was compared
            "config": self.config,  # as the baseline names it: core type, threads
        }
        if self.remarks:
            record["remarks"] = list(self.remarks)  # limits of the comparison that a reader must know
        if self.cores:
            # core type by VLEN (0: one width) and dtype
            record["cores"] = {str(vlen): dict(by_dtype) for vlen, by_dtype in self.cores.items()}
        return record


def verdict(judged: Outcome) -> str:
    """`ok`, or why what a measured call left is wrong."""
    return "ok" if judged.ok else f"{judged.kind.value}: {judged.message}"


@dataclass(frozen=True)
class Span:
    """A value with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Ratio(Span):
    """Baseline's cost over ours: above 1, ours is faster. low, high: quartiles of a clock's rounds, or the range over
    a model's assumed constants. under: by each alternative of a model, beside that range and not in it."""

    under: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class AtVlen:
    """A row's figures at one VLEN. Counters are per 1000 flop. empty_cycles: as a row has them."""

    ours: float
    ratios: Mapping[str, Ratio]
    counters: Mapping[str, float] = field(default_factory=dict)
    baseline_counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    verdicts: Mapping[str, str] = field(default_factory=dict)  # by library, ours among them
    empty_cycles: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        return _figures(self)


@dataclass(frozen=True)
class Row:
    """One problem. dims: all its sizes by name, attributes among them; written: the shape as its operator writes it.
    `ours` in the report's unit; spread: (high - low) / value of our own samples.

    With several VLENs, `ours` and the ratios are geometric means over them, and `by_vlen` has each one's; a baseline
    that is wrong at one of them has a ratio at the others alone.
    verdicts: by library, ours among them, `ok` or why what a measured call left is wrong (at the first VLEN where it
    is);
    noisy: a clock's reference drifted in every window; peak_share: of the measured FMA peak of as many cores as threads
    empty_ns: by library (and `ours`), a call whose function returns at once, which is taken off its times; of short
    calls alone. empty_cycles: the same under a board model, where there is one width of vectors
    """

    op: str
    dtype: str
    dims: Mapping[str, int]
    layout: str
    ours: float
    ratios: Mapping[str, Ratio]
    spread: float
    counters: Mapping[str, float] = field(default_factory=dict)  # ours, per 1000 flop
    baseline_counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    by_vlen: Mapping[int, AtVlen] = field(default_factory=dict)
    verdicts: Mapping[str, str] = field(default_factory=dict)
    noisy: bool = False
    peak_share: float | None = None
    empty_ns: Mapping[str, float] = field(default_factory=dict)
    empty_cycles: Mapping[str, float] = field(default_factory=dict)
    written: str = ""

    @property
    def measured(self) -> Mapping[int, AtVlen | Row]:
        """By VLEN (bits) everything that was measured; itself at 0 where there is one width."""
        return self.by_vlen or {0: self}

    @property
    def shape(self) -> str:
        return self.written or "x".join(map(str, self.dims.values()))

    def under(self, name: str) -> Row:
        """The row's ratios as they are under an alternative of the model."""
        by_vlen = {vlen: replace(at, ratios=_under(at.ratios, name)) for vlen, at in self.by_vlen.items()}
        return replace(self, ratios=_under(self.ratios, name), by_vlen=by_vlen)

    def to_json(self) -> dict[str, object]:
        main = next(iter(self.ratios.values()), None)
        record: dict[str, object] = {
            "op": self.op,  # operator
            "dtype": self.dtype,  # element type
            "shape": self.shape,  # as the operator writes it, for example 64x64x64
            "dims": dict(self.dims),  # sizes by name; each is also a key of the row itself
            **self.dims,
            "layout": self.layout,  # storage order and transposes
            **_figures(self),
            "low": main.low if main else None,  # lower end of the first baseline's interval
            "high": main.high if main else None,  # upper end of the first baseline's interval
            "spread": self.spread,  # (high - low) / value of our own samples
        }
        if self.by_vlen:
            # the same by VLEN; the row itself then has geometric means over all of them
            record["by_vlen"] = {str(vlen): at.to_json() for vlen, at in self.by_vlen.items()}
        if self.noisy:
            record["noisy"] = True  # the reference drifted in every measuring window
        if self.peak_share is not None:
            record["peak_share"] = self.peak_share  # share of the measured peak of as many cores as threads
        if self.empty_ns:
            # time of a call that returns at once, by library; subtracted from the times of short calls
            record["empty_ns"] = dict(self.empty_ns)
        return record


@dataclass(frozen=True)
class RatioAt:
    """One ratio to one baseline, and where it is. vlen: bits, 0 where there is one width."""

    baseline: str
    row: Row
    vlen: int
    ratio: Ratio

    @property
    def place(self) -> dict[str, object]:
        width = {"vlen": self.vlen} if self.vlen else {}
        return {"dtype": self.row.dtype, "shape": self.row.shape, "layout": self.row.layout, **width}

    def __str__(self) -> str:
        """`512x8x512 f64 at VLEN 512`."""
        return f"{self.row.shape} {self.row.dtype}" + (f" at VLEN {self.vlen}" if self.vlen else "")


@dataclass(frozen=True)
class Bench:
    """All rows of one comparison. unit: "GFLOP/s" by a clock on the real target, "flop/modelled-cycle" by a model.

    absent: baseline, dtype or single problem of a baseline that was asked for and is not there -> why
    peak: measured FMA peak of one core, GFLOP/s, by dtype; empty where no clock measures
    """

    platform: str
    threads: int
    unit: str
    model: Mapping[str, Any] | None
    baselines: Mapping[str, BaselineInfo]
    absent: Mapping[str, str]
    rows: tuple[Row, ...]
    machine: Mapping[str, Any]
    peak: Mapping[str, float] = field(default_factory=dict)

    def geomean(self, dtype: str | None = None, vlen: int | None = None) -> dict[str, float]:
        """Of each baseline's ratio over the rows (of one dtype) that have it; a baseline without any is left out.

        vlen: at this VLEN alone, else each row's own geometric mean over all VLENs.
        """
        found: dict[str, float] = {}
        for name in self.baselines:
            places = [row.ratios if vlen is None else row.measured[vlen].ratios for row in self._of(dtype)]
            found[name] = geomean(ratios[name].value for ratios in places if name in ratios)
        return {name: value for name, value in found.items() if not math.isnan(value)}

    def everything(self) -> Iterator[RatioAt]:
        """Every ratio that was measured: each row's at each VLEN."""
        for row in self.rows:
            for vlen, at in row.measured.items():
                for name, ratio in at.ratios.items():
                    yield RatioAt(name, row, vlen, ratio)

    def lowest(self, dtype: str | None = None, vlen: int | None = None) -> dict[str, RatioAt]:
        """Each baseline's smallest ratio over all rows and VLENs, or those of one dtype and at one VLEN, and where it
        is."""
        found: dict[str, RatioAt] = {}
        for one in self.everything():
            if dtype not in (None, one.row.dtype) or vlen not in (None, one.vlen):
                continue
            if one.baseline not in found or one.ratio.value < found[one.baseline].ratio.value:
                found[one.baseline] = one
        return found

    def below(self, least: float) -> list[RatioAt]:
        """Every ratio under `least`, at every VLEN."""
        return [one for one in self.everything() if one.ratio.value < least]

    @property
    def vlens(self) -> tuple[int, ...]:
        """VLENs that were measured; empty where there is one width."""
        return tuple(dict.fromkeys(vlen for row in self.rows for vlen in row.by_vlen))

    def alternatives(self) -> dict[str, Bench]:
        """The comparison under each alternative of the model, by its name; empty where no model counts."""
        named = dict.fromkeys(name for one in self.everything() for name in one.ratio.under)
        return {name: replace(self, rows=tuple(row.under(name) for row in self.rows)) for name in named}

    def _of(self, dtype: str | None) -> list[Row]:
        return [row for row in self.rows if dtype is None or row.dtype == dtype]

    @property
    def dtypes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.dtype for row in self.rows))

    def _summary(self) -> dict[str, object]:
        lowest = self.lowest()
        return {
            "geomean": self.geomean(),  # geometric mean of all ratios, by baseline
            "geomean_by_dtype": {dtype: self.geomean(dtype) for dtype in self.dtypes},  # the same by dtype
            "geomean_by_vlen": {  # the same by VLEN and dtype
                str(vlen): {dtype: self.geomean(dtype, vlen) for dtype in self.dtypes} for vlen in self.vlens
            },
            "lowest_by_vlen": {  # lowest ratio by VLEN, dtype and baseline, and its shape
                str(vlen): {
                    dtype: {n: {"ratio": one.ratio.value, **one.place} for n, one in self.lowest(dtype, vlen).items()}
                    for dtype in self.dtypes
                }
                for vlen in self.vlens
            },
            "lowest": {name: one.ratio.value for name, one in lowest.items()},  # lowest ratio, by baseline
            "lowest_at": {name: one.place for name, one in lowest.items()},  # its dtype, shape, layout and VLEN
        }

    def to_json(self) -> dict[str, object]:
        return {
            "platform": self.platform,  # what the library was made for
            "threads": self.threads,  # threads that each library used
            "unit": self.unit,  # of `ours`: `GFLOP/s` by a clock, `flop/modelled-cycle` under a board model
            "model": dict(self.model) if self.model else None,  # board model: name, version, calibrated; null: a clock
            "baselines": {name: info.to_json() for name, info in self.baselines.items()},  # what was compared
            "absent": dict(self.absent),  # baseline, dtype or problem without a result -> the reason
            "results": [row.to_json() for row in self.rows],  # one row a problem
            **self._summary(),
            # the summary above under each alternative behaviour of the board model
            "alternatives": {name: under._summary() for name, under in self.alternatives().items()},
            "machine": dict(self.machine),  # the machine that a clock measured on
            "peak": dict(self.peak),  # measured multiply-add peak of one core in GFLOP/s, by dtype
        }


def joined(found: Sequence[Bench]) -> Bench:
    """The comparisons of several operators' libraries on one target as one."""
    baselines = {name: info for one in found for name, info in one.baselines.items()}
    absent = {name: why for one in found for name, why in one.absent.items()}
    peak = {dtype: speed for one in found for dtype, speed in one.peak.items()}
    rows = tuple(row for one in found for row in one.rows)
    return replace(found[0], baselines=baselines, absent=absent, rows=rows, peak=peak)


def _under(ratios: Mapping[str, Ratio], name: str) -> dict[str, Ratio]:
    found = {baseline: ratio.under[name] for baseline, ratio in ratios.items() if name in ratio.under}
    return {baseline: Ratio(value, value, value) for baseline, value in found.items()}


def _figures(of: Row | AtVlen) -> dict[str, object]:
    """What a row and its figures at one VLEN have alike."""
    record: dict[str, object] = {
        "ours": of.ours,  # our speed, in `unit`
        "ratio": {name: ratio.value for name, ratio in of.ratios.items()},  # by baseline; over 1: ours is faster
        "interval": {name: [ratio.low, ratio.high] for name, ratio in of.ratios.items()},  # of each ratio
        "verdict": dict(of.verdicts),  # by library: `ok`, or why its output is wrong
    }
    if under := {name: dict(ratio.under) for name, ratio in of.ratios.items() if ratio.under}:
        record["alternatives"] = under  # ratio by baseline and alternative behaviour of the board model
    if of.counters:
        record["per_kflop"] = {  # counters per 1000 flop, by library
            OURS: dict(of.counters),
            **{name: dict(counts) for name, counts in of.baseline_counters.items()},
        }
    if of.empty_cycles:
        record["empty_cycles"] = dict(of.empty_cycles)  # modelled cycles of a call that returns at once, subtracted
    return record


def geomean(values: Iterable[float]) -> float:
    """Geometric mean; NaN of nothing."""
    logs = [math.log(v) for v in values if v > 0]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan
