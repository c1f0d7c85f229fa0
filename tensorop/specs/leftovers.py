"""Finds files in plug-in folders that are not used, so that no file is ignored without a remark."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from tensorop import paths
from tensorop.specs import catalog
from tensorop.specs.operators import KERNELS, TEMPLATE_SUFFIX

MOST = 12  # remarks; further ones are only counted
FILES = {kind: suffix for kind, suffix in catalog.SUFFIX.items() if suffix}
_BESIDE = {"platforms": ("published", "winners")}  # folders that may be there
_PAPERS = (".md", ".txt", ".rst")


def remarks(plugins: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """A sentence for each file or folder that is not used, and for each template that replaces a shipped one."""
    roots = paths.plugin_roots(plugins)
    found = [remark for number, root in enumerate(roots) for remark in _of(root, roots[:number])]
    more = [f"{len(found) - MOST} more of the kind"] if len(found) > MOST else []
    return (*found[:MOST], *more)


def _of(root: Path, before: tuple[Path, ...]) -> Iterator[str]:
    kinds = [kind for kind in paths.PLUGIN_KINDS if (root / kind).is_dir()]
    if not kinds:
        yield f"{root}: no plug-in is read from here; expected one of the folders {', '.join(paths.PLUGIN_KINDS)}"
    for path in _entries(root):
        near = difflib.get_close_matches(path.name, paths.PLUGIN_KINDS, n=1, cutoff=0.8)
        if path.is_dir() and near and path.name not in paths.PLUGIN_KINDS:
            yield f"{path}: not used; did you mean {near[0]}/?"
        elif path.is_file() and path.name.endswith((*FILES.values(), TEMPLATE_SUFFIX)):
            yield f"{path}: not used; plug-ins lie in the folders {', '.join(paths.PLUGIN_KINDS)}"
    for kind, suffix in FILES.items():
        for path in _entries(root / kind):
            if path.is_dir() and path.name in _BESIDE.get(kind, ()):
                continue
            if path.is_dir() or path.suffix != suffix:
                yield f"{path}: not used; expected NAME{suffix}"
            elif any((other / kind / path.name).is_file() for other in before):
                yield f"{path}: not used; a folder named before it has one of this name"
    for folder in _entries(root / "templates"):
        yield from _template(folder, before)


def _template(folder: Path, before: tuple[Path, ...]) -> Iterator[str]:
    name = folder.name
    if not folder.is_dir():
        yield f"{folder}: not used; expected a folder for each operator"
        return
    if (folder / "operator.yaml").is_file():
        if any((other / "templates" / name / "operator.yaml").is_file() for other in before):
            yield f"{folder}: not used; a folder named before it has this operator"
        return
    if name not in catalog.names("templates", (*before, folder.parents[1])):
        yield f"{folder}: not used; it has no operator.yaml, and there is no operator '{name}' to add templates to"
        return
    shipped = paths.builtin_dir("templates") / name / KERNELS
    for path in _entries(folder):
        if path.name != KERNELS or not path.is_dir():
            yield f"{path}: not used; beside an operator that is elsewhere only {KERNELS}/NAME{TEMPLATE_SUFFIX} is read"
            continue
        for template in _entries(path):
            if template.is_dir() or not template.name.endswith(TEMPLATE_SUFFIX):
                yield f"{template}: not used; expected NAME{TEMPLATE_SUFFIX}"
            elif any((other / "templates" / name / KERNELS / template.name).is_file() for other in before):
                yield f"{template}: not used; a folder named before it has a template of this name"
            elif (shipped / template.name).is_file():
                yield f"{template}: stands before the shipped template of this name"


def _entries(folder: Path) -> Iterator[Path]:
    """Entries of a folder without hidden files, documents, and names that start with `_`."""
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            name = path.name
            if not name.startswith((".", "_")) and path.suffix not in _PAPERS and name not in ("LICENSE", "Makefile"):
                yield path
