"""Measures a machine's peak: fused multiply-adds in independent chains."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tensorop import errors, paths
from tensorop.measure import clock, machine
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.model.call import Access, Buffer, Call
from tensorop.model.kernel import Artifact
from tensorop.model.trial import Outcome
from tensorop.runners.base import Runner
from tensorop.runners.protocol import Entry
from tensorop.store import durable

_ITERATIONS = 20_000
# (bytes of a vector, independent chains) by the value of flag 0, as in native/peak.c.
VARIANTS = ((16, 10), (32, 10), (64, 10), (16, 16), (32, 12), (64, 16))
_ELEMENT: dict[str, np.dtype[Any]] = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}


def fma_peak(program: Artifact, runner: Runner, dtype: str, *, fresh: bool = False) -> float:
    """GFLOP/s of one core, two operations a multiply-add; cached by machine and program (fresh: measure again).

    program: build.programs.peak_program of this dtype (f32 or f64). The best of several vector widths and chain counts.
    Raises JobError when it cannot be measured.
    """
    state = asdict(machine.record())
    key = hashlib.sha256(repr((program.key, runner, state["cpu"])).encode()).hexdigest()[:24]
    kept = paths.cache_dir("peak") / f"{key}.json"
    before = float(json.loads(kept.read_text())["gflops"]) if kept.is_file() else 0.0
    if before and not fresh:
        return before
    # Other work can only lower a result, so the highest one is nearest to the peak.
    best = max(before, *_rates(program.path, runner, _ELEMENT[dtype]))
    durable.replace(kept, json.dumps({"gflops": best, "dtype": dtype, "machine": state}))
    return best


def _rates(program: Path, runner: Runner, element: np.dtype[Any]) -> list[float]:
    seed = np.array([0.999, 0.001], dtype=element)
    out = np.zeros(64 // element.itemsize, dtype=element)
    call = Call((_ITERATIONS,), buffers=(Buffer("seed", Access.IN, seed), Buffer("out", Access.OUT, out)))
    entries = [Entry(0, (0, variant)) for variant in range(len(VARIANTS))]
    # The least time counts: drift between rounds can only raise it.
    pace = clock.Pace(rounds=15, min_ns=1_000_000)
    timed = clock.measure(runner, MeasureRequest(program, [call], entries, Purpose.CHOICE), pace)
    if isinstance(timed, Outcome):
        raise errors.JobError(f"the peak cannot be measured: {timed.message}", hint="try again on a quiet machine")
    return [
        2 * _ITERATIONS * chains * (width // element.itemsize) / min(one.rounds)
        for (width, chains), one in zip(VARIANTS, timed, strict=True)
    ]
