"""Loads products into Python with cffi. Operands are NumPy arrays, or GPU arrays for GPU products."""

from __future__ import annotations

import hashlib
import operator
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, cast

import cffi

from tensorop.author.offline import AUTHOR, PLUGIN
from tensorop.errors import JobError, MissingTool, UsageError
from tensorop.model.architecture import host_arch
from tensorop.model.operator import Operator
from tensorop.model.winner import by_operator
from tensorop.package import arguments, binding, loadable, manifest, plugin_record
from tensorop.package.binding import Binding
from tensorop.package.card import Card, read_card
from tensorop.package.product import MANIFEST
from tensorop.provision import llvm
from tensorop.specs import catalog, files, jsontext, operators
from tensorop.specs.printable import printable
from tensorop.toolchain import needs


class Loaded:
    """One operator's loaded library, for its binding: cffi's `ffi` and `lib`, the library's dtypes and its file.

    again: what pickles an object that belongs to the library, by the name of the call that makes it
    """

    def __init__(self, card: Card, library: Path, binding: Binding, again: _Again) -> None:
        self.again = again
        self.dtypes: tuple[str, ...] = tuple(sorted(card["dtypes"]))
        self.file = library
        loadable.require_whole(library)
        self.ffi = cffi.FFI()
        self._card = getattr(binding, "CARD", "tensorop_card")
        common = "" if _device(card) else _OF_HOSTS
        self.ffi.cdef(f"const char *{self._card}(void);{common}" + binding.declarations(self.dtypes))
        try:
            self.lib = self.ffi.dlopen(str(library))
        except OSError as error:
            raise JobError(
                f"{library} cannot be loaded: {error}", hint="run `tensorop doctor` to see what is missing"
            ) from None

    @property
    def card(self) -> dict[str, object]:
        """The provenance card inside the library."""
        return dict(jsontext.loads(self.ffi.string(getattr(self.lib, self._card)())))


class Library:
    """A loaded product. Call an operator by its name, for example `library.gemm(a, b)`.

    `help(library.gemm)` prints its parameters. You may call a library from several threads; it releases the
    interpreter lock during a call.

    A pickled library, as for a worker process or in a torch module, is the path of its product, which is loaded again.
    Its functions cannot be pickled: pass the library.
    """

    def __init__(
        self, folder: Path, operators: Mapping[str, Loaded], bindings: Mapping[str, Binding], again: _Again
    ) -> None:
        self.folder, self._again = folder, again
        self.operators = dict(operators)
        self.dtypes: tuple[str, ...] = tuple(sorted({dtype for one in operators.values() for dtype in one.dtypes}))
        for name, loaded in operators.items():
            bound = bindings[name].bind(loaded)
            for of, function in bound.items() if isinstance(bound, Mapping) else [(name, bound)]:
                setattr(self, of, function)  # an attribute, so that calls skip __getattr__

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"this library computes {', '.join(self.__dict__['operators'])}, there is no '{name}'")

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again("")

    def __repr__(self) -> str:
        return f"<tensorop.Library {', '.join(self.operators)} {', '.join(self.dtypes)} at {self.folder}>"

    @property
    def threads(self) -> int:
        """The number of threads that a call may use."""
        return int(next(iter(self.operators.values())).lib.tensorop_get_num_threads())

    @threads.setter
    def threads(self, count: int) -> None:
        number = arguments.whole("threads", count, 32)
        for one in self.operators.values():
            one.lib.tensorop_set_num_threads(number)

    @property
    def card(self) -> dict[str, object]:
        """The provenance card inside the library; for several operators, the card of each by its name."""
        cards: dict[str, object] = {name: one.card for name, one in self.operators.items()}
        return cards if len(cards) > 1 else next(iter(self.operators.values())).card


_Again = Callable[[str], tuple[Any, ...]]
_OF_HOSTS = """
void tensorop_set_num_threads(int threads);
int tensorop_get_num_threads(void);
"""


def _device(card: Card) -> bool:
    """Whether a library is for a GPU."""
    return "device" in card["platform"]


