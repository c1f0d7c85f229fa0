"""The plug-in folders that a product was made with: recorded in its manifest, and named to whoever opens it without.

A manifest may be anybody's text. What it names is shown in a message; nothing here reads or loads such a folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tensorop import paths
from tensorop.errors import UnknownName, UsageError
from tensorop.model.job import Job
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.specs import catalog, files, jsontext
from tensorop.specs.printable import one_line

KEY = "plugin_folders"
_LONGEST = 300  # characters of a folder's name that a message shows


def folders(job: Job, operator: Operator, platform: Platform, backend: str) -> dict[str, dict[str, str]]:
    """What the manifest gains: each plug-in that the product was made with, as `templates/NAME`, with its folder as the
    user gave it."""
    wanted = {
        "templates": (operator.name, *(folder.name for folder in operator.uses)),
        "platforms": platform.lineage,
        "primitives": tuple(one.name for one in platform.primitives),
        "tuners": (job.tuner,),
        "backends": (backend, platform.runner),
    }
    roots = {
        f"{kind}/{name}": catalog.root(kind, name, job.plugins) for kind, names in wanted.items() for name in names
    }
    found = {name: str(root) for name, root in roots.items() if root is not None}
    return {KEY: found} if found else {}


def kept(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest says of plug-in folders, for that of the same product made again."""
    return {KEY: manifest[KEY]} if KEY in manifest else {}


@contextlib.contextmanager
def explained(manifest: Path | None, plugins: tuple[Path, ...]) -> Iterator[None]:
    """Within it, an error about a name that no plug-in folder has says which folder the product was made with.

    manifest: the product's, None for a library outside of a product.
    """
    try:
        yield
    except UsageError as error:
        unknown = _unknown(error)
        if unknown is not None and unknown.plugin is not None:
            _explain(error, unknown.plugin, _recorded(manifest), plugins)
        raise


def _unknown(error: BaseException | None) -> UnknownName | None:
    """The unknown name behind an error."""
    while error is not None and not isinstance(error, UnknownName):
        error = error.__cause__
    return error


def _explain(error: UsageError, plugin: str, recorded: Mapping[str, str], plugins: tuple[Path, ...]) -> None:
    if plugin not in recorded:
        error.hint = f"where it is a plug-in, give its folder: --plugins DIR, from Python plugins=['DIR']; {error.hint}"
        return
    needed = dict.fromkeys(folder for name, folder in recorded.items() if not _found(name, plugins))
    error.message += f": this product was made with {plugin} of the plug-in folder '{recorded[plugin]}'"
    error.hint = (
        f"give {paths.plugin_options(needed)}, from Python plugins={list(needed)}, or where that is now; "
        "Python code of a plug-in folder runs here, so give only one that you trust"
    )


def _found(plugin: str, plugins: tuple[Path, ...]) -> bool:
    kind, _, name = plugin.partition("/")
    return kind == "tuners" or name in catalog.names(kind, plugins)  # a finished product needs no tuner


def _recorded(manifest: Path | None) -> dict[str, str]:
    """What a manifest says, as text that may be shown; {} where it says nothing of the kind."""
    try:
        told = {} if manifest is None else jsontext.loads(files.read(manifest, files.JSON)).get(KEY, {})
        found = [(name, folder) for name, folder in told.items() if isinstance(folder, str) and folder]
    except (OSError, ValueError, AttributeError):
        return {}  # who needs the manifest says what is wrong with it
    kinds = paths.PLUGIN_KINDS
    return {name: one_line(folder, _LONGEST) for name, folder in found if name.partition("/")[0] in kinds}
