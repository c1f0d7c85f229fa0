"""What a shared library says of itself beside its names."""

from __future__ import annotations

import re
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection


def soname(path: Path) -> str:
    with path.open("rb") as stream:
        dynamic = next(s for s in ELFFile(stream).iter_sections() if isinstance(s, DynamicSection))
        return next((tag.soname for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_SONAME"), "")


def glibc(path: Path) -> tuple[int, ...]:
    """The least glibc that it needs; () for none."""
    versions: list[tuple[int, ...]] = [()]
    with path.open("rb") as stream:
        for section in ELFFile(stream).iter_sections():
            if isinstance(section, GNUVerNeedSection):
                names = (version.name for _, wanted in section.iter_versions() for version in wanted)
                found = (re.fullmatch(r"GLIBC_([\d.]+)", name) for name in names)
                versions += [tuple(map(int, m[1].split("."))) for m in found if m]
    return max(versions)
