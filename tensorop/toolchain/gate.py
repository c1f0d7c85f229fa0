"""Checks objects: a kernel holds only code, constants and its own entries, and calls only memcpy, memset and memmove.

Another part of a product may have more, as `needs` lists. Most published ways to cheat a kernel benchmark leave a trace
in the object: calls of the baseline library, kept results, code that runs before the guards, or system calls.
Candidates are checked before they are linked, and every object of a library before it is packaged.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, SymbolTableSection

from tensorop.model.architecture import Architecture
from tensorop.model.kernel import Source
from tensorop.model.trial import Kind, Outcome
from tensorop.specs import files
from tensorop.toolchain import disassembly, needs
from tensorop.toolchain.disassembly import Instruction
from tensorop.toolchain.needs import Needs

ENTRIES = frozenset(f"tensorop_candidate_{number}" for number in range(32))  # as many as harness_entry.c knows
APART = "tensorop_variant"  # by which a driver knows a kernel that is compiled apart from it

_WRITE, _ALLOC, _EXEC, _TLS = 0x1, 0x2, 0x4, 0x400
_RUNS_BEFORE_MAIN = frozenset({"SHT_INIT_ARRAY", "SHT_FINI_ARRAY", "SHT_PREINIT_ARRAY"})
_OLD_CONSTRUCTORS = (".ctors", ".dtors", ".init", ".fini", ".init_array", ".fini_array", ".preinit_array")
CHOSEN_BY_CODE = frozenset({"STT_GNU_IFUNC", "STT_LOOS"})  # STT_LOOS: the same in a file that is not marked as GNU's
_TABLES = frozenset({"SHT_NULL", "SHT_SYMTAB", "SHT_STRTAB", "SHT_RELA", "SHT_REL", "SHT_SYMTAB_SHNDX"})
_HELD = re.compile(r"\.rodata(\..*)?|\.eh_frame")
_CODE = re.compile(r"\.text(\..*)?")
_RELOCATED = re.compile(r"\.data\.rel\.ro(\..*)?")
_MEMORY = re.compile(r"\.(bss|data)(\..*)?")
_REMARKS = re.compile(r"\.comment|\.note\.GNU-stack|\.llvm_addrsig|\.riscv\.attributes|\.debug_\w+")

_known: dict[tuple[bytes, frozenset[str], bool, Needs], str | None] = {}  # what was found wrong with an object


def check_object(
    path: Path, *, entries: Collection[str] = ENTRIES, relocated: bool = False, of: Needs = needs.KERNEL
) -> Outcome | None:
    """None if the object may be linked and run, else an OBJECT outcome with the reason.

    entries: global symbols that it may define; a kernel must define at least one; relocated: for a shared library,
    whose loader fills tables of addresses and then makes them read-only; of: the needs of the product's part.
    Raises MissingTool without a disassembler, since an object that was not disassembled is not accepted.
    """
    try:
        data = files.read(path, files.LIBRARY)
        key = hashlib.sha256(data).digest(), frozenset(entries), relocated, of
        if key not in _known:  # a job checks its library's objects again when it leaves out variants
            _known[key] = next(_objections(ELFFile(io.BytesIO(data)), path, key[1], relocated, of), None)
        why = _known[key]
    except (ELFError, OSError, ValueError, KeyError, AssertionError) as e:
        why = f"it cannot be read: {e}"
    return None if why is None else Outcome(Kind.OBJECT, "build", f"the object is refused: {why}")


def check_part(path: Path, source: Source, part: Source) -> Outcome | None:
    """As `check_object` for the object of a part of a candidate: beside a driver, a kernel defines APART alone."""
    if part is source.driver:
        return check_object(path, of=needs.KERNEL.with_calls([APART]))
    return check_object(path, entries=ENTRIES if source.driver is None else {APART})


def runs_when_loaded(elf: ELFFile) -> str | None:
    """Why an object runs code before its library is called; None if it does not."""
    for section in elf.iter_sections():
        if section["sh_type"] in _RUNS_BEFORE_MAIN or section.name.startswith(_OLD_CONSTRUCTORS):
            return f"section {section.name} runs code before any guard is up"
    for symbol in disassembly.symbols(elf):
        if symbol["st_info"]["type"] in CHOSEN_BY_CODE:
            return f"'{symbol.name}' is resolved by code that runs before any guard is up"
    return None


def _objections(elf: ELFFile, path: Path, entries: frozenset[str], relocated: bool, of: Needs) -> Iterator[str]:
    if started := runs_when_loaded(elf):
        yield started
    for section in elf.iter_sections():
        yield from _section(section, relocated, of)
    defined = False
    for symbol in disassembly.symbols(elf):
        if symbol["st_info"]["bind"] == "STB_LOCAL" or not symbol.name:
            continue
        own = of.among and symbol.name.startswith(needs.OWN)
        if symbol["st_shndx"] == "SHN_UNDEF":
            if not own and symbol.name not in of.calls:
                yield f"it calls or reads '{symbol.name}', which is none of its own"
        elif not own and symbol.name not in entries:
            yield f"it defines the global '{symbol.name}'"
        else:
            defined = True
    if not defined and not of.among:
        yield f"it defines none of {', '.join(sorted(entries)[:4])}" + (" and so on" if len(entries) > 4 else "")
    arch = disassembly.architecture(elf)
    if arch is None:
        yield f"it is for another machine ({elf['e_machine']})"
        return
    code = dict(disassembly.disassembled(path))
    for number, section in enumerate(elf.iter_sections()):
        if section["sh_flags"] & _EXEC and section["sh_size"]:
            yield from _code(section, code.get(section.name, ()), arch, of)
            yield from _entered(elf, number, section.name, code.get(section.name, ()), arch)


def _section(section: Section, relocated: bool, of: Needs) -> Iterator[str]:
    flags, name, kind = section["sh_flags"], section.name, section["sh_type"]
    if not flags & _ALLOC:
        if kind not in _TABLES and (not _REMARKS.fullmatch(name) or flags & _EXEC):
            yield f"section {name} tells linker or loader something"
    elif section["sh_size"] == 0:
        return
    elif flags & _TLS:
        yield f"section {name} keeps {section['sh_size']} bytes for each thread between calls"
    elif flags & _WRITE:
        kept = (relocated and _RELOCATED.fullmatch(name)) or (of.keeps and _MEMORY.fullmatch(name))
        if not kept or flags & _EXEC:
            yield f"section {name} keeps {section['sh_size']} bytes between calls"
    elif not (_CODE if flags & _EXEC else _HELD).fullmatch(name):
        yield f"section {name} is none of code and constants"


def _code(section: Section, lines: tuple[Instruction, ...], arch: Architecture, of: Needs) -> Iterator[str]:
    """Complaints, unless every byte belongs to an allowed instruction and jumps go to starts of instructions."""
    begins = {line.at for line in lines}
    at = 0
    for line in lines:
        if line.at != at:
            break
        at += line.size
    if at != section["sh_size"]:
        yield f"instructions overlap, or leave bytes out, in {section.name} at byte {at}"
    for line in lines:
        what = disassembly.forbidden(arch, line)
        if what is not None and not of.instructions.fullmatch(str(line)):
            yield f"{what} in {section.name} at byte {line.at}"
        if line.target is not None and line.target not in begins and line.target != section["sh_size"]:
            yield f"a jump into an instruction or out of its section in {section.name} at byte {line.at}"


def _entered(elf: ELFFile, number: int, name: str, lines: tuple[Instruction, ...], arch: Architecture) -> Iterator[str]:
    """Complaints, unless functions and addresses in tables are starts of instructions."""
    begins = {line.at for line in lines} | {int(elf.get_section(number)["sh_size"])}
    for symbol in disassembly.symbols(elf):
        if symbol["st_shndx"] == number and symbol["st_value"] not in begins:
            yield f"'{symbol.name}' begins in the middle of an instruction of {name}"
    for table in elf.iter_sections():
        if isinstance(table, RelocationSection):
            symbols = elf.get_section(table["sh_link"])
            assert isinstance(symbols, SymbolTableSection)
            for relocation in table.iter_relocations():
                if relocation["r_info_type"] != arch.absolute:
                    continue
                symbol = symbols.get_symbol(relocation["r_info_sym"])
                if symbol["st_shndx"] == number and symbol["st_value"] + relocation["r_addend"] not in begins:
                    yield f"an address points into an instruction of {name}"
