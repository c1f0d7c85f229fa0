"""The platform of a product made with plug-ins: it travels in the manifest, so that the product can be judged later."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorop import paths
from tensorop.errors import SpecError
from tensorop.model.platform import Platform
from tensorop.package import plugged
from tensorop.specs import files, jsontext, platforms, primitives, yamltext
from tensorop.store import durable

KEY = "plugins"
_FILE = re.compile(r"(platforms|primitives)/([A-Za-z0-9][A-Za-z0-9_.+-]{0,99})\.yaml")
_MOST = 64  # files


def collect(platform: Platform) -> dict[str, dict[str, str]]:
    """What the manifest gains: the platform as one whole file, and primitive sets that are not ours; by file name."""
    own = {f"platforms/{platform.name}.yaml": platform.whole}
    own |= {f"primitives/{one.name}.yaml": one.whole for one in platform.primitives}
    told = {name: whole for name, whole in own.items() if whole}
    return {KEY: told} if told else {}


def reopened(manifest: Path, plugins: tuple[Path, ...]) -> tuple[Path, ...]:
    """The plug-in folders a product is judged with: the user's own, then one with what its manifest carries.

    Only YAML comes out of a manifest, held against its schema; no Python. Raises SpecError naming the manifest.
    """
    try:
        told = jsontext.loads(files.read(manifest, files.JSON)).get(KEY)
    except (OSError, ValueError, AttributeError):
        return plugins  # who needs the manifest says what is wrong with it
    if told is None:
        return plugins
    _check(told, manifest)
    folder = _unpacked(told)
    out = (*paths.plugin_roots(plugins), folder)
    with plugged.explained(manifest, out):
        for name in told:
            kind, _, stem = name.removesuffix(".yaml").partition("/")
            try:
                platforms.load(stem, out) if kind == "platforms" else primitives.load(stem, out)
            except SpecError as error:
                raise SpecError(f"{manifest}: key '{KEY}.{name}': {error.message}", hint=error.hint) from error
    return out


def _check(told: Any, manifest: Path) -> None:
    if not isinstance(told, Mapping):
        raise SpecError(f"{manifest}: key '{KEY}': expected a mapping of files, got {told!r:.80}")
    if len(told) > _MOST:
        raise SpecError(f"{manifest}: key '{KEY}': expected at most {_MOST} files, got {len(told)}")
    for name, text in told.items():
        match = _FILE.fullmatch(name)
        if match is None or not isinstance(text, str):
            raise SpecError(
                f"{manifest}: key '{KEY}': expected platforms/NAME.yaml and primitives/NAME.yaml, got {name!r:.80}"
            )
        yamltext.parse(text, f"{manifest}: {KEY}.{name}")
        if match[1] == "platforms":
            platforms.check_whole(text, match[2], f"{manifest}: {KEY}.{name}")


def _unpacked(told: Mapping[str, str]) -> Path:
    """A plug-in folder in the cache, named by what it holds."""
    digest = hashlib.sha256(json.dumps(dict(told), sort_keys=True).encode()).hexdigest()[:24]
    root = paths.cache_dir("carried", digest)
    for name, text in told.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        durable.replace(path, text)
    return root
