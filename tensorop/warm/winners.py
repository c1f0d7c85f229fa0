"""Files of winners: what earlier searches found, a line for each variant, the best first.

    {"schema": 1, "event": "winners", "platform", "tensorop", "date", "made", "lines"}
    {"schema": 1, "event": "winner", "operator", "dtype", "template", "point": {...}}

The first line says where they come from and how many follow. Shipped ones and those of plug-in folders are
`platforms/winners/*.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop.errors import UsageError
from tensorop.model.winner import StartPoint
from tensorop.specs import files, jsontext
from tensorop.store.records import point_of

SCHEMA = 1
FOLDER = "winners"
MOST = 4096  # lines of a file
_HEAD = ("platform", "tensorop", "date", "made")


@dataclass(frozen=True)
class WarmSource:
    """A journal or a file of winners, read."""

    path: Path
    name: str  # as the user reads it
    platform: str
    known: Mapping[tuple[str, str], Sequence[StartPoint]]  # by operator and dtype, the best first
    remark: str = ""  # a warning about the file


def read(path: Path) -> WarmSource:
    """A file of winners. Raises UsageError with file, place and what was expected."""
    try:
        lines = files.plain(path, files.LINES).split(b"\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(lines) > MOST:
        raise UsageError(f"{path} has {len(lines)} lines; expected a journal, or a file of at most {MOST} winners")
    known: dict[tuple[str, str], list[StartPoint]] = {}
    head: dict[str, Any] = {}
    for number, line in enumerate(lines[:-1], 1):  # what follows the last newline was cut
        if not line.strip():
            continue
        try:
            record = jsontext.loads(line)
            if record["event"] != ("winner" if head else "winners"):
                raise ValueError(f"the event {record['event']!r:.40}")
            if record["schema"] != SCHEMA:
                raise ValueError(f"schema {record['schema']!r:.40}; this version reads {SCHEMA}")
            if not head:
                head = {name: str(record[name]) for name in _HEAD} | {"lines": int(record["lines"])}
                continue
            of = known.setdefault((str(record["operator"]), str(record["dtype"])), [])
            of.append(StartPoint(str(record["template"]), point_of(record["point"])))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            expected = "a journal, or a file of winners (docs/warm-start.md)"
            raise UsageError(f"{path}, line {number}: {type(error).__name__} {error}; expected {expected}") from None
    if not head:
        raise UsageError(f"{path}: no whole line; expected a journal, or a file of winners (docs/warm-start.md)")
    there = sum(map(len, known.values()))
    cut = f"{path} is cut off: {there} of its {head['lines']} winners are there" if there != head["lines"] else ""
    return WarmSource(path, f"the winners of {head['platform']} of {head['date']}", head["platform"], known, cut)


def lines(head: Mapping[str, str], known: Mapping[tuple[str, str], Sequence[StartPoint]]) -> Iterator[str]:
    """The lines of a file of winners."""
    yield json.dumps({"schema": SCHEMA, "event": "winners", **head, "lines": sum(map(len, known.values()))})
    for (operator, dtype), of in known.items():
        for one in of:
            record = {"operator": operator, "dtype": dtype, "template": one.template, "point": dict(one.point)}
            yield json.dumps({"schema": SCHEMA, "event": "winner", **record})
