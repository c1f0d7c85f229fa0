"""Micro-benchmarks of a core, their modelled and measured results, and published figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from tensorop.model.record import record

_LINE = 64  # bytes of the unit `line`
_FLOPS_VLEN = 256


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of native/microbench/ARCH/bench.yaml, which explains the fields; size and per are expressions."""

    name: str
    source: str
    function: str
    iterations: int
    size: str
    per: str
    unit: str
    flops: float
    dims: tuple[int, ...]
    fill: str


@record
class MicrobenchPoint:
    """A published figure."""

    benchmark: str
    value: Annotated[float, Field(gt=0)]
    unit: Literal["cycles", "bytes/cycle", "GFLOP/s"]  # cycles are for one unit of the benchmark
    source: Annotated[str, Field(min_length=1)]
    kind: Literal["exact", "loose"] = "exact"

    def cycles(self, benchmark: Benchmark, clock_ghz: float, vlen: int) -> float:
        """The figure converted to cycles for one unit of the benchmark."""
        if self.unit == "GFLOP/s":
            return benchmark.flops * vlen / _FLOPS_VLEN * clock_ghz / self.value
        return _LINE / self.value if self.unit == "bytes/cycle" else self.value


@dataclass(frozen=True)
class Modelled:
    """Cycles for one unit under a board model."""

    benchmark: Benchmark
    best: float  # with the best fit
    low: float  # minimum over the assumed constants
    high: float  # maximum over them


@dataclass(frozen=True)
class Question:
    """The cycles of a micro-benchmark under the model and under one of its alternatives."""

    alternative: str
    usual: Modelled
    under: Modelled


@dataclass(frozen=True)
class ClockedBenchmark:
    """A benchmark's time on a board."""

    benchmark: Benchmark
    ns: float  # for one unit
    mhz: float  # of the core's clock, measured at the same time
    spread: float  # (upper - lower quartile) / median

    @property
    def cycles(self) -> float:
        return self.ns * self.mhz / 1e3
