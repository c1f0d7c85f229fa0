"""Reads shared libraries: names that they export, libraries that they need, their architecture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tensorop.specs import files


@dataclass(frozen=True)
class LibraryFacts:
    """Properties read from a built library."""

    exports: frozenset[str]  # exported names
    needed: tuple[str, ...]  # names of needed libraries
    machine: str  # e_machine of its header, e.g. EM_X86_64


def facts(path: Path) -> LibraryFacts:
    """Reads a shared library. Raises ELFError or OSError for another file."""
    needed: list[str] = []
    exports: set[str] = set()
    with files.opened(path, files.LIBRARY) as stream:
        elf = ELFFile(stream)
        for section in elf.iter_sections():
            if isinstance(section, DynamicSection):
                tags: list[Any] = list(section.iter_tags("DT_NEEDED"))  # attributes depend on the kind
                needed += [tag.needed for tag in tags]
            elif isinstance(section, SymbolTableSection) and section.name == ".dynsym":
                exports |= {
                    s.name
                    for s in section.iter_symbols()
                    if s["st_shndx"] != "SHN_UNDEF" and s["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK")
                }
        return LibraryFacts(frozenset(exports), tuple(needed), str(elf.header["e_machine"]))
