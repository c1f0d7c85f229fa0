"""Micro-benchmarks of a core: what is run, what it took, what was published of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from tensorop.model.record import record

_LINE = 64  # bytes that one unit `line` moves
_FLOPS_VLEN = 256


@dataclass(frozen=True)
class Benchmark:
    """One of native/microbench/ARCH/bench.yaml, which explains the fields; size and per are expressions."""

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
    unit: Literal["cycles", "bytes/cycle", "GFLOP/s"]  # cycles: for one unit of the benchmark
    source: Annotated[str, Field(min_length=1)]
    kind: Literal["exact", "loose"] = "exact"

    def cycles(self, benchmark: Benchmark, clock_ghz: float, vlen: int) -> float:
        """The figure as cycles for one unit of the benchmark."""
        if self.unit == "GFLOP/s":
            return benchmark.flops * vlen / _FLOPS_VLEN * clock_ghz / self.value
        return _LINE / self.value if self.unit == "bytes/cycle" else self.value


@dataclass(frozen=True)
class Modelled:
    """Cycles for one unit under a board model: at the best fit, and fewest and most over its assumed constants."""

    benchmark: Benchmark
    best: float
    low: float
    high: float


@dataclass(frozen=True)
class Question:
    """What a micro-benchmark takes as the model has it, and what under one of its alternatives."""

    alternative: str
    usual: Modelled
    under: Modelled


@dataclass(frozen=True)
class ClockedBenchmark:
    """What a board took: ns for one unit, the clock's MHz beside it, so cycles; spread: quartiles apart over median."""

    benchmark: Benchmark
    ns: float
    mhz: float
    spread: float

    @property
    def cycles(self) -> float:
        return self.ns * self.mhz / 1e3
