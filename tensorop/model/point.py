"""A point of a search space: one value for each tunable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Value = int | str


def identity(*parts: Any) -> str:
    """A hash of JSON values as 16 hexadecimal digits; it is equal in all processes."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Point(Mapping[str, Value]):
    """Tunable -> value; hashable, ordered by name, prints as `mr=2 nr=8`."""

    pairs: tuple[tuple[str, Value], ...]

    @staticmethod
    def of(values: Mapping[str, Value] | None = None, /, **more: Value) -> Point:
        return Point(tuple(sorted({**(values or {}), **more}.items())))

    def __getitem__(self, key: str) -> Value:
        for name, value in self.pairs:
            if name == key:
                return value
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.pairs)

    def to_json(self) -> str:
        return json.dumps(dict(self.pairs), sort_keys=True, separators=(",", ":"))
