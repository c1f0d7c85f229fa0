"""Disassembles objects and libraries with llvm-objdump, for the gate and for statistics of loops."""

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

from tensorop.model.architecture import Architecture, of_elf
from tensorop.provision import llvm
from tensorop.runners import process
from tensorop.specs import files

_LINE = re.compile(r"^ *([0-9a-f]+): ([0-9a-f ]+)\t *(\S+)(?:\s+(.*))?$")
_REMARK = re.compile(r"\s(?:#|//)\s")
_SECTION = "Disassembly of section "
_TARGET = re.compile(r"(?:^|[\s,])0x([0-9a-f]+)(?: <[^>]*>)?\s*$")
_UNREADABLE = re.compile(r"<unknown>|\(bad\)|\.(?:byte|short|word|long|quad|inst|2byte|4byte|8byte)")
_TEXT = 256 << 20  # bytes of listing
_MOST = 600_000  # lines of a listing; a library of five dtypes has a fourth of them
_KEPT = 4  # listings

Code = tuple[tuple[str, tuple["Instruction", ...]], ...]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction."""

    at: int  # offset in its section (object) or address (linked file)
    mnemonic: str
    operands: str = ""  # in LLVM's syntax, which is Intel's for x86-64
    target: int | None = None  # of a direct jump or call, as `at`
    size: int = 0  # bytes

    def __str__(self) -> str:
        return f"{self.mnemonic} {self.operands}"


_kept: dict[str, Code] = {}
_lock = threading.Lock()


def architecture(elf: ELFFile) -> Architecture | None:
    """The architecture of a file; None if it is unknown."""
    return of_elf(elf["e_machine"])


def is_system_call(arch: Architecture, instruction: Instruction) -> bool:
    """Whether an instruction calls the kernel of the operating system, or a layer below it."""
    return arch.system_calls.fullmatch(instruction.mnemonic) is not None


def forbidden(arch: Architecture, instruction: Instruction) -> str | None:
    """Why a kernel must not have an instruction; None if it may.

    No compiler generates a forbidden instruction from plain C and primitives.
    """
    name, whole = instruction.mnemonic, str(instruction).rstrip()
    if _UNREADABLE.fullmatch(name):
        return "something that is no instruction"
    if is_system_call(arch, instruction):
        return f"a system call ({name})"
    for mark, what in arch.marks:
        if mark.fullmatch(whole):
            return f"{what} ({whole})"
    if not arch.forbidden.fullmatch(name) or (arch.harmless and arch.harmless.fullmatch(whole)):
        return None
    return f"the instruction {whole}"


def symbols(elf: ELFFile) -> Iterator[Symbol]:
    """The symbols of all tables."""
    for table in elf.iter_sections():
        if isinstance(table, SymbolTableSection):
            yield from table.iter_symbols()


def disassembled(path: Path) -> Code:
    """Sections with code by name, each with its instructions from its first byte to its last.

    Raises MissingTool without llvm-objdump, ELFError or OSError for another file, ValueError if it cannot be read.
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
    found = _listed(path, arch, _relocated(elf, arch) if elf["e_type"] == "ET_REL" else {})
    with _lock:
        while len(_kept) >= _KEPT:
            _kept.pop(next(iter(_kept)))
        _kept[digest] = found
    return found


def of_archive(path: Path, arch: Architecture) -> Code:
    """The code of all objects in an archive; targets ignore relocations. Errors as `disassembled`."""
    return _listed(path, arch, {})


def _listed(path: Path, arch: Architecture, relocated: Mapping[tuple[str, int], int]) -> Code:
    argv = [str(llvm.OBJDUMP.program()), "-d", "-z", arch.objdump, str(path)]
    ended = process.run(argv, timeout_s=60, environment={"PATH": "/usr/bin:/bin"}, talk=process.Talk(stdout_cap=_TEXT))
    if ended.status != 0 or ended.timed_out:
        raise ValueError(f"llvm-objdump cannot read it: {ended.stderr.strip()[:300]}")
    if (count := ended.stdout.count(b"\n")) > _MOST:
        raise ValueError(f"it has more code than is read: {count} lines of llvm-objdump's, expected at most {_MOST}")
    sections: list[tuple[str, tuple[Instruction, ...]]] = []
    name = ""
    lines: list[Instruction] = []
    for text in io.StringIO(ended.stdout.decode("ascii", "replace")):
        if text.startswith(_SECTION):
            sections += [(name, tuple(lines))] if lines else []
            name, lines = text[len(_SECTION) : -2], []
        elif match := _LINE.match(text):
            at, mnemonic, operands = int(match[1], 16), match[3], _REMARK.split(match[4] or "")[0].rstrip()
            target = None
            if arch.jumps.fullmatch(mnemonic) and (to := _TARGET.search(operands)):
                target = relocated.get((name, at), int(to[1], 16))
            size = len(match[2].replace(" ", "")) // 2
            lines.append(Instruction(at, sys.intern(mnemonic), sys.intern(operands), target, size))
    return (*sections, (name, tuple(lines))) if lines else tuple(sections)


def _relocated(elf: ELFFile, arch: Architecture) -> dict[tuple[str, int], int]:
    """Targets of jumps that the linker fills in, by section and offset of the jump."""
    targets: dict[tuple[str, int], int] = {}
    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection):
            continue
        symbols: Section = elf.get_section(section["sh_link"])
        assert isinstance(symbols, SymbolTableSection)
        place = elf.get_section(section["sh_info"]).name
        for relocation in section.iter_relocations():
            if relocation["r_info_type"] in arch.linked_jumps:
                symbol = symbols.get_symbol(relocation["r_info_sym"])
                if symbol["st_shndx"] == section["sh_info"]:
                    targets[place, relocation["r_offset"]] = symbol["st_value"] + relocation["r_addend"]
    return targets
