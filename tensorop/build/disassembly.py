"""The machine code of an object or library as instructions, by llvm-objdump: the gate and the look at loops read the
same."""

from __future__ import annotations

import hashlib
import io
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, Symbol, SymbolTableSection

from tensorop.provision import objdump
from tensorop.runners import process
from tensorop.specs import files

# Everything that objects are built for; a newer LLVM's names are ignored by an older one.
_FEATURES = {
    "riscv64": "+m,+a,+f,+d,+c,+v,+zba,+zbb,+zbs",
    "aarch64": "+v8.6a,+fullfp16,+fp16fml,+dotprod,+bf16,+i8mm",
}
_MACHINES = {"EM_RISCV": "riscv64", "EM_AARCH64": "aarch64", "EM_X86_64": "x86_64"}
_LINE = re.compile(r"^ *([0-9a-f]+): ([0-9a-f ]+)\t *(\S+)(?:\s+(.*))?$")
_REMARK = re.compile(r"\s(?:#|//)\s")
_SECTION = "Disassembly of section "
_TARGET = re.compile(r"(?:^|[\s,])0x([0-9a-f]+)(?: <[^>]*>)?\s*$")
_JUMPS = {
    "x86_64": re.compile(r"(?:j|call|loop)\w*"),
    "riscv64": re.compile(r"(?:c\.)?(?:b(?:eq|ne|lt|ge|gt|le)u?z?|j|jal)"),
    "aarch64": re.compile(r"b|bl|b\.\w+|cbn?z|tbn?z"),
}
# R_RISCV_BRANCH, _JAL, _RVC_BRANCH, _RVC_JUMP: with relaxation, even jumps within a function are left to the linker.
_RISCV_JUMPS = (16, 17, 44, 45)
_TEXT = 256 << 20  # bytes of listing
_MOST = 600_000  # lines of it, four times those of a library of five dtypes
_KEPT = 4  # listings

Code = tuple[tuple[str, tuple["Line", ...]], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction. at, target: offsets in its section in an object, addresses in a linked file; target: of a direct
    jump or call; operands: as LLVM writes them, in Intel's syntax for x86-64; size: bytes."""

    at: int
    mnemonic: str
    operands: str = ""
    target: int | None = None
    size: int = 0


_kept: dict[str, Code] = {}
_lock = threading.Lock()


def architecture(elf: ELFFile) -> str | None:
    """x86_64, riscv64 or aarch64; None for another one."""
    return _MACHINES.get(elf["e_machine"])


def symbols(elf: ELFFile) -> Iterator[Symbol]:
    """Those of all its tables."""
    for table in elf.iter_sections():
        if isinstance(table, SymbolTableSection):
            yield from table.iter_symbols()


def disassembled(path: Path) -> Code:
    """Sections with code by name, each with its instructions from its first byte to its last.

    Raises MissingTool without llvm-objdump, ELFError, OSError for what is no ELF file, ValueError where it cannot be
    read.
    """
    data = files.read(path, files.LIBRARY)
    digest = hashlib.sha256(data).hexdigest()
    with _lock:
        if digest in _kept:
            return _kept[digest]
    elf = ELFFile(io.BytesIO(data))
    arch = architecture(elf)
    if arch is None:
        raise ValueError(f"it is for another machine ({elf['e_machine']})")
    found = _listed(path, arch, _relocated(elf) if arch == "riscv64" and elf["e_type"] == "ET_REL" else {})
    with _lock:
        while len(_kept) >= _KEPT:
            _kept.pop(next(iter(_kept)))
        _kept[digest] = found
    return found


def of_archive(path: Path, arch: str) -> Code:
    """The same of all objects in an archive; targets are not those of relocations. Raises likewise."""
    return _listed(path, arch, {})


def _listed(path: Path, arch: str, relocated: Mapping[tuple[str, int], int]) -> Code:
    features = [f"--mattr={_FEATURES[arch]}"] if arch in _FEATURES else ["--x86-asm-syntax=intel"]
    argv = [str(objdump.objdump()), "-d", "-z", *features, str(path)]
    ended = process.run(argv, timeout_s=60, environment={"PATH": "/usr/bin:/bin"}, stdout_cap=_TEXT)
    if ended.status != 0 or ended.timed_out:
        raise ValueError(f"llvm-objdump cannot read it: {ended.stderr.strip()[:300]}")
    if (count := ended.stdout.count(b"\n")) > _MOST:
        raise ValueError(f"it has more code than is read: {count} lines of llvm-objdump's, expected at most {_MOST}")
    jumps = _JUMPS[arch]
    sections: list[tuple[str, tuple[Line, ...]]] = []
    name = ""
    lines: list[Line] = []
    for text in io.StringIO(ended.stdout.decode("ascii", "replace")):
        if text.startswith(_SECTION):
            sections += [(name, tuple(lines))] if lines else []
            name, lines = text[len(_SECTION) : -2], []
        elif match := _LINE.match(text):
            at, mnemonic, operands = int(match[1], 16), match[3], _REMARK.split(match[4] or "")[0].rstrip()
            target = None
            if jumps.fullmatch(mnemonic) and (to := _TARGET.search(operands)):
                target = relocated.get((name, at), int(to[1], 16))
            lines.append(
                Line(at, sys.intern(mnemonic), sys.intern(operands), target, len(match[2].replace(" ", "")) // 2)
            )
    return (*sections, (name, tuple(lines))) if lines else tuple(sections)


def _relocated(elf: ELFFile) -> dict[tuple[str, int], int]:
    """Targets of jumps that only the linker writes into the words, by section and offset of the jump."""
    targets: dict[tuple[str, int], int] = {}
    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection):
            continue
        symbols: Section = elf.get_section(section["sh_link"])
        assert isinstance(symbols, SymbolTableSection)
        place = elf.get_section(section["sh_info"]).name
        for relocation in section.iter_relocations():
            if relocation["r_info_type"] in _RISCV_JUMPS:
                symbol = symbols.get_symbol(relocation["r_info_sym"])
                if symbol["st_shndx"] == section["sh_info"]:
                    targets[place, relocation["r_offset"]] = symbol["st_value"] + relocation["r_addend"]
    return targets
