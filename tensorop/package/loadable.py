"""Checks the files of a product before anything in them runs: they are complete, and safe to load and link.

If a loader maps a truncated library, the process ends by SIGBUS.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from elftools.common.exceptions import ELFParseError
from elftools.elf.elffile import ELFFile

from tensorop import __version__
from tensorop.errors import JobError, MissingTool, UsageError, of_system
from tensorop.model.architecture import of_elf
from tensorop.model.operator import Operator
from tensorop.specs import files, products
from tensorop.toolchain import finished

SONAME_MAJOR = int(__version__.split(".")[0])
_HINT = "do not load it; build the product again, or get it from a source that you trust"


def soname(name: str) -> str:
    """The SONAME of a library, which linked programs request from the loader."""
    return f"lib{name}.so.{SONAME_MAJOR}"


def machine(library: Path) -> str:
    """The architecture of an ELF file, in tensorop's spelling if it is known. Raises UsageError for another file."""
    try:
        with files.opened(library, files.LIBRARY) as stream:
            name = str(ELFFile(stream)["e_machine"])
    except OSError as error:
        raise UsageError(f"{library} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # the reader raises various errors for other bytes
        raise UsageError(f"{library} is not a shared library: {error or type(error).__name__}") from None
    known = of_elf(name)
    return known.name if known else name


def require_uncut(library: Path) -> None:
    """Raises JobError if an ELF file is truncated, UsageError if it cannot be read.

    Other files pass.
    """
    with of_system(UsageError, f"{library} cannot be read"):
        data = files.read(library, files.LIBRARY)
    if not data.startswith(b"\x7fELF"):
        return
    try:
        _uncut(ELFFile(io.BytesIO(data)), len(data))
    except (ELFParseError, ValueError) as error:  # ValueError: also for an offset before the file's start
        raise _damaged(library, error) from None
    except Exception:  # various errors, for bytes that only begin like an ELF file
        return


def _uncut(elf: ELFFile, size: int) -> None:
    ends = [s["p_offset"] + s["p_filesz"] for s in elf.iter_segments() if s["p_filesz"]]
    end = max([elf["e_phoff"] + elf["e_phnum"] * elf["e_phentsize"], *ends])
    if end > size:
        raise ValueError(f"expected {end} bytes at least, got {size}")


def _damaged(library: Path, error: Exception) -> JobError:
    return JobError(f"{library} is damaged: {error or type(error).__name__}", hint="build the library again")


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
        raise JobError(f"{library} cannot be loaded: {error.strerror or error}", hint="build it again") from None
    except Exception as error:  # the reader raises various errors for other bytes
        raise _damaged(library, error) from None


def require(library: Path, operator: Operator, more: Collection[str] = (), *, whole: bool) -> None:
    """Raises JobError if an operator's library, or a library of its product that a loader brings, is unsafe to load.

    A library is unsafe if loading it runs code. It is also unsafe if it binds names or libraries that none of its parts
    needs, or exports names that its product does not have. Raises MissingTool without a disassembler.

    more: further names that it may call; whole: checks all libraries and archives of its product too.
    """
    spec = products.load(operator)
    exports = {*products.NAMES, *(name for one in spec.libraries.values() for of in one.names.values() for name in of)}
    calls = {*more, *(name for names in spec.calls.values() for name in names)}
    libraries = {soname(name) for name in spec.libraries}
    of_product = [library.parent / f"lib{name}.so" for name in spec.libraries] if whole else []
    for path in dict.fromkeys((library, *filter(os.path.lexists, of_product))):
        _refuse(path, partial(finished.complaint, path, exports, libraries, calls))
        static = path.with_suffix(".a")
        if whole and os.path.lexists(static):
            _refuse(static, partial(finished.archive_complaint, static, exports, calls))
    for name, path in zip(spec.libraries, of_product, strict=False):
        loaded = library.parent / soname(name)
        if os.path.lexists(path) and os.path.lexists(loaded):
            _refuse(loaded, partial(_another, loaded, path))


def _another(loaded: Path, linked: Path) -> str | None:
    """Why the file that programs load is not the file that they are linked with; None if it is."""
    same = files.read(loaded, files.LIBRARY) == files.read(linked, files.LIBRARY)
    return None if same else f"it is another file than {linked.name}, which is judged and linked"


def _refuse(path: Path, look: Callable[[], str | None]) -> None:
    try:
        why = look()
    except MissingTool:
        raise
    except OSError as error:
        raise JobError(f"{path} cannot be read: {error.strerror or error}", hint="build the product again") from None
    except Exception as error:  # the reader raises various errors for other bytes
        raise JobError(
            f"{path} cannot be read: {error or type(error).__name__}", hint="build the product again"
        ) from None
    if why is not None:
        raise JobError(f"{path} is refused: {why}", hint=_HINT)
