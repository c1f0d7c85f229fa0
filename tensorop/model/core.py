"""Facts that a machine reports about its core; they are compared with a platform file before measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Core:
    """Facts read from a machine; empty, None or 0 if unknown."""

    arch: str  # a name of `architecture.ARCHITECTURES`, or of `uname -m`
    kernel: str = ""  # version of the kernel
    libc: str = ""
    # Flags in /proc/cpuinfo; for RISC-V the single extensions of the `isa` line, without `v` if that is not V 1.0.
    flags: frozenset[str] = frozenset()
    processors: Mapping[int, Mapping[str, str]] = field(default_factory=dict)  # lines of /proc/cpuinfo, key -> text
    identity: Mapping[str, str] = field(default_factory=dict)  # identity registers, name -> hexadecimal
    vlen: int | None = None  # bits of a vector register, found by a run; None: nothing was run
    page: int = 0  # bytes
    cores: int = 0  # online
    caches: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # level -> size, ways, line, shared_by
    clock_mhz: float = 0.0  # estimated by a chain of dependent additions
    link: float = 0.0  # bytes a second of the link to the machine; 0: this machine
    governor: str = ""  # frequency governor
    load: float = 0.0  # mean number of running processes in the last minute

    _NAMES = ("model name", "uarch", "Model", "CPU part", "marchid", "mvendorid")

    @property
    def short(self) -> dict[str, object]:
        """Facts to record beside results, with the names of `tensorop.measure.machine`."""
        return {
            "cpu": self.label,
            "cores": self.cores,
            "kernel": self.kernel,
            "governor": self.governor,
            "boost": "",
            "huge_pages": "",
            "load": self.load,
            "libc": self.libc,
            "vlen": self.vlen,
            "clock_mhz": self.clock_mhz,
        }

    @property
    def label(self) -> str:
        """The core's name in /proc/cpuinfo, or else its architecture."""
        first = next(iter(self.processors.values()), {})
        return next((first[name] for name in self._NAMES if first.get(name)), self.arch)

    def matching(self, wanted: Mapping[str, str]) -> tuple[int, ...]:
        """Numbers of the processors whose lines contain the wanted texts; absent lines are ignored."""
        return tuple(
            number
            for number, lines in self.processors.items()
            if all(text.lower() in lines[key].lower() for key, text in wanted.items() if key in lines)
        )
