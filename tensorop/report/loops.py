"""What the compiler made of each kernel in the library: the distance from load to use, read from its object."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError

from tensorop.build.inspect import inner_loop

_MAGIC = b"!<arch>\n"
_HEADER = 60


def of_product(folder: Path) -> list[dict[str, Any]]:
    """The hottest loop of each object in the operator's archive that multiplies and adds vectors; [] without one.

    distances are in vector multiply-adds between a load and its first use.
    """
    out = []
    for archive in sorted((folder / "lib").glob("libtensorop_*.a")):
        for name, data in members(archive.read_bytes()):
            with tempfile.NamedTemporaryFile(suffix=".o") as file:
                file.write(data)
                file.flush()
                try:
                    loop = inner_loop(Path(file.name))
                except (ELFError, OSError):
                    continue
            if loop is None or not loop.distances:
                continue
            record = dataclasses.asdict(loop)
            distances = record.pop("distances")
            out.append(
                {"kernel": Path(name).stem, **record, "least": min(distances), "mean": sum(distances) / len(distances)}
            )
    return out


def members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """(name, content) of an archive in GNU's format; nothing for another file."""
    if not data.startswith(_MAGIC):
        return
    at, names = len(_MAGIC), b""
    while at + _HEADER <= len(data):
        field, size = data[at : at + 16].rstrip(), int(data[at + 48 : at + 58])
        content = data[at + _HEADER : at + _HEADER + size]
        at += _HEADER + size + size % 2
        if field == b"//":
            names = content
        elif field not in (b"/", b"/SYM64/"):
            text = names[int(field[1:]) :].split(b"/\n")[0] if field.startswith(b"/") else field.rstrip(b"/")
            yield text.decode(errors="replace"), content
