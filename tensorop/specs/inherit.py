"""Resolves a platform's board model: merges `model:` sections over those of parents, and adds the `caches:`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tensorop import subpackages
from tensorop.errors import SpecError
from tensorop.model.platform import Cache
from tensorop.specs import admitted, yamlfile
from tensorop.specs.board import BoardModel
from tensorop.specs.board_alternative import heirs

_WHOLE = ("value", "m1", "like")  # mappings with one of these keys are replaced whole
# keys that change no modelled cycles
_LABELS = ("name", "version", "calibrated", "description", "source", "shared_by", "alternatives", "indicative")
MODELLED = 2  # cache levels in native/plugin/memory.c; farther memory is one latency and one interval
_SIZES = tuple(f"l{number + 1}" for number in range(MODELLED))


@dataclass(frozen=True)
class PlatformFile:
    """A platform file, or that of one of its ancestors."""

    name: str
    path: Path
    data: Mapping[str, object]


class _Caches(BaseModel):
    """A file's `caches:`, from the core outwards."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    caches: tuple[Cache, ...] = Field(min_length=1, strict=False)


class _Modelled(BaseModel):
    """A wrapper for validation, so that errors have the file's own keys."""

    model_config = ConfigDict(frozen=True)

    model: BoardModel


def levels_of(data: dict[str, object], path: Path) -> tuple[Cache, ...]:
    """A file's cache levels, innermost first. Raises SpecError with file and key."""
    given = data["caches"]
    if not isinstance(given, list):
        raise SpecError(
            f"{path}: key 'caches': expected a list of levels, the innermost first, such as "
            f"[{{size: 32768, ways: 8, line: 64}}], got {given!r:.80}"
        )
    return yamlfile.validate(_Caches, data, str(path)).caches


def _modelled(levels: Sequence[Cache], path: Path) -> tuple[Cache, ...]:
    """The cache levels that a board model simulates. Raises SpecError if it cannot index them."""
    if len(levels) < MODELLED:
        raise SpecError(
            f"{path}: key 'caches': expected at least {MODELLED} levels, which the board model needs, got {len(levels)}"
        )
    for number, level in enumerate(levels[:MODELLED]):
        for name, value in (("sets", level.sets), ("line", level.line)):
            if value & (value - 1):
                raise SpecError(
                    f"{path}: key 'caches.{number}': expected a power of two of {name} in a level that the board model "
                    f"has, got {value} ({level.size} bytes, {level.ways} ways, lines of {level.line})"
                )
    return tuple(levels[:MODELLED])


def resolve(files: Sequence[PlatformFile]) -> dict[str, object] | None:
    """The complete `model:` section of the last file; None if no file has one. files: the root first

    A section with `complete: true` inherits nothing. One that changes a number is a model of its own: it is not
    calibrated, and its default name is `NAME, after PARENT 4`. The levels of `caches:` become memory.l1 and memory.l2.
    Raises SpecError with file, key and the expected value.
    """
    section: dict[str, object] | None = None
    levels: tuple[Cache, ...] = ()
    for file in files:
        if "caches" in file.data:
            levels = levels_of(dict(file.data), file.path)
        own = file.data.get("model", {})
        if own is None:
            section = None
            continue
        if not isinstance(own, Mapping):
            raise SpecError(f"{file.path}: key 'model': expected a mapping of keys, got {own!r:.80}")
        if own or (section is not None and "caches" in file.data):
            section = _heir(file, own, levels, section)
        fitted = file.data.get("calibration")
        if section is not None and isinstance(fitted, str):
            if complaint := next(admitted.beside(fitted), None):
                raise SpecError(f"{file.path}: key 'calibration': {complaint}")
            constants = subpackages.require("calibration", "constants", f"{file.path}: key 'calibration'")
            section = constants.apply(section, file.path.parent / fitted)
    return section


def without_sizes(section: Mapping[str, object]) -> dict[str, object]:
    """A resolved section in the form for a file with `caches:`."""
    memory: Any = section["memory"]
    return {**section, "memory": {key: value for key, value in memory.items() if key not in _SIZES}}


def _heir(
    file: PlatformFile, own: Mapping[str, object], levels: Sequence[Cache], parent: dict[str, object] | None
) -> dict[str, object]:
    memory = own.get("memory")
    for size in _SIZES:
        if isinstance(memory, Mapping) and size in memory:
            raise SpecError(
                f"{file.path}: unknown key 'model.memory.{size}'; a model takes the sizes of its caches from the "
                "platform",
                hint="give them under the top-level key `caches`",
            )
    changed = {key: value for key, value in own.items() if key != "complete"}
    alone = parent is None or own.get("complete", False)
    if own.get("complete") not in (None, True, False):
        raise SpecError(f"{file.path}: key 'model.complete': expected true or false, got {own['complete']!r}")
    made = changed if alone or parent is None else _over(changed, parent, f"{file.path}: key 'model")
    simulated = _modelled(levels, file.path)
    sizes = {name: asdict(level) for name, level in zip(_SIZES, simulated, strict=True)}
    if isinstance(memory := made.get("memory"), Mapping):
        made = {**made, "memory": {**memory, **sizes}}
    if parent is not None and not alone:
        made |= heirs(made, changed)
        made |= _own_name(file.name, changed, made, parent)
    yamlfile.validate(_Modelled, {"model": made}, str(file.path))
    return made


def _own_name(
    platform: str, changed: Mapping[str, object], made: Mapping[str, object], parent: Mapping[str, object]
) -> dict[str, object]:
    """Name, version and description of a child's model, if it differs from its parent's."""
    changes = tuple(_changes(made, parent))
    if not changes:
        return {"version": 1} if "name" in changed and "version" not in changed else {}
    first, comma, others = str(parent["name"]).partition(", after ")
    after = f"{first} {parent['version']}{comma}{others}"
    return {
        "name": changed.get("name", f"{platform}, after {after}"),
        "version": changed.get("version", 1),
        "calibrated": False,
        "description": changed.get("description", f"As {after}, but for {', '.join(changes)}"),
    }


def _over(child: Mapping[str, object], parent: Mapping[str, object], where: str) -> dict[str, object]:
    out = dict(parent)
    for key, value in child.items():
        under = parent.get(key)
        if not isinstance(value, Mapping) or not isinstance(under, Mapping) or any(k in value for k in _WHOLE):
            out[key] = value
            continue
        if "source" in under and value and "source" not in value:
            raise SpecError(
                f"{where}.{key}.source': expected the source of the numbers that differ from the parent's, got none"
            )
        out[key] = _over(value, under, f"{where}.{key}")
    return out


def _changes(made: Any, parent: Any, prefix: str = "") -> Iterator[str]:
    """Dotted keys of the constants and other values that differ, without labels."""
    if not isinstance(made, Mapping) or not isinstance(parent, Mapping):
        if made != parent:
            yield prefix
        return
    kept = [key for key in dict.fromkeys((*parent, *made)) if key not in _LABELS]
    inner = [
        change for key in kept for change in _changes(made.get(key), parent.get(key), f"{prefix}.{key}".strip("."))
    ]
    yield from [prefix] if inner and any(key in made for key in _WHOLE) else inner