def load(path: str | Path, plugins: str | Path | Sequence[str | Path] = ()) -> Library:
    """Opens a product for use with NumPy.

    path: the folder that `tensorop OPERATOR --out` made, or one of its shared libraries
    plugins: folders with your plug-ins, if one of them has the product's operator

    The library's code runs in this process without a sandbox. `load` warns (UserWarning) if a model wrote its
    kernels, or if no manifest beside it lists this file as verified. An unverified library is first disassembled with
    llvm-objdump, if that is installed.
    Raises UsageError if there is no product, or if it is for another architecture. Raises JobError if it is damaged, if
    it cannot be loaded, or if an unverified library runs code while it is loaded or calls a forbidden function.
    """
    if not isinstance(path, str | PathLike) or "\0" in str(path):
        raise UsageError(
            f"the path of a product must be a folder or a library; got {path!r}", hint='e.g. "build/gemm-native"'
        )
    path, at = Path(path).absolute(), catalog.folders(plugins)
    cards, where = (_of_library(path), path.parent) if path.is_file() else (_of_folder(path), path)
    try:
        arch = {card["platform"]["arch"] for card, _ in cards.values()}
        doubts = {file: [*_doubts(card, file)] for card, file in cards.values()}
        [tuple(card["dtypes"]) for card, _ in cards.values()]
    except (AttributeError, KeyError, TypeError) as error:
        raise JobError(f"{path} is damaged: {type(error).__name__}: {error}", hint="build the product again") from None
    if arch != {host_arch()}:
        raise UsageError(
            f"the product in {path} is for {', '.join(map(str, arch))}, and this machine is {host_arch()}",
            hint="load a product of this architecture; `tensorop verify` and `bench` run others in an emulator",
        )
    if path.suffix == ".a":
        raise UsageError(f"{path} is a static archive, which Python cannot load", hint=f"use {path.with_suffix('.so')}")
    root = path.resolve().parent.parent if path.is_file() else path
    with plugin_record.explained(root / MANIFEST, at):
        known = {name: operators.load(name, at) for name in cards}
        bindings = {name: binding.of(known[name], _device(card)) for name, (card, _) in cards.items()}
    for name, (card, file) in cards.items():
        if _UNVERIFIED in doubts[file] and not _read(file, known[name], _device(card)):
            doubts[file].append(f"was not read either: {llvm.OBJDUMP.name} is absent ({llvm.OBJDUMP.hint})")
        for doubt in doubts[file]:
            message = f"{file} {doubt}; its code runs in this process, confined by nothing"
            warnings.warn(printable(message), stacklevel=2)

    def again(name: str) -> tuple[Any, ...]:
        return reopened, (path, at, name)

    found = {name: Loaded(card, file, bindings[name], again) for name, (card, file) in cards.items()}
    return Library(where, found, bindings, again)


def reopened(path: Path, plugins: Sequence[Path], name: str) -> Any:
    """What was pickled: the library, or what a call of this name makes, such as `OPERATOR.torch`.

    Raises the errors of `load`, with what to do where the product is not there.
    """
    if not os.path.lexists(path):
        raise UsageError(
            f"a pickled tensorop.Library is the path of its product, and {path} does not exist here",
            hint="copy the product there, or call tensorop.load in this process with the path that it has here",
        )
    library = load(path, plugins)
    return operator.attrgetter(name)(library)() if name else library


_UNVERIFIED = "is not verified: no manifest beside it says so of this file (`tensorop verify` would)"
_Cards = dict[str, tuple[Card, Path]]  # operator -> its card, and its library


def _of_library(path: Path) -> _Cards:
    card = read_card(path)
    return {str(card.get("operator")): (card, path)}


def _doubts(card: Card, library: Path) -> Iterator[str]:
    """Warnings about a library before its code runs."""
    authors = {
        variant.get("author", AUTHOR) for dtype in card["dtypes"].values() for variant in dtype.get("variants", ())
    }
    if models := ", ".join(sorted(authors - {AUTHOR, PLUGIN})):
        yield f"holds kernels that a model wrote ({models})"
    whole = library.resolve()
    try:
        known = manifest.read(whole.parent.parent / MANIFEST)
        digest = hashlib.sha256(files.read(whole, files.LIBRARY)).hexdigest()
        same = known["files"][f"lib/{whole.name}"] == f"sha256:{digest}"
        verified = same and {verdict["outcome"] for verdict in known["results"]["verification"]} == {"ok"}
    except (OSError, ValueError, TypeError, KeyError):
        verified = False
    if not verified:
        yield _UNVERIFIED


def _read(library: Path, operator: Operator, device: bool) -> bool:
    """Whether the library could be disassembled here. Raises JobError if its code must not be in a product."""
    try:
        llvm.OBJDUMP.program(offline=True)
    except MissingTool:
        return False
    loadable.require(library, operator, needs.DEVICE.calls if device else (), whole=False)
    return True


def _library(folder: Path, operator: str, card: Card) -> Path:
    usual = folder / "lib" / f"libtensorop_{operator}.so"
    return next(usual.parent.glob(f"{usual.stem}_*.so"), usual) if _device(card) else usual


def _of_folder(folder: Path) -> _Cards:
    path = folder / MANIFEST
    try:
        whole = manifest.read(path)
        cards = {name: cast(Card, {**whole, **of_one}) for name, of_one in by_operator(whole).items()}
        return {name: (card, _library(folder, name, card)) for name, card in cards.items()}
    except OSError as error:
        raise UsageError(
            f"{folder} contains no product: {path} cannot be read ({error.strerror})",
            hint="build one with `tensorop <operator> --out DIR`; pass that folder or its "
            "lib/libtensorop_<operator>.so",
        ) from None
    except (KeyError, ValueError, TypeError) as error:
        raise JobError(f"{path} is damaged: {type(error).__name__}: {error}", hint="build the product again") from None
