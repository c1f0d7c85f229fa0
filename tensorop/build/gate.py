"""What an object of a stranger may hold: code and constants, its own entries, and calls to nobody.

Most published ways to cheat a kernel benchmark (calling the library it is measured against, replaying kept results,
running before the guards are up, talking to the system) leave a trace here, before anything runs.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section, SymbolTableSection

from tensorop.build import words
from tensorop.model.trial import Kind, Outcome
from tensorop.runners import process

# What a compiler itself may put in place of a loop.
COMPILER_CALLS = frozenset({"memcpy", "memset", "memmove"})
ENTRIES = frozenset({"tensorop_candidate_0", "tensorop_candidate_1"})

_WRITE, _ALLOC, _EXEC, _TLS = 0x1, 0x2, 0x4, 0x400
_RUNS_BEFORE_MAIN = frozenset({"SHT_INIT_ARRAY", "SHT_FINI_ARRAY", "SHT_PREINIT_ARRAY"})
_OLD_CONSTRUCTORS = (".ctors", ".dtors", ".init", ".fini", ".init_array", ".fini_array", ".preinit_array")


def check_object(
    path: Path, *, allowed: Collection[str] = COMPILER_CALLS, entries: Collection[str] = ENTRIES
) -> Outcome | None:
    """None when the object is fit to be linked and run, else an OBJECT outcome that says why not.

    allowed: undefined symbols it may have; entries: global symbols it may define, at least one of which it must.
    """
    try:
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            why = next(_objections(elf, path, frozenset(allowed), frozenset(entries)), None)
    except (ELFError, OSError, ValueError) as e:
        why = f"it cannot be read: {e}"
    return None if why is None else Outcome(Kind.OBJECT, "build", f"the object is refused: {why}")


def _objections(elf: ELFFile, path: Path, allowed: frozenset[str], entries: frozenset[str]) -> Iterator[str]:
    for section in elf.iter_sections():
        yield from _section(section)
    defined = False
    for table in elf.iter_sections():
        if not isinstance(table, SymbolTableSection):
            continue
        for symbol in table.iter_symbols():
            bind, kind = symbol["st_info"]["bind"], symbol["st_info"]["type"]
            if kind == "STT_GNU_IFUNC" or kind == "STT_LOOS":
                yield f"'{symbol.name}' is resolved by code that runs before any guard is up"
            if bind == "STB_LOCAL" or not symbol.name:
                continue
            if symbol["st_shndx"] == "SHN_UNDEF":
                if symbol.name not in allowed:
                    yield f"it calls or reads '{symbol.name}', which is none of its own"
            elif symbol.name not in entries:
                yield f"it defines the global '{symbol.name}'"
            else:
                defined = True
    if not defined:
        yield f"it defines none of {', '.join(sorted(entries))}"
    arch = elf["e_machine"]
    for section in elf.iter_sections():
        if section["sh_flags"] & _EXEC:
            yield from _code(section, arch, path)


def _section(section: Section) -> Iterator[str]:
    flags, name = section["sh_flags"], section.name
    if section["sh_type"] in _RUNS_BEFORE_MAIN or name.startswith(_OLD_CONSTRUCTORS):
        yield f"section {name} runs code before any guard is up"
    elif not flags & _ALLOC or section["sh_size"] == 0:
        return
    elif flags & _TLS:
        yield f"section {name} keeps {section['sh_size']} bytes for each thread between calls"
    elif flags & _WRITE:
        yield f"section {name} keeps {section['sh_size']} bytes between calls"


def _code(section: Section, machine: str, path: Path) -> Iterator[str]:
    data = section.data()
    if machine == "EM_RISCV":
        found = words.riscv_forbidden(data)
    elif machine == "EM_AARCH64":
        found = words.aarch64_forbidden(data)
    elif machine == "EM_X86_64":
        found = words.x86_suspects(data)
        # The same bytes may lie inside another instruction's constant: a disassembler tells.
        if found is not None and _x86_innocent(path):
            found = None
    else:
        yield f"it is for another machine ({machine})"
        return
    if found is not None:
        at, what = found
        yield f"{what} in {section.name} at byte {at}"


def _x86_innocent(path: Path) -> bool:
    objdump = shutil.which("objdump")
    if objdump is None:
        return False
    listed = process.run(
        [objdump, "-d", "--no-show-raw-insn", "-M", "intel", str(path)],
        timeout_s=30,
        environment={},
        stdout_cap=64 << 20,
    )
    if listed.status != 0:
        return False
    mnemonics = {parts[1].split()[0] for line in listed.stdout.decode(errors="replace").splitlines()
                 if len(parts := line.split("\t")) > 1 and parts[1].strip()}  # fmt: skip
    return not mnemonics & {"syscall", "sysenter", "int", "int3", "(bad)"}
