"""Checks a finished library, from any linker: loading it runs no code, and it binds only names that its parts need.

A loader reads segments and the dynamic section, not section headers, and so do these checks. Only the disassembler
reads section headers, so every entry and jump target must be an instruction in its listing.
"""

from __future__ import annotations

import io
import os
import re
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import Segment

from tensorop.model.architecture import Architecture
from tensorop.specs import files
from tensorop.toolchain import disassembly, gate, needs
from tensorop.toolchain.disassembly import Instruction

_LIBRARIES = re.compile(
    r"lib(c|m|dl|pthread)\.so(\.[0-9]+)?|libc\.musl-\w+\.so\.1|ld-[\w-]+\.so\.[0-9]+|libgcc_s\.so\.1"
)
_ELSEWHERE = ("DT_RPATH", "DT_RUNPATH")
_LOADED_BESIDE = ("DT_AUDIT", "DT_DEPAUDIT", "DT_AUXILIARY", "DT_FILTER")
_LINKERS = frozenset({"_edata", "_end", "__bss_start", "_init", "_fini"})  # exported by older linkers
_ORIGIN = "$ORIGIN"
_SYSTEM = ("/usr", "/lib", "/lib64")  # only root writes there, and the C library lies there
_DF_TEXTREL = 4
_WRITE, _EXEC = 2, 1
_PAGE = 4096
_OF_SECTIONS = ((0x28, 8), (0x3C, 4))  # (offset, bytes) of the section fields in the header of a 64-bit ELF file
_MOST = 10_000  # maximum number of names, and of relocations
_ARCHIVE = b"!<arch>\n"
_MEMBER = re.compile(rb"(.{48})(\d{1,10}) *`\n", re.DOTALL)
_INDICES = {b"/": 4, b"/SYM64/": 8}  # bytes of a number
_ARRAYS = ("DT_INIT_ARRAY", "DT_FINI_ARRAY", "DT_PREINIT_ARRAY")
# The start files of GCC and Clang call registration functions of transactional memory and profilers, if there are any,
# before and after main, and set one byte when they were called.
_STEPS = 64
_CALLS = {
    "DT_INIT": frozenset({"__gmon_start__"}),
    "DT_INIT_ARRAY": frozenset({"_ITM_registerTMCloneTable"}),
    "DT_FINI": frozenset[str](),
    "DT_FINI_ARRAY": frozenset({"_ITM_deregisterTMCloneTable", "__cxa_finalize"}),
    "DT_PREINIT_ARRAY": frozenset({""}),
}
_RIP = re.compile(r"\[rip ([+-] \w+)\]")


def complaint(path: Path, exports: Collection[str], libraries: Collection[str], calls: Collection[str]) -> str | None:
    """Why a shared library must not be loaded; None if it may, with the libraries that a loader brings.

    exports: its public names; libraries: names of libraries of the same product, which it may need; calls: allowed
    names beyond those of `needs`.
    Raises ELFError or OSError for another file, MissingTool without a disassembler.
    """
    allowed = frozenset(exports), frozenset(libraries), frozenset(calls)
    reads = [path]  # grows by the libraries that a loader brings with these
    for at in reads:
        data = files.read(at, files.LIBRARY)
        whole = ELFFile(io.BytesIO(data))
        arch = disassembly.architecture(whole)
        if arch is None or whole.elfclass != 64:
            return f"it is for another machine ({whole['e_machine']}, {whole.elfclass} bits)"
        shown = io.BytesIO(data)  # without section headers, as a loader sees it
        for place, size in _OF_SECTIONS:
            shown.seek(place)
            shown.write(bytes(size))
        loaded = ELFFile(shown)
        why = _misplaced(loaded)
        if why is None:
            code = {line.at: line for _, lines in _disassembled(whole, at) for line in lines}
            why = next(_complaints(loaded, code, arch, *allowed), None)
        if why is not None:
            return why if at == path else f"it needs {at}: {why}"
        reads += [one for one in _brought(loaded, at, allowed[1]) if one not in reads]
    return None


