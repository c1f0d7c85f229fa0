"""A shared library held against its own tables before a loader maps it: one that was cut ends a process by SIGBUS."""

from __future__ import annotations

import io
from pathlib import Path

from elftools.common.exceptions import ELFParseError
from elftools.elf.elffile import ELFFile

from tensorop.errors import JobError, UsageError
from tensorop.model.architecture import of_elf
from tensorop.specs import files


def machine(library: Path) -> str:
    """The architecture of an ELF file, in our spelling where we have one. Raises UsageError for another file."""
    try:
        with files.opened(library, files.LIBRARY) as stream:
            name = str(ELFFile(stream)["e_machine"])
    except OSError as error:
        raise UsageError(f"{library} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # whatever the reader makes of bytes that are no ELF
        raise UsageError(f"{library} is no shared library: {error or type(error).__name__}") from None
    known = of_elf(name)
    return known.name if known else name


def require_uncut(library: Path) -> None:
    """Raises JobError where an ELF file ends before what it says it holds; says nothing of another file."""
    try:
        data = files.read(library, files.LIBRARY)
    except OSError as error:
        raise UsageError(f"{library} cannot be read: {error.strerror or error}") from None
    if not data.startswith(b"\x7fELF"):
        return
    try:
        _uncut(ELFFile(io.BytesIO(data)), len(data))
    except (ELFParseError, ValueError) as error:  # ValueError: a place before the file's beginning, too
        raise _damaged(library, error) from None
    except Exception:  # whatever the reader makes of bytes that only begin as an ELF file does
        return


def _uncut(elf: ELFFile, size: int) -> None:
    ends = [s["p_offset"] + s["p_filesz"] for s in elf.iter_segments() if s["p_filesz"]]
    end = max([elf["e_phoff"] + elf["e_phnum"] * elf["e_phentsize"], *ends])
    if end > size:
        raise ValueError(f"expected {end} bytes at least, got {size}")


def _damaged(library: Path, error: Exception) -> JobError:
    return JobError(f"{library} is damaged: {error or type(error).__name__}", hint="make the library again")


def require_whole(library: Path) -> None:
    """Raises JobError unless every segment and table that a loader maps is inside of the file."""
    try:
        with files.opened(library, files.LIBRARY) as stream:
            elf = ELFFile(stream)
            if elf["e_type"] != "ET_DYN":
                raise ValueError(f"its type is {elf['e_type']}, expected ET_DYN")
            if not any(s["p_type"] == "PT_LOAD" for s in elf.iter_segments()):
                raise ValueError("it has nothing to load")
            _uncut(elf, library.stat().st_size)
    except OSError as error:
        raise JobError(f"{library} cannot be loaded: {error.strerror or error}", hint="make it again") from None
    except Exception as error:  # whatever the reader makes of bytes that are no ELF
        raise _damaged(library, error) from None
