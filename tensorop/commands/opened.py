"""Opens a finished product or library, with its operator, its platform and its dtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from tensorop import backends, subpackages
from tensorop.errors import UsageError
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.package import loadable, plugin_record
from tensorop.package.card import Card, read_card
from tensorop.package.product import MANIFEST
from tensorop.package.publish import Staged
from tensorop.specs import operators, platforms
from tensorop.target import Target

SHARE = Path("share") / "tensorop"
_LIBRARIES = "libtensorop_*.so"
_RESUME = "its run is not finished; run the same `tensorop <operator>` command again to resume"
_MAKE = "build one with `tensorop <operator> --out DIR`"


@dataclass(frozen=True)
class Opened:
    """A library with everything that its card names."""

    root: Path | None  # the product's folder; None if the library is not in a product
    library: Path
    card: Card  # the provenance card in the library
    operator: Operator
    platform: Platform
    dtypes: tuple[str, ...]
    plugins: tuple[Path, ...]  # the user's plug-in folders

    def only(self, dtypes: Sequence[str]) -> Opened:
        """The library restricted to some dtypes; empty: all. Raises UsageError for a dtype that it lacks."""
        if lacking := [dtype for dtype in dtypes if dtype not in self.dtypes]:
            raise UsageError(
                f"{self.library} supports {', '.join(self.dtypes)}; got --dtype {', '.join(lacking)}",
                hint="remove --dtype, or use one of the supported types",
            )
        return replace(self, dtypes=tuple(dtypes) or self.dtypes)

    def reach(self, runner: str | None = None) -> Target:
        """The target of the product's platform. Raises as `backends.reach`."""
        with plugin_record.explained(_manifest(self.root), self.plugins):
            return backends.reach(self.platform, runner, self.plugins)

    @property
    def backend(self) -> type[Target]:
        """The backend of the product's platform."""
        with plugin_record.explained(_manifest(self.root), self.plugins):
            return backends.load(self.platform.runner, self.plugins)

    @property
    def by_kit(self) -> bool:
        """True if the target does not measure, so that kits supply the figures (docs/how-to/tune-with-a-kit.md)."""
        return not self.backend.measures

    def require_fit(self) -> None:
        """Raises the errors of `loadable.require`; checks all files of the product if the library is in one."""
        loadable.require(self.library, self.operator, self.backend.library_calls, whole=self.root is not None)


def libraries_of(path: Path) -> tuple[Path | None, list[Path]]:
    """(folder of the product, its operators' libraries), from the folder or one library.

    Raises UsageError if there is no library.
    """
    try:
        there = path.exists()
    except (OSError, ValueError) as error:  # the path cannot be a file name
        raise UsageError(f"{str(path)[:200]} cannot be the path of a product: {error!s:.100}", hint=_MAKE) from None
    if not there:
        raise UsageError(f"{path} does not exist", hint=_MAKE)
    if path.is_dir():
        found = [lib for lib in sorted((path / "lib").glob(_LIBRARIES)) if lib.stem != "libtensorop_cblas"]
        if not found:
            unfinished = (path / SHARE / "journal.jsonl").is_file()
            hint = _RESUME if unfinished else _near(path) or _MAKE
            raise UsageError(f"{path} contains no product: lib/libtensorop_<operator>.so is missing", hint=hint)
        return path, found
    if not path.is_file():
        raise UsageError(f"{path} must be a folder or a regular file", hint=_MAKE)
    root = path.resolve().parent.parent
    return (root if (root / SHARE / "manifest.json").is_file() else None), [path]


def _near(path: Path) -> str:
    """A hint that names the product in which a folder lies, or those in the folder; "" if there are none."""
    around = [place for place in path.absolute().parents[:3] if next((place / "lib").glob(_LIBRARIES), None)]
    inside = sorted({library.parents[1] for library in path.glob(f"*/lib/{_LIBRARIES}")})
    return f"pass {' or '.join(map(str, around[:1] or inside[:3]))}" if around or inside else ""


def open_product(path: Path, plugins: tuple[Path, ...] = ()) -> Opened:
    """Opens a product of one operator, or one library, as `open_each`. Raises UsageError for several operators."""
    found = open_each(path, plugins)
    if len(found) > 1:
        names = ", ".join(one.library.name for one in found)
        raise UsageError(
            f"{path} contains several operators, and this command takes one",
            hint=f"pass one library of {path / 'lib'}: {names}",
        )
    return found[0]


def open_each(path: Path, plugins: tuple[Path, ...] = ()) -> tuple[Opened, ...]:
    """Reads the cards of a product's folder or a library, and loads the operators and platforms that they name.

    Plug-ins that the manifest contains are found too. Raises UsageError if there is no library or no card, if the card
    names an unknown operator or platform (see --plugins), or if the library is for another architecture than the
    platform; JobError if the card is damaged or the file is truncated.
    """
    root, libraries = libraries_of(path)
    cards = [(library, read_card(library)) for library in libraries]
    whole = plugins if root is None else plugin_record.reopened(root / MANIFEST, plugins)
    with plugin_record.explained(_manifest(root), whole):
        return tuple(_opened(root, library, card, plugins, whole) for library, card in cards)


def staged(made: Staged, operator: Operator, platform: Platform, plugins: tuple[Path, ...]) -> Opened:
    """A new product of one operator, before it is moved to its folder."""
    card = read_card(made.library)
    return _whole(Opened(made.folder, made.library, card, operator, platform, tuple(card["dtypes"]), plugins))


def cards(path: Path) -> dict[str, Card]:
    """By file name: the provenance card of a library, or of each operator's library in a product's folder.

    Raises UsageError if there is no library or it has no card, JobError if the card is damaged.
    """
    return {library.name: read_card(library) for library in libraries_of(path)[1]}


def _opened(root: Path | None, library: Path, card: Card, given: tuple[Path, ...], plugins: tuple[Path, ...]) -> Opened:
    try:
        operator = operators.load(_name(card["operator"]), plugins)
        platform = platforms.load(_name(card["platform"]), plugins)
        dtypes = tuple(card["dtypes"])
    except (AttributeError, KeyError, TypeError) as error:
        raise UsageError(
            f"the provenance card of {library} lacks {error}",
            hint="build the library again with this version of tensorop",
        ) from None
    return _whole(Opened(root, library, card, operator, platform, dtypes, given))


def _whole(found: Opened) -> Opened:
    """Raises JobError if the file is truncated, UsageError if it is for another architecture than its platform."""
    loadable.require_uncut(found.library)
    machine = loadable.machine(found.library)
    if machine != found.platform.arch:
        raise UsageError(
            f"{found.library} is built for {machine}, but its provenance card names platform {found.platform.name} "
            f"({found.platform.arch})",
            hint="the file was changed after it was built; build the product again",
        )
    return found


def _manifest(root: Path | None) -> Path | None:
    return None if root is None else root / MANIFEST


def _name(value: Any) -> str:
    return str(value["name"] if isinstance(value, Mapping) else value)


def kits(each: Sequence[Opened], purpose: str) -> ModuleType | None:
    """The kits' commands if a library's target does not measure itself; None if all targets do.

    purpose: the command that needs them, for the error
    """
    return subpackages.require("kits", "commands", purpose) if any(found.by_kit for found in each) else None
