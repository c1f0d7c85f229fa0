"""A finished product from Python: NumPy arrays in, NumPy arrays out, through cffi."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import cffi

from tensorop.errors import JobError, UsageError
from tensorop.package.product import MANIFEST
from tensorop.provision.targets import host_arch
from tensorop.specs import operators


class Library:
    """A loaded product of one operator, which is called by its name: `library.<operator>(...)`.

    How it is called, with shapes, dtypes and errors, is written in the operator's binding (`help(library.<operator>)`).
    Safe to call from several threads: the interpreter lock is released during a call.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any], binding: ModuleType, library: Path) -> None:
        self.folder = folder
        self.manifest = manifest
        self.operator: str = manifest["operator"]
        self.dtypes: tuple[str, ...] = tuple(sorted(manifest["dtypes"]))
        self.ffi = cffi.FFI()
        self.ffi.cdef(_COMMON + binding.declarations(self.dtypes))
        try:
            self.lib = self.ffi.dlopen(str(library))
        except OSError as error:
            raise JobError(
                f"{library} cannot be loaded: {error}", hint="tensorop doctor says what is missing"
            ) from None
        self._call: Callable[..., Any] = binding.bind(self)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name == self.__dict__.get("operator"):
            return self.__dict__["_call"]  # type: ignore[no-any-return]
        raise AttributeError(f"this library computes {self.__dict__.get('operator')}, there is no '{name}'")

    def __repr__(self) -> str:
        return f"<tensorop.Library {self.operator} {', '.join(self.dtypes)} at {self.folder}>"

    @property
    def threads(self) -> int:
        """Threads a call may use."""
        return int(self.lib.tensorop_get_num_threads())

    @threads.setter
    def threads(self, count: int) -> None:
        self.lib.tensorop_set_num_threads(count)

    @property
    def card(self) -> dict[str, Any]:
        """The provenance card inside the library."""
        return dict(json.loads(self.ffi.string(self.lib.tensorop_card())))


_COMMON = """
void tensorop_set_num_threads(int threads);
int tensorop_get_num_threads(void);
const char *tensorop_card(void);
"""


def load(folder: str | Path, plugins: tuple[Path, ...] = ()) -> Library:
    """Opens the product in `folder` (what `tensorop <operator> --out` made).

    Raises UsageError when there is none, or it is for another architecture; JobError when it is damaged or the loader
    refuses it.
    """
    folder = Path(folder).absolute()
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        arch, operator = manifest["platform"]["arch"], manifest["operator"]
    except OSError as error:
        raise UsageError(
            f"{folder} holds no product: {path} cannot be read ({error.strerror})",
            hint="make one with `tensorop <operator> --out DIR`",
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise JobError(f"{path} is damaged: {type(error).__name__}: {error}", hint="make the product again") from None
    if arch != host_arch():
        raise UsageError(
            f"the product in {folder} is for {arch}, this machine is {host_arch()}",
            hint="Python loads products of its own machine; `tensorop verify` and `bench` run others in an emulator",
        )
    binding = operators.binding(operators.load(operator, plugins))
    return Library(folder, manifest, binding, folder / "lib" / f"libtensorop_{operator}.so")
