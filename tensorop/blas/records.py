"""Joins the records of a program's processes: to one file, the heaviest kinds of calls first, or to what was served."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tensorop.specs import files

_LINE = re.compile(r"((?:# beyond|\w+) .+) calls=(\d+) seconds=(\d+\.\d+)(?: served=(\d+))?")
_BEYOND = "# "  # how the line about calls of further kinds begins


@dataclass(frozen=True)
class Recorded:
    """The sum of a record."""

    kinds: int
    calls: int
    seconds: float  # wall time of all calls, summed over threads
    remarks: tuple[str, ...]  # comments about calls that have no line


@dataclass(frozen=True)
class ServedCalls:
    """How many calls a libtensorop_cblas served in a recorded program."""

    served: int
    elsewhere: Mapping[str, int]  # calls that another BLAS served, by routine, the most first

    @property
    def calls(self) -> int:
        return self.served + sum(self.elsewhere.values())


def _lines(parts: Iterable[Path]) -> Iterator[tuple[str, re.Match[str]]]:
    """Each line with counts, and its match."""
    for part in parts:
        for line in files.text(part, files.LINES).splitlines():
            if match := _LINE.fullmatch(line):
                yield line, match


def join(parts: Iterable[Path], file: Path) -> Recorded:
    """Writes the kinds of calls of all parts to a file, unless there are none. Raises SpecError and OSError."""
    found: dict[str, tuple[int, float]] = {}
    remarks: list[str] = []
    for line, match in _lines(parts):
        if line.startswith(_BEYOND):
            remarks.append(line.removeprefix("# "))
        else:
            calls, seconds = found.get(match[1], (0, 0.0))
            found[match[1]] = calls + int(match[2]), seconds + float(match[3])
    ordered = sorted(found.items(), key=lambda one: -one[1][1])
    lines = [f"{kind} calls={calls} seconds={seconds:.9f}\n" for kind, (calls, seconds) in ordered]
    if lines:
        head = "# tensorop record 1; docs/reference/shapes-file.md explains its lines\n"
        file.write_text(head + "".join(lines) + "".join(f"# {remark}\n" for remark in remarks), encoding="utf-8")
    total = sum(calls for calls, _ in found.values()), sum(seconds for _, seconds in found.values())
    return Recorded(len(found), *total, tuple(remarks))


def served(parts: Iterable[Path]) -> ServedCalls:
    """What a libtensorop_cblas served, by the parts of a record. Raises SpecError and OSError."""
    ours, others = 0, defaultdict[str, int](int)
    for line, match in _lines(parts):
        calls, here = int(match[2]), int(match[4] or 0)
        ours += here
        if calls > here:
            others["other kinds" if line.startswith(_BEYOND) else line.partition(" ")[0]] += calls - here
    return ServedCalls(ours, dict(sorted(others.items(), key=lambda one: -one[1])))
