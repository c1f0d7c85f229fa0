"""`caches:` of a platform file: the levels from the core outwards, the one place of their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from tensorop.errors import SpecError
from tensorop.model.platform import Cache
from tensorop.specs import yamlfile

MODELLED = 2  # levels that native/plugin/memory.c has; what is beyond is one latency and one interval


class Caches(BaseModel):
    """The key of a file."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    caches: tuple[Cache, ...] = Field(min_length=1, strict=False)


def check(data: dict[str, object], path: Path) -> tuple[Cache, ...]:
    """The levels that a file names, the innermost first. Raises SpecError naming the file and the key."""
    given = data["caches"]
    if not isinstance(given, list):
        raise SpecError(
            f"{path}: key 'caches': expected a list of levels, the innermost first, such as "
            f"[{{size: 32768, ways: 8, line: 64}}], got {given!r:.80}"
        )
    return yamlfile.validate(Caches, data, str(path)).caches


def modelled(levels: Sequence[Cache], path: Path) -> tuple[Cache, ...]:
    """The levels that a board model simulates. Raises SpecError where the simulation could not index them."""
    if len(levels) < MODELLED:
        raise SpecError(
            f"{path}: key 'caches': expected at least {MODELLED} levels, which the board model has, got {len(levels)}"
        )
    for number, level in enumerate(levels[:MODELLED]):
        for name, value in (("sets", level.sets), ("line", level.line)):
            if value & (value - 1):
                raise SpecError(
                    f"{path}: key 'caches.{number}': expected a power of two of {name} in a level that the board model "
                    f"has, got {value} ({level.size} bytes, {level.ways} ways, lines of {level.line})"
                )
    return tuple(levels[:MODELLED])
