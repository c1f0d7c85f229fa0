"""The record of a comparison with baselines, which `bench --format json` prints and the report shows."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tensorop.model.trial import Outcome

OURS = "ours"
BEST = "best"  # among baselines: the fastest right one of several, at each row and VLEN


@dataclass(frozen=True)
class BaselineInfo:
    """The build of a baseline that was compared."""

    version: str  # version of the build
    config: str  # the baseline's own name of its configuration: core type, threads
    remarks: tuple[str, ...] = ()  # limits of the comparison
    cores: Mapping[int, Mapping[str, str]] = field(default_factory=dict)  # core type by VLEN (0: fixed width) and dtype
    limited: tuple[int, ...] = ()  # VLENs (bits; 0: fixed width) at which a remark applies

    def to_json(self) -> dict[str, object]:
        record: dict[str, object] = {
            "version": self.version,  # version of the compared build
            "config": self.config,  # the baseline's own name of its configuration: core type, threads
        }
        if self.remarks:
            record["remarks"] = list(self.remarks)  # limits of the comparison
            record["limited"] = list(self.limited)  # VLENs (0: fixed width) at which a remark applies
        if self.cores:
            # core type by VLEN (0: fixed width) and dtype
            record["cores"] = {str(vlen): dict(by_dtype) for vlen, by_dtype in self.cores.items()}
        return record


def verdict(judged: Outcome) -> str:
    """`ok`, or the reason why a measured call's output is wrong."""
    return "ok" if judged.ok else f"{judged.kind.value}: {judged.message}"


@dataclass(frozen=True)
class Span:
    """A value with its interval."""

    value: float  # the best estimate
    low: float  # lower end: a quartile over a clock's rounds, or the minimum over a model's assumed constants
    high: float  # upper end: the other quartile, or the maximum


@dataclass(frozen=True)
class Ratio(Span):
    """Speedup over a baseline: the baseline's cost divided by ours. Above 1, ours is faster."""

    under: Mapping[str, float] = field(default_factory=dict)  # by alternative of the model; not part of the interval


@dataclass(frozen=True)
class AtVlen:
    """A row's results at one VLEN. Fields have the same meaning as in Row."""

    ours: float  # our speed
    ratios: Mapping[str, Ratio]  # speedup by baseline
    counters: Mapping[str, float] = field(default_factory=dict)  # ours, per 1000 flop
    baseline_counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by baseline, per 1000 flop
    verdicts: Mapping[str, str] = field(default_factory=dict)  # by library, ours included
    empty_cycles: Mapping[str, float] = field(default_factory=dict)  # cycles of an empty call, by library
    called: Mapping[str, str] = field(default_factory=dict)  # by baseline, `best` included
    path_instructions: int | None = None

    def to_json(self) -> dict[str, object]:
        return _figures(self)


