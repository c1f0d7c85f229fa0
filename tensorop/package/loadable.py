"""Whether a product's libraries are fit to be loaded and linked: read before anything of them runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from tensorop.build import finished
from tensorop.errors import JobError, MissingTool
from tensorop.model.operator import Operator
from tensorop.package import library as building
from tensorop.specs import files, products

_HINT = "do not load it; make the product again, or take it from somebody whose programs you run"


def require(library: Path, operator: Operator, more: Collection[str] = (), *, whole: bool) -> None:
    """Raises JobError where a library of the operator, or one of its product that a loader brings with it, runs code
    when it is loaded, binds to names or libraries that none of its parts needs, or exports others than a product of it
    has. MissingTool without a disassembler.

    more: what it may call beside that; whole: so are all libraries and archives of the product that it lies in.
    """
    spec = products.load(operator)
    exports = {*products.NAMES, *(name for one in spec.libraries.values() for of in one.names.values() for name in of)}
    calls = {*more, *(name for names in spec.calls.values() for name in names)}
    libraries = {building.soname(name) for name in spec.libraries}
    of_product = [library.parent / f"lib{name}.so" for name in spec.libraries] if whole else []
    for path in dict.fromkeys((library, *filter(os.path.lexists, of_product))):
        _refuse(path, partial(finished.complaint, path, exports, libraries, calls))
        static = path.with_suffix(".a")
        if whole and os.path.lexists(static):
            _refuse(static, partial(finished.archive_complaint, static, exports, calls))
    for name, path in zip(spec.libraries, of_product, strict=False):
        loaded = library.parent / building.soname(name)
        if os.path.lexists(path) and os.path.lexists(loaded):
            _refuse(loaded, partial(_another, loaded, path))


def _another(loaded: Path, linked: Path) -> str | None:
    """Programs are linked with one of two names, and load the other."""
    same = files.read(loaded, files.LIBRARY) == files.read(linked, files.LIBRARY)
    return None if same else f"it is another file than {linked.name}, which is judged and linked"


def _refuse(path: Path, look: Callable[[], str | None]) -> None:
    try:
        why = look()
    except MissingTool:
        raise
    except OSError as error:
        raise JobError(f"{path} cannot be read: {error.strerror or error}", hint="make the product again") from None
    except Exception as error:  # whatever the reader makes of bytes that are no library
        raise JobError(
            f"{path} cannot be read: {error or type(error).__name__}", hint="make the product again"
        ) from None
    if why is not None:
        raise JobError(f"{path} is refused: {why}", hint=_HINT)
