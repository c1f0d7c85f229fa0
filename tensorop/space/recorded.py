"""Recorded spaces: the cost of every legal point of a space, in one small file, for comparing tuners.

A file is gzip of lines: a head, then one line a point in the space's order, `[value numbers, cost, spread]` with a cost
of null where the trial failed. The head's `digest` is that of everything else in the file.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tensorop.errors import JobError, SpecError
from tensorop.model.kernel import Constraint
from tensorop.model.point import Point
from tensorop.space.space import Space
from tensorop.specs import files, jsontext, spaces

SCHEMA = 1
SUFFIX = ".jsonl.gz"
AGAIN = "get the file from the repository again, or record it again (benchmarks/record_space.py)"


@dataclass(frozen=True)
class RecordedSpace:
    """A space with the cost of each point, in the order of its points."""

    name: str
    space: Space
    about: Mapping[str, object]  # platform, operator, dtype, template, unit, ...
    costs: tuple[float | None, ...]  # None: the trial failed
    spread: tuple[float, ...]  # spread of a point's repeated costs, as a share; 0 under a board model

    @property
    def best(self) -> float:
        return min(cost for cost in self.costs if cost is not None)

    def cost(self, point: Point) -> float | None:
        return self.costs[self.space.index(point)]


def write(path: Path, found: RecordedSpace) -> None:
    """Writes the file; equal records give equal bytes."""
    space = found.space
    rows = [
        [*space.coordinates(index), *figures]
        for index, figures in enumerate(zip(found.costs, found.spread, strict=True))
    ]
    head = {
        "schema": SCHEMA,
        **found.about,
        "dimensions": {name: list(values) for name, values in space.dimensions},
        "constraints": [constraint.must for constraint in space.constraints],
        "facts": dict(space.facts),
        "points": space.size,
    }
    body = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    head["digest"] = _digest(head, body)
    with path.open("wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=0) as packed:
        packed.write((json.dumps(head) + "\n" + body).encode())


def read(path: Path) -> RecordedSpace:
    """Reads a file. Raises SpecError with file, place and what was expected."""
    try:
        packed = files.read(path, files.LINES)
        first, _, body = files.unpacked(packed, files.LINES).decode().partition("\n")
        head = jsontext.loads(first)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise SpecError(f"{path}: not a recorded space: {error}; expected gzip of JSON lines", hint=AGAIN) from None
    if not isinstance(head, dict) or not jsontext.is_schema(head.get("schema"), SCHEMA):
        got = head.get("schema") if isinstance(head, dict) else head
        raise SpecError(f"{path}, line 1: 'schema' is {got!r:.40}; expected {SCHEMA}", hint=AGAIN)
    expected, got = _digest(head, body), head.pop("digest", None)
    if got != expected:
        raise SpecError(f"{path}, line 1: 'digest' is {got!r:.40}; its lines give {expected!r}", hint=AGAIN)
    described = spaces.head(head, f"{path}, line 1")
    try:
        space = Space.of(
            described.dimensions, [Constraint(text, "") for text in described.constraints], described.facts
        )
    except (SpecError, JobError) as error:
        raise SpecError(f"{path}, line 1: {error.message}", hint=AGAIN) from None
    if space.size != (lines := body.count("\n")):
        raise SpecError(f"{path}: {lines} lines of points; expected {space.size} legal points", hint=AGAIN)
    rows = (_row(path, space, index, line) for index, line in enumerate(body.split("\n")[:-1]))
    costs, spread = zip(*rows, strict=True)
    if not any(costs):
        raise SpecError(f"{path}: no point has a cost; expected one that did not fail", hint=AGAIN)
    own = ("schema", "points", *spaces.SpaceHead.model_fields)
    about = {name: value for name, value in head.items() if name not in own}
    return RecordedSpace(path.name.removesuffix(SUFFIX), space, about, costs, spread)


def _row(path: Path, space: Space, index: int, line: str) -> tuple[float | None, float]:
    try:
        numbers, cost, spread = spaces.row(line)
    except (ValueError, TypeError):
        raise SpecError(
            f"{path}, line {index + 2}: got {line:.60}; expected [value numbers, cost, spread]", hint=AGAIN
        ) from None
    if tuple(numbers) != space.coordinates(index):
        raise SpecError(f"{path}, line {index + 2}: expected the point {space.at(index)}", hint=AGAIN)
    return cost, spread


def _digest(head: Mapping[str, object], body: str) -> str:
    named = {key: value for key, value in head.items() if key != "digest"}
    return hashlib.sha256((json.dumps(named) + "\n" + body).encode()).hexdigest()[:16]
