"""The state of this machine, and the memory bandwidth of one core."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tensorop.measure import clock

_CPU = Path("/sys/devices/system/cpu")
_BYTES = 96 << 20  # bytes of an array; two exceed a core's share of the last-level cache
_ROUNDS = 5

_highest = 0.0  # reading of `read_bandwidth`


@dataclass(frozen=True)
class MachineState:
    """The machine's state beside a result: the kernel's words; "" if unknown."""

    cpu: str
    cores: int  # processors that this process may use
    kernel: str
    governor: str
    boost: str
    huge_pages: str
    load: float  # mean number of running processes in the last minute


def record() -> MachineState:
    """The current state."""
    return MachineState(
        cpu=_model(),
        cores=len(os.sched_getaffinity(0)),
        kernel=platform.release(),
        governor=_text(_CPU / "cpu0/cpufreq/scaling_governor"),
        boost=_text(_CPU / "cpufreq/boost"),
        huge_pages=_chosen(_text(Path("/sys/kernel/mm/transparent_hugepage/enabled"))),
        load=os.getloadavg()[0],
    )


def competition(machine: MachineState) -> str:
    """A warning if other processes leave too little of the processors; "" if not."""
    busy = machine.load > machine.cores
    return f"{machine.load:.1f} processes compete for {machine.cores} cores" if busy else ""


def complaints(machine: MachineState) -> tuple[str, ...]:
    """Warnings about conditions that make timings unreliable."""
    out = [text] if (text := competition(machine)) else []
    if machine.governor not in ("", "performance"):
        out.append(f"the frequency governor is '{machine.governor}', not 'performance'")
    return tuple(out)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _chosen(options: str) -> str:
    """The bracketed word of `always [madvise] never`."""
    return options.partition("[")[2].partition("]")[0] or options


def _model() -> str:
    wanted = ("model name", "Model", "uarch", "CPU part")
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() in wanted:
            return value.strip()
    return platform.machine()


def copy_bandwidth() -> float:
    """Bytes per nanosecond (GB/s) of NumPy's copy of a large array; the best of a few.

    Counted as in STREAM's copy (McCalpin 1995): two bytes moved for each byte copied.
    """
    source, copy = np.ones(_BYTES, dtype=np.uint8), np.zeros(_BYTES, dtype=np.uint8)
    return 2 * _best(lambda: np.copyto(copy, source))


def read_bandwidth() -> float:
    """Bytes per nanosecond (GB/s) that NumPy's maximum of a large f32 array reads; the best of all in this process.

    It is vectorized and writes nothing, so it bounds a product that reads a large matrix once. Other work can only
    lower a reading.
    """
    global _highest
    _highest = max(_highest, _best(np.ones(_BYTES // 4, dtype=np.float32).max))
    return _highest


def _best(walk: Callable[[], object]) -> float:
    best = 0.0
    with clock.alone():
        for _ in range(_ROUNDS):
            begin = time.perf_counter_ns()
            walk()
            best = max(best, _BYTES / (time.perf_counter_ns() - begin))
    return best