@dataclass(frozen=True)
class Row:
    """The comparison of one problem.

    With several VLENs, `ours` and the ratios are geometric means over them. A baseline that computes wrong results at
    one VLEN has ratios at the other VLENs only.
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
    by_vlen: Mapping[int, AtVlen] = field(default_factory=dict)  # results by VLEN in bits; empty: fixed width
    # by library, ours included: `ok`, or the reason why it is wrong
    verdicts: Mapping[str, str] = field(default_factory=dict)
    noisy: bool = False  # whether the clock's reference drifted in every window
    peak_share: float | None = None  # our speed / (measured FMA peak of one core x threads)
    time_share: float | None = None  # part of the time in the file of `--shapes @FILE` that its line has
    # Time of a call that returns at once, by library; it is subtracted from the times of short calls.
    empty_ns: Mapping[str, float] = field(default_factory=dict)
    # The same in modelled cycles, for vectors of fixed width.
    empty_cycles: Mapping[str, float] = field(default_factory=dict)
    written: str = ""  # the shape as its operator writes it
    # By baseline: the function that was called, where the operator has several for the shape; the fastest right one.
    # By `best`: the fastest right baseline.
    called: Mapping[str, str] = field(default_factory=dict)
    # Of a short call of our function: before its first access to an operand, and after its last one.
    path_instructions: int | None = None

    @property
    def measured(self) -> Mapping[int, AtVlen | Row]:
        """VLEN (bits) -> results; for vectors of fixed width, 0 -> the row itself."""
        return self.by_vlen or {0: self}

    @property
    def shape(self) -> str:
        return self.written or "x".join(map(str, self.dims.values()))

    def under(self, name: str) -> Row:
        """The row with its ratios under an alternative of the model."""
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
            # the same by VLEN; the row itself then has geometric means over all VLENs
            record["by_vlen"] = {str(vlen): at.to_json() for vlen, at in self.by_vlen.items()}
        if self.noisy:
            record["noisy"] = True  # the reference drifted in every measuring window
        if self.peak_share is not None:
            # our speed / (measured multiply-add peak of one core x threads); above 1.03 the clock was unsteady
            record["peak_share"] = self.peak_share
        if self.time_share is not None:
            record["time_share"] = self.time_share  # part of the time in the file of `--shapes @FILE`
        if self.empty_ns:
            # time of a call that returns at once, by library; subtracted from the times of short calls
            record["empty_ns"] = dict(self.empty_ns)
        return record


@dataclass(frozen=True)
class RatioAt:
    """One ratio with its baseline, row and VLEN."""

    baseline: str
    row: Row
    vlen: int  # bits; 0: fixed width
    ratio: Ratio

    @property
    def place(self) -> dict[str, object]:
        width = {"vlen": self.vlen} if self.vlen else {}
        return {"dtype": self.row.dtype, "shape": self.row.shape, "layout": self.row.layout, **width}

    def __str__(self) -> str:
        """For example `512x8x512 f64 at VLEN 512`, or `1x64x64 f32 (CALLED)` as in `Row.called`."""
        called = self.row.measured[self.vlen].called.get(self.baseline)
        width = f" at VLEN {self.vlen}" if self.vlen else ""
        return f"{self.row.shape} {self.row.dtype}{width}" + (f" ({called})" if called else "")


@dataclass(frozen=True)
class Bench:
    """A comparison with baselines."""

    platform: str  # the platform of the library
    threads: int  # threads of each library
    unit: str  # of speeds: "GFLOP/s" (a clock on the target) or "flop/modelled-cycle" (a board model)
    model: Mapping[str, Any] | None  # the board model: name, version, calibrated; None: a clock measured
    baselines: Mapping[str, BaselineInfo]  # by name
    absent: Mapping[str, str]  # baseline, dtype or problem without a result -> the reason
    rows: tuple[Row, ...]  # one for each problem
    machine: Mapping[str, Any]  # the machine of a clock's measurements
    peak: Mapping[str, float] = field(default_factory=dict)  # FMA peak of one core in GFLOP/s, by dtype, if measured

    @property
    def columns(self) -> tuple[str, ...]:
        """The baselines, and BEST if several were compared."""
        return (*self.baselines, *dict.fromkeys(one.baseline for one in self.everything() if one.baseline == BEST))

    def geomean(self, dtype: str | None = None, vlen: int | None = None) -> dict[str, float]:
        """Baseline -> geometric mean of its ratios over the rows (of one dtype); only baselines that have ratios.

        vlen: use the ratios at this VLEN; by default each row's geometric mean over all VLENs
        """
        found: dict[str, float] = {}
        for name in self.columns:
            places = [row.ratios if vlen is None else row.measured[vlen].ratios for row in self._of(dtype)]
            found[name] = geomean(ratios[name].value for ratios in places if name in ratios)
        return {name: value for name, value in found.items() if not math.isnan(value)}

    def saved(self) -> dict[str, float]:
        """Baseline -> part of its time on the listed calls that our library saves, weighted by their recorded times."""
        return {
            name: 1 - sum(time / ratio for time, ratio in times) / sum(time for time, _ in times)
            for name in self.columns
            if (times := self._times(name))
        }

    def time_measured(self, name: str) -> float:
        """Part of the listed time that the rows with a ratio to a baseline have."""
        return sum(time for time, _ in self._times(name))

    def _times(self, name: str) -> list[tuple[float, float]]:
        found = [row for row in self.rows if row.time_share and name in row.ratios]
        return [(row.time_share or 0.0, row.ratios[name].value) for row in found]

    def limited(self, name: str, vlen: int) -> bool:
        """Whether a remark limits the comparison with a baseline at a VLEN (bits; 0: the only one)."""
        of = self.baselines.values() if name == BEST else (self.baselines[name],)
        found = [limited for info in of for limited in info.limited]
        return vlen in found if vlen else bool(found)

    def everything(self) -> Iterator[RatioAt]:
        """Every measured ratio, of each row at each VLEN."""
        for row in self.rows:
            for vlen, at in row.measured.items():
                for name, ratio in at.ratios.items():
                    yield RatioAt(name, row, vlen, ratio)

    def lowest(self, dtype: str | None = None, vlen: int | None = None) -> dict[str, RatioAt]:
        """Baseline -> its smallest ratio with its place, over all rows and VLENs or those of one dtype and VLEN."""
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
        """The measured VLENs; empty for vectors of fixed width."""
        return tuple(dict.fromkeys(vlen for row in self.rows for vlen in row.by_vlen))

    def lacking(self) -> list[str]:
        """`absent` as text, each reason once: `NAME: REASON`, or `NAME and 3 more: REASON`."""
        names: dict[str, list[str]] = {}
        for name, why in self.absent.items():
            names.setdefault(why, []).append(name)
        more = {why: f" and {len(of) - 1} more" if len(of) > 1 else "" for why, of in names.items()}
        return [f"{of[0]}{more[why]}: {why}" for why, of in names.items()]

    def alternatives(self) -> dict[str, Bench]:
        """Alternative of the model -> the comparison under it; empty if a clock measured."""
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
            "platform": self.platform,  # the platform of the library
            "threads": self.threads,  # threads of each library
            "unit": self.unit,  # unit of `ours`: `GFLOP/s` by a clock, `flop/modelled-cycle` under a board model
            "model": dict(self.model) if self.model else None,  # board model: name, version, calibrated; null: a clock
            "baselines": {name: info.to_json() for name, info in self.baselines.items()},  # baselines by name
            "absent": dict(self.absent),  # baseline, dtype or problem without a result -> the reason
            "results": [row.to_json() for row in self.rows],  # one row for each problem
            **self._summary(),
            **({"saved": self.saved()} if self.saved() else {}),  # part of the listed time that we save, by baseline
            # the summary above under each alternative of the board model
            "alternatives": {name: under._summary() for name, under in self.alternatives().items()},
            "machine": dict(self.machine),  # the machine of a clock's measurements
            "peak": dict(self.peak),  # measured multiply-add peak of one core in GFLOP/s, by dtype
        }


def joined(found: Sequence[Bench]) -> Bench:
    """One comparison made of those of several operators' libraries on the same target."""
    baselines = {name: info for one in found for name, info in one.baselines.items()}
    absent = {name: why for one in found for name, why in one.absent.items()}
    peak = {dtype: speed for one in found for dtype, speed in one.peak.items()}
    rows = tuple(row for one in found for row in one.rows)
    return replace(found[0], baselines=baselines, absent=absent, rows=rows, peak=peak)


