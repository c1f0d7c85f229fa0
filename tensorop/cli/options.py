"""Texts of the command line turned into values: shapes, dtypes, budgets; each refused with the next step."""

from __future__ import annotations

import re

from tensorop.errors import UsageError, unknown_name
from tensorop.model.operator import Operator
from tensorop.model.verdict import Seed

LARGEST = 1 << 31
_SIDE = re.compile(r"-?[0-9]{1,18}")


def dtypes(operator: Operator, text: str) -> tuple[str, ...]:
    """`f32,f64` as names the operator has."""
    wanted = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not wanted:
        raise UsageError("no dtype is named", hint=f"give --dtype {','.join(operator.dtypes)}")
    for name in wanted:
        if name not in operator.dtypes:
            raise unknown_name(f"dtype of {operator.name}", name, operator.dtypes)
    return wanted


def shapes(operator: Operator, text: str) -> tuple[tuple[int, ...], ...]:
    """A suite's name, or shapes such as 64x64x64,127x129x131; raises UsageError for a side below 1."""
    found: list[tuple[int, ...]] = []
    for part in (p.strip() for p in text.split(",")):
        if part in operator.suites:
            found += operator.suites[part]
        elif part and set(part) <= set("0123456789x-"):
            found.append(_shape(operator, part))
        else:
            raise UsageError(
                f"'{part}' is neither a suite nor a shape",
                hint=f"suites: {', '.join(operator.suites)}; write shapes as {'x'.join(operator.dims)}, e.g. 64x64x64",
            )
    return tuple(dict.fromkeys(found))


def _shape(operator: Operator, text: str) -> tuple[int, ...]:
    written = "x".join(operator.dims)
    sides = text.split("x")
    if len(sides) != len(operator.dims) or not all(_SIDE.fullmatch(side) for side in sides):
        raise UsageError(f"'{text}' is not a shape of {operator.name}", hint=f"write {written}, e.g. 64x64x64")
    numbers = tuple(int(side) for side in sides)
    for name, number in zip(operator.dims, numbers, strict=True):
        if not 1 <= number < LARGEST:
            raise UsageError(
                f"shape {text}: {name} is {number}; sides to tune for are between 1 and {LARGEST - 1}",
                hint="empty and huge sizes are computed correctly by every library, there is nothing to tune in them",
            )
    return numbers


def seed(text: str | None) -> Seed:
    """A verdict's seed as it is printed; without one a new one is drawn."""
    try:
        return Seed.parse(text) if text else Seed.draw()
    except ValueError:
        raise UsageError(f"'{text}' is no seed", hint="give it as a verdict prints it: PUBLIC:SECRET") from None
