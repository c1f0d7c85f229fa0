"""What the compiler made of each kernel in the library: the distance from load to use, read from its object."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError

from tensorop.build.finished import archive_members
from tensorop.build.inspect import Loop, inner_loops
from tensorop.process import scratch
from tensorop.specs import files


def of_product(folder: Path) -> list[dict[str, Any]]:
    """The loops of each kernel in the operator's archive that multiply and add the most; [] without an archive.

    A kernel is compiled for several ways to read its operands and, for edges, several tiles; of each way the loop with
    the most multiply-adds is told, which is the whole tile's. least, mean: of the distances between a vector load and
    its first use, in vector multiply-adds.
    """
    out = []
    for archive in sorted((folder / "lib").glob("libtensorop_*.a")):
        for name, data in archive_members(files.read(archive, files.LIBRARY)):
            for loop in _hottest(data):
                record = dataclasses.asdict(loop)
                distances = record.pop("distances")
                out.append({"kernel": Path(name).stem, **record, "least": min(distances), "mean": _mean(distances)})
    return out


def _hottest(data: bytes) -> list[Loop]:
    """By the function's name without its last word, the tile."""
    found: dict[str, Loop] = {}
    with scratch.folder("report") as folder:
        file = folder / "kernel.o"
        file.write_bytes(data)
        try:
            loops = inner_loops(file)
        except (ELFError, OSError):
            return []
    for loop in loops:
        way = loop.function.rpartition("_")[0]
        if loop.distances and (way not in found or loop.fmas > found[way].fmas):
            found[way] = loop
    return list(found.values())


def _mean(numbers: tuple[int, ...]) -> float:
    return sum(numbers) / len(numbers)
