"""`caches:` of a platform file: the levels from the core outwards, the one place of their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tensorop.errors import SpecError
from tensorop.specs import yamlfile
from tensorop.specs.yamlfile import Record

MODELLED = 2  # levels that native/plugin/memory.c has; what is beyond is one latency and one interval


class CacheSpec(Record):
    """One level: size in bytes of the whole cache, ways, line in bytes, cores that share it, where that is written."""

    size: int = Field(gt=0, le=1 << 34)
    ways: int = Field(gt=0, le=1 << 16)
    line: int = Field(default=64, gt=0, le=1 << 16)
    shared_by: int = Field(default=1, gt=0, le=1 << 16)
    source: str = ""

    @model_validator(mode="after")
    def _check(self) -> CacheSpec:
        if self.size % (self.ways * self.line):
            raise ValueError(
                f"rule: expected ways x sets x line = size with a whole number of sets, got {self.ways} ways of lines "
                f"of {self.line} bytes in {self.size} bytes ({self.size / (self.ways * self.line):.2f} sets)"
            )
        return self

    @property
    def sets(self) -> int:
        return self.size // (self.ways * self.line)


class Caches(BaseModel):
    """The key of a file."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    caches: tuple[CacheSpec, ...] = Field(min_length=1, strict=False)


def check(data: dict[str, Any], path: Path) -> tuple[CacheSpec, ...]:
    """The levels that a file names, the innermost first. Raises SpecError naming the file and the key."""
    given = data["caches"]
    if not isinstance(given, list):
        raise SpecError(
            f"{path}: key 'caches': expected a list of levels, the innermost first, such as "
            f"[{{size: 32768, ways: 8, line: 64}}], got {given!r:.80}"
        )
    return yamlfile.validate(Caches, data, str(path)).caches


def modelled(levels: Sequence[CacheSpec], path: Path) -> tuple[CacheSpec, ...]:
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
