"""A comparison with baselines: what `bench --format json` prints and the report shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
class Row:
    """One problem. `ours` in the report's unit; spread: (high - low) / value of our own samples."""

    op: str
    dtype: str
    dims: Mapping[str, int]
    layout: str
    ours: float
    ratios: Mapping[str, Ratio]
    spread: float
    vlen: int = 0
    counters: Mapping[str, float] | None = None  # ours, per 1000 flop
    baseline_counters: Mapping[str, Mapping[str, float]] | None = None

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
        if self.vlen:
            record["vlen"] = self.vlen
        if self.counters:
            record["per_kflop"] = {"ours": dict(self.counters), **{k: dict(v) for k, v in (self.baseline_counters or {}).items()}}
        return record


@dataclass(frozen=True)
class Bench:
    """All rows of one comparison. unit: "GFLOP/s" by a clock on the real target, "flop/modelled-cycle" by a model."""

    platform: str
    threads: int
    unit: str
    model: Mapping[str, Any] | None
    baselines: Mapping[str, BaselineInfo]
    absent: Mapping[str, str]  # baseline or dtype asked for and not there -> why
    rows: tuple[Row, ...]
    machine: Mapping[str, Any]

    def geomean(self, dtype: str | None = None) -> dict[str, float]:
        """Of each baseline's ratio over the rows (of one dtype)."""
        return {name: geomean(r.ratios[name].value for r in self._of(dtype) if name in r.ratios) for name in self.baselines}

    def _of(self, dtype: str | None) -> list[Row]:
        return [row for row in self.rows if dtype is None or row.dtype == dtype]

    def to_json(self) -> dict[str, Any]:
        dtypes = list(dict.fromkeys(row.dtype for row in self.rows))
        return {
            "platform": self.platform,
            "threads": self.threads,
            "unit": self.unit,
            "model": dict(self.model) if self.model else None,
            "baselines": {name: {"version": b.version, "config": b.config} for name, b in self.baselines.items()},
            "absent": dict(self.absent),
            "results": [row.to_json() for row in self.rows],
            "geomean": self.geomean(),
            "geomean_by_dtype": {dtype: self.geomean(dtype) for dtype in dtypes},
            "lowest": {
                name: min((r.ratios[name].value for r in self.rows if name in r.ratios), default=None)
                for name in self.baselines
            },
            "machine": dict(self.machine),
        }


def geomean(values: Iterable[float]) -> float:
    """Geometric mean; NaN of nothing."""
    logs = [math.log(v) for v in values if v > 0]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan
