"""Alternatives of a board model: behaviours of the core that its best fit does not assume.

A constant has a range; a behaviour is either present or not. If no source settles a behaviour, the model declares it as
an alternative to its own choice, which remains the best fit. Results are reported under each alternative too, but are
not part of the interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field

from tensorop.specs.yamlfile import Record

# Dotted keys of a model that an alternative can set to 1 or 0. FP and vector loads that stop issue on a miss have no
# switch: no such core is known.
SWITCHES = (
    "core.load_miss_stops",
    "memory.l1_prefetch.present",
    "memory.l1_prefetch.scalar_only",
    "memory.l2_prefetch.present",
    "memory.l2_prefetch.scalar_only",
)


class Alternative(Record):
    """One behaviour, or several that occur together."""

    meaning: str = Field(min_length=1)  # the behaviour, in words
    change: dict[str, int] = Field(min_length=1)  # dotted key of the model (SWITCHES) -> 1 or 0
    for_: str = Field(alias="for", min_length=1)  # evidence for it
    against: str = Field(min_length=1)  # evidence against it
    # micro-benchmarks whose cycles differ between the alternative and the best fit
    settled_by: tuple[str, ...] = Field(min_length=1, strict=False)


def refused(name: str, alternative: Alternative, model: Any) -> str | None:
    """The rule that an alternative of a model (specs.board.BoardModel) breaks, or None."""
    if any(mark in name for mark in ".\n") or not name.strip():
        return f"the name of an alternative is words without a full stop, got {name!r}"
    for key, value in alternative.change.items():
        if key not in SWITCHES or value not in (0, 1):
            return f"alternative '{name}' changes {', '.join(SWITCHES)} to 0 or 1, got {key}: {value}"
        section, _, part = key.partition(".")
        owner = part.partition(".")[0]
        if section == "memory" and getattr(model.memory, owner) is None:
            return f"alternative '{name}' changes a prefetcher the model has, got {key}"
        if section == "core" and model.pipeline == "ooo" and value:
            return f"alternative '{name}': {key} is of cores that issue in order"
    return None


def heirs(section: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """The alternatives of a child's merged `model:` section.

    They are its own, except those set to null, and those of its parent if the child has the keys that they change.

    changed: the section of the child's file
    """
    own = changed.get("alternatives") or {}
    found = section.get("alternatives") or {}
    kept = {name: part for name, part in found.items() if part is not None and (name in own or _applies(part, section))}
    return {"alternatives": kept} if found else {}


def _applies(part: Mapping[str, Any], section: Mapping[str, Any]) -> bool:
    for key in part["change"]:
        place, owner = key.split(".")[:2]
        if place == "memory" and section["memory"].get(owner) is None:
            return False
        if place == "core" and section["pipeline"] != "inorder":
            return False
    return True


def switched(section: Mapping[str, Any], names: Iterable[str], source: str) -> dict[str, Any]:
    """A `model:` section in which these alternatives are part of the best fit.

    source: evidence for them
    """
    out, left = dict(section), dict(section.get("alternatives") or {})
    for name in names:
        for key, value in left.pop(name)["change"].items():
            plain = key.endswith(".scalar_only")
            out = put(out, key.split("."), bool(value) if plain else {"value": value, "source": source})
    return {**out, "alternatives": left} if "alternatives" in section else out


def put(section: Mapping[str, Any], keys: Sequence[str], made: Any) -> dict[str, Any]:
    """A copy with `made` at the place `keys`. Mappings that YAML anchors share are copied too."""
    first, *rest = keys
    return {**section, first: put(section.get(first) or {}, rest, made) if rest else made}
