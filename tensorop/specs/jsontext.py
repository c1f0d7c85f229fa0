"""Parses untrusted JSON to plain data. All faults raise ValueError, and all numbers are finite."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from tensorop.errors import JobError

MAX_INTEGER = 1 << 63
MAX_VALUES = 1_000_000  # in one text; estimated by its punctuation before parsing


def loads(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises ValueError for invalid JSON, deep nesting, numbers beyond 64 bits or not finite, and too many values.
    """
    require_few(text)
    try:
        return json.loads(text, parse_constant=_refused, parse_float=_real, parse_int=_integer)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def is_schema(found: object, version: int) -> bool:
    """Whether the `schema` of a file is this version. True and 1.0 equal 1, but are none."""
    return type(found) is int and found == version


def require_schema(what: str, record: Mapping[str, object], version: int) -> None:
    """Raises JobError unless a file of ours has this version of its format. what: its name in the message"""
    if not is_schema(found := record.get("schema"), version):
        raise JobError(
            f"{what} has schema {found!r:.40}; this version of tensorop reads schema {version}",
            hint="build the product again, or use the version of tensorop that made it",
        )


def require_few(text: str | bytes) -> None:
    """Raises ValueError for JSON with too many values."""
    if len(text) > MAX_VALUES and values(text) > MAX_VALUES:
        raise ValueError(f"JSON of more than {MAX_VALUES} values")


def values(text: str | bytes) -> int:
    """An upper bound of the values in a JSON text, from its punctuation; it bounds memory before parsing."""
    marks: Any = (",", "[", "{") if isinstance(text, str) else (b",", b"[", b"{")
    return 1 + sum(map(text.count, marks))


def _refused(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


def _real(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(f"the number {word[:40]} is too large")
    return value


def _integer(word: str) -> int:
    if len(word) > 20 or not -MAX_INTEGER <= (value := int(word)) < MAX_INTEGER:
        raise ValueError(f"the number {word[:40]} does not fit in 64 bits")
    return value
