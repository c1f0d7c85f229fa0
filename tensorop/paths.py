"""Where things lie: plug-in folders, the package's C files, the cache."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from tensorop import settings

PLUGIN_KINDS = ("platforms", "primitives", "templates", "tuners", "backends")

_PACKAGE = Path(__file__).resolve().parent


def package_dir() -> Path:
    """The folder of the package tensorop."""
    return _PACKAGE


def native_dir() -> Path:
    """The folder of the harness's and the plug-in's C files."""
    return _PACKAGE / "native"


def builtin_dir(kind: str) -> Path:
    """The shipped folder of a kind: inside the package in a wheel, else beside it in a checkout."""
    assert kind in (*PLUGIN_KINDS, "cmake")
    inside = _PACKAGE / kind
    return inside if inside.is_dir() else _PACKAGE.parent / kind


def plugin_dirs(kind: str, extra: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Folders to look for plug-ins of a kind, the user's first, so that a user's file overrides ours."""
    for root in plugin_roots(extra):
        if (root / kind).is_dir():
            yield root / kind
    yield builtin_dir(kind)


def plugin_roots(extra: tuple[Path, ...] = ()) -> tuple[Path, ...]:
    """The user's own folders: those given, then those of the environment."""
    return tuple(dict.fromkeys((*extra, *settings.read().plugins)))


def plugin_options(folders: Iterable[Path | str]) -> str:
    """The options that give plug-in folders, as a shell reads them."""
    return shlex.join(word for folder in folders for word in ("--plugins", str(folder)))


def command(*words: Path | str, plugins: Iterable[Path | str] = ()) -> str:
    """A command line of ours as a shell reads it. plugins: the folders that the user gave."""
    return " ".join(filter(None, (shlex.join(["tensorop", *map(str, words)]), plugin_options(plugins))))


def shipped(path: Path) -> bool:
    """Whether a plug-in is one of ours."""
    return any(builtin_dir(kind) in path.parents for kind in PLUGIN_KINDS)


def cache_dir(*parts: str) -> Path:
    """A folder below the user's cache, made when absent."""
    path = settings.read().cache.joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path