def _under(ratios: Mapping[str, Ratio], name: str) -> dict[str, Ratio]:
    found = {baseline: ratio.under[name] for baseline, ratio in ratios.items() if name in ratio.under}
    return {baseline: Ratio(value, value, value) for baseline, value in found.items()}


def _figures(of: Row | AtVlen) -> dict[str, object]:
    """JSON keys that Row and AtVlen share."""
    record: dict[str, object] = {
        "ours": of.ours,  # our speed, in `unit`
        # speedup by baseline; above 1: ours is faster. With several baselines, `best` is the fastest right one here
        "ratio": {name: ratio.value for name, ratio in of.ratios.items()},
        "interval": {name: [ratio.low, ratio.high] for name, ratio in of.ratios.items()},  # interval of each ratio
        "verdict": dict(of.verdicts),  # by library: `ok`, or the reason why its output is wrong
    }
    if under := {name: dict(ratio.under) for name, ratio in of.ratios.items() if ratio.under}:
        record["alternatives"] = under  # ratio by baseline and alternative of the board model
    if of.counters:
        record["per_kflop"] = {  # counters per 1000 flop, by library
            OURS: dict(of.counters),
            **{name: dict(counts) for name, counts in of.baseline_counters.items()},
        }
    if of.called:
        # by baseline: the called function, where there are several for the shape; by `best`: the fastest right baseline
        record["called"] = dict(of.called)
    if of.path_instructions is not None:
        # instructions of a short call of our function before its first access to an operand, and after its last one
        record["path_instructions"] = of.path_instructions
    if of.empty_cycles:
        record["empty_cycles"] = dict(of.empty_cycles)  # modelled cycles of a call that returns at once, subtracted
    return record


def geomean(values: Iterable[float], weights: Sequence[float] = ()) -> float:
    """Geometric mean; NaN without values. Raises ValueError for a value of 0 or less. weights: by default equal"""
    logs = [math.log(v) for v in values]
    if weights:
        return math.exp(sum(map(operator.mul, logs, weights)) / sum(weights))
    return math.exp(sum(logs) / len(logs)) if logs else math.nan
