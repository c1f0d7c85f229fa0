"""Finds plug-ins by file name: the user's folders first, then the shipped ones."""

from __future__ import annotations

from pathlib import Path

from tensorop.errors import unknown_name
from tensorop.paths import plugin_dirs

SUFFIX = {"platforms": ".yaml", "primitives": ".yaml", "templates": "", "tuners": ".py", "backends": ".py"}
_NOT_ONE = ("_", "calibration-")  # what may be beside plug-ins
_LONGEST = 200  # bytes of a name, which with its suffix is still a file's
_CALLED = {"primitives": "primitive set", "templates": "operator"}


def names(kind: str, plugins: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """All names of a kind, sorted."""
    found: set[str] = set()
    for folder in plugin_dirs(kind, plugins):
        if kind == "templates":
            found |= {p.name for p in folder.iterdir() if (p / "operator.yaml").is_file()}
        else:
            found |= {p.stem for p in folder.glob(f"*{SUFFIX[kind]}") if not p.name.startswith(_NOT_ONE)}
    return tuple(sorted(found))


def find(kind: str, name: str, plugins: tuple[Path, ...] = ()) -> Path:
    """The file (or, for an operator, the folder) behind a name; raises UsageError with the nearest names."""
    if "/" not in name and name not in ("", ".", "..") and name.isprintable() and len(name.encode()) <= _LONGEST:
        for folder in plugin_dirs(kind, plugins):
            path = folder / f"{name}{SUFFIX[kind]}"
            if path.is_file() or (kind == "templates" and (path / "operator.yaml").is_file()):
                return path
    raise unknown_name(_CALLED.get(kind, kind[:-1]), name, names(kind, plugins))
