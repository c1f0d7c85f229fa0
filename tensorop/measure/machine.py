"""The state of the machine that a native figure was taken on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

_CPU = Path("/sys/devices/system/cpu")


@dataclass(frozen=True)
class MachineState:
    """What goes beside figures: names as the kernel spells them, "" for what it does not tell.

    load: the mean number of running processes over the last minute; cores: those this process may use.
    """

    cpu: str
    cores: int
    kernel: str
    governor: str
    boost: str
    huge_pages: str
    load: float


def record() -> MachineState:
    """The state now."""
    return MachineState(
        cpu=_model(),
        cores=len(os.sched_getaffinity(0)),
        kernel=platform.release(),
        governor=_text(_CPU / "cpu0/cpufreq/scaling_governor"),
        boost=_text(_CPU / "cpufreq/boost"),
        huge_pages=_chosen(_text(Path("/sys/kernel/mm/transparent_hugepage/enabled"))),
        load=os.getloadavg()[0],
    )


def complaints(machine: MachineState) -> tuple[str, ...]:
    """What makes native figures doubtful, in words for the user."""
    out = []
    if machine.load > machine.cores:
        out.append(f"{machine.load:.1f} processes compete for {machine.cores} cores")
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
