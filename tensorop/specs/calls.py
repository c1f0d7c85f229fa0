"""Reads the files of `--shapes @FILE`: lists of shapes that a person wrote, and records of calls.

docs/reference/shapes-file.md has both formats.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from pathlib import Path

from tensorop.errors import SpecError, UsageError
from tensorop.model.listed import ListedCall
from tensorop.model.operator import Operator
from tensorop.specs import files

_FIELD = re.compile(r"[a-z_]+=\S+")
_TOO_FEW = "expected a line for each shape, such as `{}` or `{} 2.5`, or the lines of a record"


def read(operator: Operator, path: Path) -> tuple[list[ListedCall], str]:
    """The calls in a file, with weights that are parts of its time, and a remark about skipped lines, or "".

    Raises UsageError with file, line and what was expected.
    """
    hint = f"write shapes as {operator.shapes.help}, e.g. {operator.example} 2.5, or record a program's calls"
    lines = files.text(path, files.LINES).splitlines()
    found: dict[ListedCall, float] = defaultdict(float)
    skipped, skipped_s, total = 0, 0.0, 0.0
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            read_line = _recorded if any(map(_FIELD.fullmatch, words)) else _written
            call, weight = read_line(operator, words)
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: {error}", hint=hint) from None
        total += weight
        if call is None:
            skipped, skipped_s = skipped + 1, skipped_s + weight
        else:
            found[call] += weight
    if not found:
        lacking = f"it has {skipped} lines of other routines" if skipped else "it has no line but comments"
        expected = _TOO_FEW.format(operator.example, operator.example)
        raise UsageError(f"{path}, line {max(1, len(lines))}: {expected}; {lacking}", hint=hint)
    kept = sum(found.values())
    remark = f"{path}: {skipped} lines of other routines are skipped, with {skipped_s / total:.1%} of its time"
    calls = [ListedCall(one.shape, weight / kept, one.dtype, one.options) for one, weight in found.items()]
    return calls, remark if skipped else ""


def _written(operator: Operator, words: list[str]) -> tuple[ListedCall, float]:
    """A shape that a person wrote, and its weight. Raises ValueError."""
    if len(words) > 2:
        raise ValueError(f"expected a shape and at most one weight, got {' '.join(words)!r:.80}")
    weight = _positive(words[1], "a weight") if len(words) == 2 else 1.0
    return ListedCall(operator.shapes.of(words[0]), 0.0), weight


def _recorded(operator: Operator, words: list[str]) -> tuple[ListedCall | None, float]:
    """A kind of recorded calls and its seconds; no call if it is of another operator or does no work."""
    routine, *rest = words
    if "=" in routine or not all(map(_FIELD.fullmatch, rest)):
        raise ValueError(f"expected ROUTINE NAME=VALUE ... calls=N seconds=S, got {' '.join(words)!r:.80}")
    fields = dict(word.split("=", 1) for word in rest)
    for name in ("calls", "seconds"):
        if name not in fields:
            raise ValueError(f"expected {name}=NUMBER, got {' '.join(words)!r:.80}")
    seconds = _positive(fields["seconds"], "seconds=")
    try:
        problem = operator.reference.recorded(routine, fields)
    except SpecError:  # of the contract's method, by a field
        raise ValueError(f"expected the fields of {routine}, got {' '.join(words)!r:.160}") from None
    if problem is None or not all(problem.dims.values()):
        return None, seconds
    return ListedCall(operator.shapes.of(problem.sizes), 0.0, problem.dtype, problem.options), seconds


def _positive(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ValueError(f"expected a positive number as {what}, got {text!r:.80}")
    return value
