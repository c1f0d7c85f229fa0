"""Joins the records of a program's processes to one file, the heaviest kinds of calls first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tensorop.specs import files

_LINE = re.compile(r"(\w+ .*) calls=(\d+) seconds=(\d+\.\d+)")
_BEYOND = "# beyond"  # how the comment about calls of further kinds begins


@dataclass(frozen=True)
class Recorded:
    """The sum of a record."""

    kinds: int
    calls: int
    seconds: float  # wall time of all calls, summed over threads
    remarks: tuple[str, ...]  # comments about calls that have no line


def join(parts: Iterable[Path], file: Path) -> Recorded:
    """Writes the kinds of calls of all parts to a file, unless there are none. Raises SpecError and OSError."""
    found: dict[str, tuple[int, float]] = {}
    remarks: list[str] = []
    for part in parts:
        for line in files.text(part, files.LINES).splitlines():
            if line.startswith(_BEYOND):
                remarks.append(line.removeprefix("# "))
            elif match := _LINE.fullmatch(line):
                calls, seconds = found.get(match[1], (0, 0.0))
                found[match[1]] = calls + int(match[2]), seconds + float(match[3])
    ordered = sorted(found.items(), key=lambda one: -one[1][1])
    lines = [f"{kind} calls={calls} seconds={seconds:.9f}\n" for kind, (calls, seconds) in ordered]
    if lines:
        head = "# tensorop record 1; docs/reference/shapes-file.md explains its lines\n"
        file.write_text(head + "".join(lines) + "".join(f"# {remark}\n" for remark in remarks), encoding="utf-8")
    total = sum(calls for calls, _ in found.values()), sum(seconds for _, seconds in found.values())
    return Recorded(len(found), *total, tuple(remarks))
