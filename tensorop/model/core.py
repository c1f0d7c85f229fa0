"""A core as it says of itself: what a platform file is held against before anything is measured on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Core:
    """What could be read of a machine; empty, None or 0 where it does not tell."""

    arch: str  # in our spelling
    kernel: str = ""  # version as it prints itself
    libc: str = ""
    # Of /proc/cpuinfo, extensions of a RISC-V `isa` line one by one, without `v` where that is not V 1.0.
    flags: frozenset[str] = frozenset()
    processors: Mapping[int, Mapping[str, str]] = field(default_factory=dict)  # lines of /proc/cpuinfo, key -> text
    identity: Mapping[str, str] = field(default_factory=dict)  # identity registers, name -> hexadecimal
    vlen: int | None = None  # bits of a vector register, by executing; None where nothing was executed
    page: int = 0  # bytes
    cores: int = 0  # online
    caches: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # level -> size, ways, line, shared_by
    clock_mhz: float = 0.0  # by a chain of dependent additions
    link: float = 0.0  # bytes a second to the machine; 0: it is this one
    governor: str = ""  # of the frequency
    load: float = 0.0  # running processes, mean of the last minute

    _NAMES = ("model name", "uarch", "Model", "CPU part", "marchid", "mvendorid")

    @property
    def short(self) -> dict[str, object]:
        """What goes beside figures, under the names `tensorop.measure.machine` uses."""
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
        """Its name, as far as it has one."""
        first = next(iter(self.processors.values()), {})
        return next((first[name] for name in self._NAMES if first.get(name)), self.arch)

    def matching(self, wanted: Mapping[str, str]) -> tuple[int, ...]:
        """Numbers of the processors whose lines hold the wanted texts; a line that is absent refutes nothing."""
        return tuple(
            number
            for number, lines in self.processors.items()
            if all(text.lower() in lines[key].lower() for key, text in wanted.items() if key in lines)
        )
