"""Paths: plug-in folders, the package's C files, the cache."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from tensorop import settings

PLUGIN_KINDS = ("platforms", "primitives", "templates", "tuners", "backends", "policies")

_PACKAGE = Path(__file__).resolve().parent


def package_dir() -> Path:
    """The folder of the package tensorop."""
    return _PACKAGE


def native_dir() -> Path:
    """The folder with the C files of harness, kits, board model and products."""
    return _PACKAGE / "native"


def generated_dir() -> Path:
    """The folder of the parts that an operator has without files of its own."""
    return _PACKAGE / "native" / "operator"


def builtin_dir(kind: str) -> Path:
    """The shipped folder of a kind of plug-in: in the package of a wheel, else beside it in a checkout."""
    assert kind in (*PLUGIN_KINDS, "cmake")
    inside = _PACKAGE / kind
    return inside if inside.is_dir() else _PACKAGE.parent / kind


def plugin_dirs(kind: str, extra: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Folders with plug-ins of a kind. The user's come first, so that they override the shipped ones."""
    for root in plugin_roots(extra):
        if (root / kind).is_dir():
            yield root / kind
    yield builtin_dir(kind)


def plugin_roots(extra: tuple[Path, ...] = ()) -> tuple[Path, ...]:
    """The user's plug-in folders: those of the options, then those of the environment."""
    return tuple(dict.fromkeys((*extra, *settings.read().plugins)))


def plugin_options(folders: Iterable[Path | str]) -> str:
    """Plug-in folders as options, quoted for a shell."""
    return shlex.join(word for folder in folders for word in ("--plugins", str(folder)))


def command(*words: Path | str, plugins: Iterable[Path | str] = ()) -> str:
    """A tensorop command line, quoted for a shell. plugins: the user's folders."""
    return " ".join(filter(None, (shlex.join(["tensorop", *map(str, words)]), plugin_options(plugins))))


def shipped(path: Path) -> bool:
    """Whether a plug-in ships with tensorop."""
    return any(builtin_dir(kind) in path.parents for kind in PLUGIN_KINDS)


def cache_dir(*parts: str) -> Path:
    """A folder in the user's cache; created if absent."""
    path = settings.read().cache.joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path