def _brought(elf: ELFFile, path: Path, libraries: frozenset[str]) -> Iterator[Path]:
    """The needed libraries that lie beside this one.

    These are the libraries of its product; also others if it has a run path and its folder is not the system's.
    """
    tags: list[Any] = [tag for s in elf.iter_segments() if isinstance(s, DynamicSegment) for tag in s.iter_tags()]
    searched = any(tag.entry.d_tag in _ELSEWHERE for tag in tags)
    for folder in dict.fromkeys((path.parent, path.resolve().parent)):
        others = searched and not any(folder.is_relative_to(one) for one in _SYSTEM)
        for name in (tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"):
            if (others or name in libraries) and os.path.lexists(folder / name):
                yield folder / name


def archive_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """(name, content) of an archive in GNU's format; nothing for another file.

    Raises ValueError for a damaged archive, and if its index, by which linkers find objects, names a place without a
    member.
    """
    if not data.startswith(_ARCHIVE):
        return
    at, names, begins, index = len(_ARCHIVE), b"", set(), set[int]()
    while at < len(data):
        header = _MEMBER.fullmatch(data[at : at + 60])
        if header is None or (end := at + 60 + int(header[2])) > len(data):
            raise ValueError(f"expected a member at byte {at}, whole and with its size")
        field, content = header[1][:16].rstrip(), data[at + 60 : end]
        if field == b"//":
            names = content
        elif width := _INDICES.get(field):
            count = int.from_bytes(content[:width], "big")
            places = range(width, min(width * (count + 1), len(content)), width)
            index |= {int.from_bytes(content[place : place + width], "big") for place in places}
        else:
            begins.add(at)
            text = names[int(field[1:]) :].split(b"/\n")[0] if field.startswith(b"/") else field.rstrip(b"/")
            yield text.decode(errors="replace"), content
        at = end + end % 2
    if index - begins:
        raise ValueError(f"its index names byte {min(index - begins)}, where no member begins")


def archive_complaint(path: Path, exports: Collection[str], calls: Collection[str]) -> str | None:
    """Why a static archive must not be linked, by the sections and names of its objects; None if it may.

    Raises as `complaint`, and ValueError.
    """
    machine = None
    for name, data in archive_members(files.read(path, files.LIBRARY)):
        elf = ELFFile(io.BytesIO(data))
        machine, before = disassembly.architecture(elf), machine
        if machine is None or machine != (before or machine):
            return f"{name}: it is for another machine ({elf['e_machine']})"
        if started := gate.runs_when_loaded(elf):
            return f"{name}: {started}"
        for symbol in disassembly.symbols(elf):
            if symbol["st_info"]["bind"] == "STB_LOCAL" or not symbol.name or symbol.name.startswith(needs.OWN):
                continue
            if symbol["st_shndx"] != "SHN_UNDEF":
                if symbol.name not in exports:
                    return f"{name}: it defines '{symbol.name}'"
            elif symbol.name not in needs.ALL | set(calls):
                return f"{name}: it calls or reads '{symbol.name}', which none of its parts needs"
    if machine is None:
        return "it is no archive of objects"
    found = (line for _, code in disassembly.of_archive(path, machine) for line in code)
    called = (line.mnemonic for line in found if disassembly.is_system_call(machine, line))
    return next((f"it has a system call ({name})" for name in called), None)


def _misplaced(elf: ELFFile) -> str | None:
    """Why a loader may see other contents than the file's, or memory that is writable and executable; else None."""
    segments = list(elf.iter_segments())
    loads = [s for s in segments if s["p_type"] == "PT_LOAD"]
    end = 0
    for load in loads:
        if load["p_vaddr"] // _PAGE * _PAGE < end or (load["p_vaddr"] - load["p_offset"]) % _PAGE:
            return f"a segment lies on another one, at {load['p_vaddr']:#x}"
        end = -(-(load["p_vaddr"] + load["p_memsz"]) // _PAGE) * _PAGE
    dynamic = [s for s in segments if s["p_type"] == "PT_DYNAMIC"]
    if len(dynamic) != 1 or not any(_inside(dynamic[0], load) for load in loads):
        return f"it has {len(dynamic)} dynamic sections, expected one in a segment that is loaded"
    for segment in segments:
        if segment["p_flags"] & _EXEC and (segment["p_flags"] & _WRITE or segment["p_type"] == "PT_GNU_STACK"):
            return f"{segment['p_type']} can be written and executed"
    if not any(s["p_type"] == "PT_GNU_STACK" for s in segments):
        return "it does not say that no stack is executed (PT_GNU_STACK)"
    return None


def _inside(part: Segment, load: Segment) -> bool:
    """Whether a loader finds the file's contents of this part at its address."""
    begin = part["p_offset"] - load["p_offset"]
    return 0 <= begin <= load["p_filesz"] - part["p_filesz"] and part["p_vaddr"] - load["p_vaddr"] == begin


def _complaints(
    elf: ELFFile,
    code: dict[int, Instruction],
    arch: Architecture,
    exports: frozenset[str],
    libraries: frozenset[str],
    calls: frozenset[str],
) -> Iterator[str]:
    dynamic = next(s for s in elf.iter_segments() if isinstance(s, DynamicSegment))
    tags: dict[str, int] = {}
    tag: Any  # attributes depend on the kind
    for tag in dynamic.iter_tags():
        name = str(tag.entry.d_tag)
        if name in tags and name != "DT_NEEDED":
            yield f"its {name} is there twice"
        tags[name] = tag.entry.d_val
        if name == "DT_NEEDED" and not _LIBRARIES.fullmatch(tag.needed) and tag.needed not in libraries:
            yield f"it needs the library '{tag.needed}'"
        elif name in _ELSEWHERE and getattr(tag, name.removeprefix("DT_").lower()) != _ORIGIN:
            yield f"its {name} is '{getattr(tag, name.removeprefix('DT_').lower())}', expected none or {_ORIGIN}"
        elif name in _LOADED_BESIDE:
            yield f"its {name} makes the loader load another library"
    if "DT_TEXTREL" in tags or tags.get("DT_FLAGS", 0) & _DF_TEXTREL:
        yield "its code is changed when it is loaded (TEXTREL)"
    if (count := dynamic.num_symbols()) > _MOST:
        yield f"it has {count} names, expected at most {_MOST}"
    yield from _names(dynamic, exports, needs.ALL | calls, code)
    for line in code.values():
        if disassembly.is_system_call(arch, line):
            yield f"it has a system call ({line.mnemonic}) at {line.at:#x}"
        if line.target is not None and line.target not in code:
            yield f"it jumps to {line.target:#x}, at {line.at:#x}, which is no instruction in a section of code"
    yield from _started(elf, dynamic, arch, tags, code)


def _disassembled(elf: ELFFile, path: Path) -> disassembly.Code:
    """The code of a library. Raises ValueError if its section headers do not match the loaded segments."""
    loaded = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD" and s["p_flags"] & _EXEC]
    executable = [s for s in elf.iter_sections() if s["sh_flags"] & 4 and s["sh_size"]]
    for section in executable:
        if not any(
            of["p_vaddr"] <= section["sh_addr"]
            and section["sh_addr"] + section["sh_size"] <= of["p_vaddr"] + of["p_filesz"]
            and section["sh_addr"] - of["p_vaddr"] == section["sh_offset"] - of["p_offset"]
            for of in loaded
        ):
            raise ValueError(f"section {section.name} is not what a loader maps")
    return disassembly.disassembled(path)


def _names(
    dynamic: DynamicSegment, exports: frozenset[str], calls: frozenset[str], code: dict[int, Instruction]
) -> Iterator[str]:
    for symbol in dynamic.iter_symbols():
        bind, kind = symbol["st_info"]["bind"], symbol["st_info"]["type"]
        if kind in gate.CHOSEN_BY_CODE:
            yield f"'{symbol.name}' is resolved by code that runs when it is loaded"
        if bind == "STB_LOCAL" or not symbol.name:
            continue
        own = symbol.name.startswith(needs.OWN)
        if symbol["st_shndx"] == "SHN_UNDEF":
            if not own and symbol.name not in calls:
                yield f"it calls or reads '{symbol.name}', which none of its parts needs"
        elif not own and symbol.name not in exports and symbol.name not in _LINKERS:
            yield f"it exports '{symbol.name}'"
        elif (symbol.name in exports or kind == "STT_FUNC") and symbol["st_value"] not in code:
            yield f"'{symbol.name}' is no instruction in a section of code"


def _started(
    elf: ELFFile, dynamic: DynamicSegment, arch: Architecture, tags: dict[str, int], code: dict[int, Instruction]
) -> Iterator[str]:
    """Complaints about code that runs when the library is loaded or unloaded, beyond compilers' start files."""
    addends: dict[int, int] = {}
    slots: dict[int, str] = {}
    symbols = list(dynamic.iter_symbols())
    arrays = {tags[name] for name in _ARRAYS if tags.get(f"{name}SZ")}
    fixed = [(dynamic["p_vaddr"], dynamic["p_vaddr"] + dynamic["p_memsz"]), *((at, at + 8) for at in arrays)]
    table: Any
    for table in dynamic.get_relocation_tables().values():
        if table.num_relocations() > _MOST:
            yield f"it has {table.num_relocations()} relocations, expected at most {_MOST}"
        for relocation in table.iter_relocations():
            kind, at, number = (relocation[f"r_{name}"] for name in ("info_type", "offset", "info_sym"))
            if kind == arch.chosen:
                yield "code of it chooses functions when it is loaded (IFUNC)"
            elif any(begin - 8 < at < end for begin, end in fixed) and not (kind == arch.relative and at in arrays):
                yield f"the loader changes what it runs, at {at:#x}"
            elif kind == arch.relative:
                addends[at] = relocation["r_addend"] if relocation.is_RELA() else 0
            elif number < len(symbols):
                slots[at] = symbols[number].name
            else:
                yield f"the loader looks up a name that is none of its own, at {at:#x}"
    entries = {name: tags[name] for name in ("DT_INIT", "DT_FINI") if tags.get(name)}
    for name in _ARRAYS:
        count = tags.get(f"{name}SZ", 0) // 8
        if count > 1 or (count and name == "DT_PREINIT_ARRAY"):
            yield f"it runs code when it is loaded or goes: {name} has {count} entries"
        if count:
            at = tags[name]
            entries[name] = addends.get(at) or _word(elf, at)
    start = _StartFiles(arch, code, slots, addends)
    for name, at in entries.items():
        if not start.hold(at, _CALLS[name]):
            yield f"it runs code of its own when it is loaded or goes: {name}, at {at:#x}"


def _word(elf: ELFFile, address: int) -> int:
    for segment in elf.iter_segments():
        if segment["p_type"] == "PT_LOAD" and 0 <= address - segment["p_vaddr"] <= segment["p_filesz"] - 8:
            elf.stream.seek(segment["p_offset"] + address - segment["p_vaddr"])
            return int(struct.unpack("<Q", elf.stream.read(8))[0])
    return 0


@dataclass(frozen=True)
class _StartFiles:
    """Recognizes the code of compilers' start files in a library."""

    arch: Architecture
    code: dict[int, Instruction]  # by address
    slots: dict[int, str]  # imported names, by the address where the loader writes theirs
    addends: dict[int, int]  # the library's own addresses, by the address where the loader writes them

    def hold(self, entry: int, calls: frozenset[str]) -> bool:
        """Whether the code reachable from `entry` is short and consists of instructions of start files.

        It must call one of `calls` (if there are any), and only names of a compiler's runtime.
        """
        open_, seen, met = [entry], set[int](), set[str]()
        while open_:
            at = open_.pop()
            while at not in seen:
                line = self.code.get(at)
                if line is None or len(seen) > _STEPS:
                    return False
                if not self.arch.start_files.fullmatch(str(line)):
                    return False
                if self.arch.start_addresses and not self._harmless(line, met):
                    return False
                seen.add(at)
                if line.target is not None:
                    open_.append(line.target)
                if line.mnemonic in ("ret", "jmp", "b", "br", "j", "jr", "tail"):
                    break
                at += line.size
        met |= set() if self.arch.start_addresses else set(self.slots.values())
        return not calls or bool(calls & met)

    def _harmless(self, line: Instruction, met: set[str]) -> bool:
        """Whether addresses are those of data or of runtime names, and indirect calls and jumps go to the latter."""
        calls = line.mnemonic in ("call", "jmp")
        found = _RIP.search(line.operands)
        if found is None:
            return not calls or line.target is not None or self._loaded(line)
        at = line.at + line.size + int(found[1].replace(" ", ""), 0)
        if at in self.slots:
            met.add(self.slots[at])
            return self.slots[at] in needs.RUNTIME
        return not calls and at not in self.code and self.addends.get(at) not in self.code

    def _loaded(self, line: Instruction) -> bool:
        """Whether the called register was loaded just before with the address of a runtime name."""
        before = [at for at in range(line.at - 20, line.at) if at in self.code]
        for at in before:
            other = self.code[at]
            found = _RIP.search(other.operands)
            if found and other.mnemonic == "mov" and other.operands.startswith(f"{line.operands}, "):
                return self.slots.get(at + other.size + int(found[1].replace(" ", ""), 0)) in needs.RUNTIME
        return False
