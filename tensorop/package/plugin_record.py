"""The plug-ins in a manifest: the folders a product was made with, and its platform as YAML.

A manifest may be untrusted text. If a product is opened without its plug-ins, a message shows the folders; nothing here
reads or loads them. The platform is checked against its schema, so that the product can be judged later.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tensorop import paths
from tensorop.errors import JobError, SpecError, UnknownName, UsageError
from tensorop.model.job import Job
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.package.manifest import read
from tensorop.specs import catalog, platforms, primitives, yamltext
from tensorop.specs.printable import one_line
from tensorop.store import durable

FOLDERS = "plugin_folders"
CARRIED = "plugins"
_CARRIED_FILE = re.compile(r"(platforms|primitives)/([A-Za-z0-9][A-Za-z0-9_.+-]{0,99})\.yaml")
_MOST_FILES = 64
_LONGEST = 300  # characters of a folder's name in a message


def folders(job: Job, operator: Operator, platform: Platform, backend: str) -> dict[str, dict[str, str]]:
    """The manifest's entry of plug-ins: each that the product uses, as `templates/NAME`, with its folder.

    The folder is as the user gave it.
    """
    wanted = {
        "templates": (operator.name, *(folder.name for folder in operator.uses)),
        "platforms": platform.lineage,
        "primitives": tuple(one.name for one in platform.primitives),
        "tuners": (job.tuner,),
        "backends": (backend, platform.runner),
        "policies": (job.policy,),
    }
    roots = {
        f"{kind}/{name}": catalog.root(kind, name, job.plugins) for kind, names in wanted.items() for name in names
    }
    found = {name: str(root) for name, root in roots.items() if root is not None}
    return {FOLDERS: found} if found else {}


def kept(manifest: Mapping[str, object]) -> dict[str, object]:
    """The plug-in folders in a manifest, for the manifest of the same product made again."""
    return {FOLDERS: manifest[FOLDERS]} if FOLDERS in manifest else {}


@contextlib.contextmanager
def explained(manifest: Path | None, plugins: tuple[Path, ...]) -> Iterator[None]:
    """Adds the product's recorded plug-in folder to an error about a name that no plug-in folder has.

    manifest: the product's; None for a library outside of a product.
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
    return kind in ("tuners", "policies") or name in catalog.names(kind, plugins)  # a finished product needs no tuner


def _recorded(manifest: Path | None) -> dict[str, str]:
    """The plug-in folders in a manifest as printable text; {} if it has none."""
    try:
        named = {} if manifest is None else read(manifest).get(FOLDERS, {})
        found = [(name, folder) for name, folder in named.items() if isinstance(folder, str) and folder]
    except (OSError, ValueError, AttributeError, JobError):
        return {}  # code that needs the manifest reports its faults
    kinds = paths.PLUGIN_KINDS
    return {name: one_line(folder, _LONGEST) for name, folder in found if name.partition("/")[0] in kinds}


def carried(platform: Platform) -> dict[str, dict[str, str]]:
    """The manifest's entry with the files of a platform and primitive sets that come from plug-ins, by file name."""
    own = {f"platforms/{platform.name}.yaml": platform.whole}
    own |= {f"primitives/{one.name}.yaml": one.whole for one in platform.primitives}
    documents = {name: whole for name, whole in own.items() if whole}
    return {CARRIED: documents} if documents else {}


def reopened(manifest: Path, plugins: tuple[Path, ...]) -> tuple[Path, ...]:
    """The plug-in folders to judge a product with: the user's, then one with the files in its manifest.

    Only YAML that matches its schema is taken from a manifest, never Python. Raises SpecError that names the manifest,
    JobError for one of another version.
    """
    try:
        documents = read(manifest).get(CARRIED)
    except (OSError, ValueError):
        return plugins  # code that needs the manifest reports its faults
    if documents is None:
        return plugins
    _check(documents, manifest)
    folder = _unpacked(documents)
    out = (*paths.plugin_roots(plugins), folder)
    with explained(manifest, out):
        for name in documents:
            kind, _, stem = name.removesuffix(".yaml").partition("/")
            try:
                platforms.load(stem, out) if kind == "platforms" else primitives.load(stem, out)
            except SpecError as error:
                raise SpecError(f"{manifest}: key '{CARRIED}.{name}': {error.message}", hint=error.hint) from error
    return out


def _check(documents: Any, manifest: Path) -> None:
    if not isinstance(documents, Mapping):
        raise SpecError(f"{manifest}: key '{CARRIED}': expected a mapping of files, got {documents!r:.80}")
    if len(documents) > _MOST_FILES:
        raise SpecError(f"{manifest}: key '{CARRIED}': expected at most {_MOST_FILES} files, got {len(documents)}")
    for name, text in documents.items():
        match = _CARRIED_FILE.fullmatch(name)
        if match is None or not isinstance(text, str):
            raise SpecError(
                f"{manifest}: key '{CARRIED}': expected platforms/NAME.yaml and primitives/NAME.yaml, got {name!r:.80}"
            )
        yamltext.parse(text, f"{manifest}: {CARRIED}.{name}")
        if match[1] == "platforms":
            platforms.check_whole(text, match[2], f"{manifest}: {CARRIED}.{name}")


def _unpacked(documents: Mapping[str, str]) -> Path:
    """A plug-in folder in the cache, named by the digest of its contents."""
    digest = hashlib.sha256(json.dumps(dict(documents), sort_keys=True).encode()).hexdigest()[:24]
    root = paths.cache_dir("carried", digest)
    for name, text in documents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        durable.replace(path, text)
    return root
