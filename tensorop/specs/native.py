"""Reads this machine's CPU flags and caches, and finds the platform that suits it best."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from tensorop import subpackages
from tensorop.errors import UsageError
from tensorop.model.architecture import host_arch
from tensorop.model.platform import Platform

_CPUINFO = Path("/proc/cpuinfo")
_SYSFS = Path("/sys/devices/system/cpu/cpu0/cache")


def cpu_flags(cpuinfo: Path = _CPUINFO) -> frozenset[str]:
    """The CPU's flags in Linux's spelling; the extensions of a RISC-V `isa` line one by one."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    words = (line.partition(":") for line in text.splitlines())
    return flags_of({key.strip(): value.strip() for key, _, value in words})


def flags_of(processor: Mapping[str, str]) -> frozenset[str]:
    """The flags of one processor. processor: its lines of /proc/cpuinfo, key -> text"""
    words = [*processor.get("flags", "").split(), *processor.get("Features", "").split()]
    if isa := re.fullmatch(r"rv(?:32|64)(\S+)", processor.get("isa", "")):
        letters, *names = isa[1].split("_")
        words += [*letters, *names]
    return frozenset(words)


def missing_flags(platform: Platform, flags: Collection[str] | None = None) -> tuple[str, ...]:
    """Required flags that this CPU lacks, or its architecture; empty if a platform's kernels run here."""
    if platform.arch != host_arch():
        return (platform.arch,)
    have = cpu_flags() if flags is None else flags
    return tuple(flag for flag in platform.requires if flag not in have)


def best(platforms: Iterable[Platform], arch: str, flags: Collection[str]) -> Platform:
    """The platform whose required flags are the most that this CPU has; of several, the most general one.

    Platforms with `fixed_vlen` are never chosen, since no flag gives a RISC-V core's VLEN. Raises UsageError if no
    platform fits.
    """
    of_arch = (p for p in platforms if p.arch == arch and p.runner not in subpackages.BACKENDS)
    fitting = [p for p in of_arch if set(p.requires) <= set(flags) and p.fixed_vlen is None]
    if not fitting:
        raise UsageError(
            f"no platform file matches this machine ({arch})",
            hint="write one: `tensorop platforms probe > platforms/mine.yaml`",
        )
    return min(fitting, key=lambda p: (-len(p.requires), len(p.lineage), p.name))


def caches(root: Path = _SYSFS) -> dict[str, dict[str, int]]:
    """The first core's data caches in sysfs: level (l1) -> keys as in a platform file; empty if unknown."""
    return levels(_fields(index) for index in sorted(root.glob("index*")))


def _fields(index: Path) -> dict[str, str]:
    try:
        return {p.name: p.read_text().strip() for p in index.iterdir() if p.is_file()}
    except OSError:
        return {}


def levels(indices: Iterable[Mapping[str, str]]) -> dict[str, dict[str, int]]:
    """Data caches by level. indices: the files of each cache in sysfs, name -> text"""
    out = {}
    for fields in indices:
        if fields.get("type") == "Instruction" or not fields.get("level", "").isdigit():
            continue
        size, line = size_of(fields.get("size", "")), size_of(fields.get("coherency_line_size", ""))
        if size and line:
            ways = size_of(fields.get("ways_of_associativity", "")) or size // line  # 0: fully associative
            shared = _count(fields.get("shared_cpu_list", ""))
            size -= size % (ways * line)  # a virtual machine may report a part of a set
            if size:
                out[f"l{fields['level']}"] = {"size": size, "ways": ways, "line": line, "shared_by": shared}
    return out


def size_of(text: str) -> int:
    """'48K' in bytes; 0 if it is no number."""
    number = text.rstrip("KMG")
    return int(number) * {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1) if number.isdigit() else 0


def _count(cpus: str) -> int:
    """The number of CPUs in a list such as '0-1,4'."""
    found = re.findall(r"(\d+)(?:-(\d+))?", cpus)
    return max(1, sum(int(last or first) - int(first) + 1 for first, last in found))
