"""A comparison with baselines: what `bench --format json` prints and the report shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class BaselineInfo:
    """Which build of a baseline served: version and its own word for its configuration (core name, threads)."""

    version: str
    config: str


@dataclass(frozen=True)
class Ratio:
    """Baseline's cost over ours: above 1, ours is faster. low, high: quartiles of a clock's rounds, or the range over
    a model's assumed constants."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class AtVlen:
    """A row's figures at one VLEN. Counters are per 1000 flop."""

    ours: float
    ratios: Mapping[str, Ratio]
    counters: Mapping[str, float] = field(default_factory=dict)
    baseline_counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "ours": self.ours,
            "ratio": {name: ratio.value for name, ratio in self.ratios.items()},
            "interval": {name: [ratio.low, ratio.high] for name, ratio in self.ratios.items()},
        }
        if self.counters:
            record["per_kflop"] = per_kflop(self.counters, self.baseline_counters)
        return record


@dataclass(frozen=True)
class Row:
    """One problem. `ours` in the report's unit; spread: (high - low) / value of our own samples.

    With several VLENs, `ours` and the ratios are geometric means over them, and `by_vlen` has each one's.
    noisy: a clock's reference drifted in every window; peak_share: of the measured FMA peak of as many cores as threads
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
    noisy: bool = False
    peak_share: float | None = None

    @property
    def shape(self) -> str:
        return "x".join(map(str, self.dims.values()))

    def to_json(self) -> dict[str, Any]:
        main = next(iter(self.ratios.values()), None)
        record: dict[str, Any] = {
            "op": self.op,
            "dtype": self.dtype,
            **self.dims,
            "layout": self.layout,
            "ours": self.ours,
            "ratio": {name: ratio.value for name, ratio in self.ratios.items()},
            "low": main.low if main else None,
            "high": main.high if main else None,
            "spread": self.spread,
            "interval": {name: [ratio.low, ratio.high] for name, ratio in self.ratios.items()},
        }
        if self.counters:
            record["per_kflop"] = per_kflop(self.counters, self.baseline_counters)
        if self.by_vlen:
            record["by_vlen"] = {str(vlen): at.to_json() for vlen, at in self.by_vlen.items()}
        if self.noisy:
            record["noisy"] = True
        if self.peak_share is not None:
            record["peak_share"] = self.peak_share
        return record


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

    def geomean(self, dtype: str | None = None) -> dict[str, float]:
        """Of each baseline's ratio over the rows (of one dtype) that have it; a baseline without any is left out."""
        found = {
            name: geomean(r.ratios[name].value for r in self._of(dtype) if name in r.ratios) for name in self.baselines
        }
        return {name: value for name, value in found.items() if not math.isnan(value)}

    def lowest(self) -> dict[str, float]:
        """Each baseline's smallest ratio."""
        found = {name: [r.ratios[name].value for r in self.rows if name in r.ratios] for name in self.baselines}
        return {name: min(values) for name, values in found.items() if values}

    def below(self, least: float) -> list[tuple[Row, str, float]]:
        """(row, baseline, ratio) of every ratio under `least`."""
        return [(r, name, x.value) for r in self.rows for name, x in r.ratios.items() if x.value < least]

    def _of(self, dtype: str | None) -> list[Row]:
        return [row for row in self.rows if dtype is None or row.dtype == dtype]

    @property
    def dtypes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.dtype for row in self.rows))

    def to_json(self) -> dict[str, Any]:
        return {
            "platform": self.platform,
            "threads": self.threads,
            "unit": self.unit,
            "model": dict(self.model) if self.model else None,
            "baselines": {name: {"version": b.version, "config": b.config} for name, b in self.baselines.items()},
            "absent": dict(self.absent),
            "results": [row.to_json() for row in self.rows],
            "geomean": self.geomean(),
            "geomean_by_dtype": {dtype: self.geomean(dtype) for dtype in self.dtypes},
            "lowest": self.lowest(),
            "machine": dict(self.machine),
            "peak": dict(self.peak),
        }


def per_kflop(ours: Mapping[str, float], baselines: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {"ours": dict(ours), **{name: dict(counters) for name, counters in baselines.items()}}


def geomean(values: Iterable[float]) -> float:
    """Geometric mean; NaN of nothing."""
    logs = [math.log(v) for v in values if v > 0]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan
