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
    """The build of a baseline that was compared."""

    version: str  # of the build
    config: str  # as the baseline names it: core type, threads
    remarks: tuple[str, ...] = ()  # limits of the comparison that a reader must know
    cores: Mapping[int, Mapping[str, str]] = field(default_factory=dict)  # core type by VLEN (0: one width) and dtype

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

    value: float  # the best estimate
    low: float  # lower end: a quartile of a clock's rounds, or the least over a model's assumed constants
    high: float  # upper end, likewise


@dataclass(frozen=True)
class Ratio(Span):
    """Speedup over a baseline: the baseline's cost divided by ours. Over 1, ours is faster."""

    under: Mapping[str, float] = field(default_factory=dict)  # by alternative behaviour of a model; not in the interval


@dataclass(frozen=True)
class AtVlen:
    """A row's results at one VLEN; its fields mean the same as the row's."""

    ours: float  # our speed
    ratios: Mapping[str, Ratio]  # speedup by baseline
    counters: Mapping[str, float] = field(default_factory=dict)  # ours, per 1000 flop
    baseline_counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by baseline
    verdicts: Mapping[str, str] = field(default_factory=dict)  # by library, ours included
    empty_cycles: Mapping[str, float] = field(default_factory=dict)  # of a call that returns at once, by library

    def to_json(self) -> dict[str, object]:
        return _figures(self)


@dataclass(frozen=True)
class Row:
    """The comparison of one problem.

    With several VLENs, `ours` and the ratios are geometric means over them. A baseline that is wrong at one VLEN has a
    ratio at the other ones only.
    """

    op: str  # operator
    dtype: str  # element type
    dims: Mapping[str, int]  # sizes by name, attributes included
    layout: str  # storage order and transposes
    ours: float  # our speed, in the comparison's unit
    ratios: Mapping[str, Ratio]  # speedup by baseline
    spread: float  # (high - low) / value of our own samples
    counters: Mapping[str, float] = field(default_factory=dict)  # ours, per 1000 flop
    baseline_counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by baseline, per 1000 flop
    by_vlen: Mapping[int, AtVlen] = field(default_factory=dict)  # results by VLEN in bits; empty: there is one width
    verdicts: Mapping[str, str] = field(default_factory=dict)  # by library, ours included: `ok`, or why it is wrong
    noisy: bool = False  # whether a clock's reference drifted in every window
    peak_share: float | None = None  # share of the measured FMA peak of as many cores as threads
    # Time of a call that returns at once, by library; it is subtracted from the times of short calls.
    empty_ns: Mapping[str, float] = field(default_factory=dict)
    # The same in modelled cycles, where there is one width of vectors.
    empty_cycles: Mapping[str, float] = field(default_factory=dict)
    written: str = ""  # the shape as its operator writes it

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
    """A comparison with baselines."""

    platform: str  # what the library was made for
    threads: int  # threads that each library used
    unit: str  # of speeds: "GFLOP/s" by a clock on the real target, "flop/modelled-cycle" by a board model
    model: Mapping[str, Any] | None  # the board model: name, version, calibrated; None: a clock measured
    baselines: Mapping[str, BaselineInfo]  # by name
    absent: Mapping[str, str]  # baseline, dtype or problem without a result -> the reason
    rows: tuple[Row, ...]  # one a problem
    machine: Mapping[str, Any]  # the machine that a clock measured on
    peak: Mapping[str, float] = field(default_factory=dict)  # FMA peak of one core in GFLOP/s, by dtype, if measured

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
