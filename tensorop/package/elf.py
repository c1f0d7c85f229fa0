"""A shared library held against its own tables before a loader maps it: one that was cut ends a process by SIGBUS."""

from __future__ import annotations

from pathlib import Path

from elftools.elf.elffile import ELFFile

from tensorop.errors import JobError, UsageError

_MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64", "EM_RISCV": "riscv64"}


def machine(library: Path) -> str:
    """The architecture of an ELF file, in our spelling where we have one. Raises UsageError for another file."""
    try:
        with library.open("rb") as stream:
            name = str(ELFFile(stream)["e_machine"])
    except OSError as error:
        raise UsageError(f"{library} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # whatever the reader makes of bytes that are no ELF
        raise UsageError(f"{library} is no shared library: {error or type(error).__name__}") from None
    return _MACHINES.get(name, name)


def require_whole(library: Path) -> None:
    """Raises JobError unless every segment and table that a loader maps lies inside of the file."""
    try:
        size = library.stat().st_size
        with library.open("rb") as stream:
            elf = ELFFile(stream)
            if elf["e_type"] != "ET_DYN":
                raise ValueError(f"its type is {elf['e_type']}, expected ET_DYN")
            ends = [elf["e_phoff"] + elf["e_phnum"] * elf["e_phentsize"]]
            segments = list(elf.iter_segments())
            ends += [s["p_offset"] + s["p_filesz"] for s in segments if s["p_filesz"]]
            if not any(s["p_type"] == "PT_LOAD" for s in segments):
                raise ValueError("it has nothing to load")
            if max(ends) > size:
                raise ValueError(f"expected {max(ends)} bytes at least, got {size}")
    except OSError as error:
        raise JobError(f"{library} cannot be loaded: {error.strerror or error}", hint="make it again") from None
    except Exception as error:  # whatever the reader makes of bytes that are no ELF
        said = error or type(error).__name__
        raise JobError(f"{library} is damaged: {said}", hint="make the library again") from None
