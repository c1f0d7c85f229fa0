"""A finished product from Python: NumPy arrays in, NumPy arrays out, through cffi."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import cffi

from tensorop import jsontext
from tensorop.author.offline import AUTHOR, PLUGIN
from tensorop.errors import JobError, UsageError
from tensorop.package import elf
from tensorop.package.card import read_card
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
        elf.require_whole(library)
        self.ffi = cffi.FFI()
        self.ffi.cdef(_COMMON + binding.declarations(self.dtypes))
        try:
            self.lib = self.ffi.dlopen(str(library))
        except OSError as error:
            raise JobError(
                f"{library} cannot be loaded: {error}", hint="tensorop doctor says what is missing"
            ) from None
        setattr(self, self.operator, binding.bind(self))  # past __getattr__: no step on every call

    def __getattr__(self, name: str) -> Callable[..., Any]:
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
        return dict(jsontext.loads(self.ffi.string(self.lib.tensorop_card())))


_COMMON = """
void tensorop_set_num_threads(int threads);
int tensorop_get_num_threads(void);
const char *tensorop_card(void);
"""


def load(path: str | Path, plugins: tuple[Path, ...] = ()) -> Library:
    """Opens a product: the folder that `tensorop <operator> --out` made, or its shared library, wherever that lies.

    Its code runs in this process, confined by nothing: a UserWarning says so where a model wrote its kernels, or where
    nothing beside it says that it was verified.
    Raises UsageError when there is none, or it is for another architecture; JobError when it is damaged or the loader
    refuses it.
    """
    path = Path(path).absolute()
    card, library = (read_card(path), path) if path.is_file() else (_manifest(path), None)
    where = path if library is None else path.parent
    try:
        arch, operator = card["platform"]["arch"], card["operator"]
        tuple(card["dtypes"])
        file = library or path / "lib" / f"libtensorop_{operator}.so"
        doubts = list(_doubts(card, file))
    except (AttributeError, KeyError, TypeError) as error:
        raise JobError(f"{path} is damaged: {type(error).__name__}: {error}", hint="make the product again") from None
    if arch != host_arch():
        raise UsageError(
            f"the product in {path} is for {arch}, this machine is {host_arch()}",
            hint="Python loads products of its own machine; `tensorop verify` and `bench` run others in an emulator",
        )
    if library is not None and library.suffix == ".a":
        raise UsageError(f"{path} is an archive", hint=f"give the shared library: {path.with_suffix('.so')}")
    binding = operators.binding(operators.load(operator, plugins))
    for doubt in doubts:
        warnings.warn(f"{file} {doubt}; its code runs in this process, confined by nothing", stacklevel=2)
    return Library(where, card, binding, file)


def _doubts(card: Mapping[str, Any], library: Path) -> Iterator[str]:
    """What the user should know of a library before its code runs."""
    authors = {
        variant.get("author", AUTHOR) for dtype in card["dtypes"].values() for variant in dtype.get("variants", ())
    }
    if models := ", ".join(sorted(authors - {AUTHOR, PLUGIN})):
        yield f"holds kernels that a model wrote ({models})"
    whole = library.resolve()
    try:
        manifest = jsontext.loads((whole.parent.parent / MANIFEST).read_text(encoding="utf-8"))
        same = manifest["files"][f"lib/{whole.name}"] == f"sha256:{hashlib.sha256(whole.read_bytes()).hexdigest()}"
        verified = same and {verdict["outcome"] for verdict in manifest["results"]["verification"]} == {"ok"}
    except (OSError, ValueError, TypeError, KeyError):
        verified = False
    if not verified:
        yield "is not verified: no manifest beside it says so of this file (`tensorop verify` would)"


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        return dict(jsontext.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(
            f"{folder} holds no product: {path} cannot be read ({error.strerror})",
            hint="make one with `tensorop <operator> --out DIR`; give that folder or a lib/libtensorop_<operator>.so",
        ) from None
    except (ValueError, TypeError) as error:
        raise JobError(f"{path} is damaged: {type(error).__name__}: {error}", hint="make the product again") from None
