"""Finds plug-ins by file name, first in the user's folders, then among the shipped ones."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

from tensorop import subpackages
from tensorop.errors import SpecError, UsageError, unknown_name
from tensorop.paths import plugin_dirs, plugin_roots

SUFFIX = {
    "platforms": ".yaml", "primitives": ".yaml", "templates": "", "tuners": ".py", "backends": ".py", "policies": ".py",
}  # fmt: skip
_NOT_ONE = ("_", "calibration-")  # prefixes of other files in these folders
_MOST = 4096  # entries of a plug-in folder
_LONGEST = 200  # bytes of a name; with its suffix it must fit a file name
_CALLED = {"primitives": "primitive set", "templates": "operator", "policies": "policy"}


def names(kind: str, plugins: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """All names of a kind, sorted."""
    found: set[str] = set()
    for folder in plugin_dirs(kind, plugins):
        there = [folder / one.name for one in itertools.islice(os.scandir(folder), _MOST + 1)]
        if len(there) > _MOST:
            raise SpecError(f"{folder}: expected a folder of plug-ins with at most {_MOST} files, got more")
        named = [path for path in there if path.name.isprintable()]  # names must be printable
        if kind == "templates":
            found |= {path.name for path in named if (path / "operator.yaml").is_file()}
        else:
            found |= {p.stem for p in named if p.suffix == SUFFIX[kind] and not p.name.startswith(_NOT_ONE)}
    if kind == "backends":
        found |= {name for name in subpackages.BACKENDS if subpackages.file(name, "backend").is_file()}
    return tuple(sorted(found))


def find(kind: str, name: str, plugins: tuple[Path, ...] = ()) -> Path:
    """The file of a plug-in; for an operator its folder. Raises UsageError with the nearest names.

    For a backend in a sub-package it is the file's path even if the sub-package is absent.
    """
    if "/" not in name and name not in ("", ".", "..") and name.isprintable() and len(name.encode()) <= _LONGEST:
        for folder in plugin_dirs(kind, plugins):
            path = folder / f"{name}{SUFFIX[kind]}"
            file = path / "operator.yaml" if kind == "templates" else path
            if file.is_file():
                return path
            if os.path.lexists(file):
                what = "no regular file" if file.exists() else "a link to nothing"
                raise SpecError(f"{file}: cannot be read: it is {what}", hint="delete it, or put the file there")
    if kind == "backends" and name in subpackages.BACKENDS:
        return subpackages.file(name, "backend")
    unknown = unknown_name(_CALLED.get(kind, kind[:-1]), name, names(kind, plugins), f"{kind}/{name}")
    if useless := [str(one) for one in plugin_roots(plugins) if not any((one / of).is_dir() for of in SUFFIX)]:
        unknown.hint = f"{' and '.join(useless)}: no folder {kind}/ in it; {unknown.hint}"
    raise unknown


def named(kind: str, name: str, plugins: tuple[Path, ...], asker: Path, key: str) -> Path:
    """As `find` for the name at a key of a file. Raises SpecError with file and key."""
    try:
        return find(kind, name, plugins)
    except UsageError as error:
        raise SpecError(f"{asker}: key '{key}': {error.message}", hint=error.hint) from error


def root(kind: str, name: str, plugins: tuple[Path, ...] = ()) -> Path | None:
    """The plug-in folder (as given) that has the plug-in; None for a shipped one. Raises as `find`."""
    folder = find(kind, name, plugins).parent
    return next((root for root in plugin_roots(plugins) if root / kind == folder), None)


def folders(plugins: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """Converts plug-in folders from Python code: one or several, texts or paths.

    Raises UsageError for a path that is no folder.
    """
    try:
        found = tuple(map(Path, [plugins] if isinstance(plugins, str | os.PathLike) else plugins))
    except TypeError:
        raise UsageError(
            f"plugins must be a folder or a list of folders; got {plugins!r}", hint='e.g. plugins="mine"'
        ) from None
    for folder in found:
        if not folder.is_dir():
            raise UsageError(f"the plug-in folder {folder} does not exist", hint="check the path, or remove --plugins")
    return found
