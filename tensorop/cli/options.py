"""Texts of the command line turned into values: shapes, dtypes, budgets; each refused with the next step."""

from __future__ import annotations

from tensorop.errors import UsageError, unknown_name
from tensorop.model.operator import Operator
from tensorop.model.verdict import Seed


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
        elif operator.shapes.may_be(part):
            found.append(_shape(operator, part))
        else:
            usual = f"write shapes as {operator.shapes.help}, e.g. {operator.example}"
            raise UsageError(
                f"'{part}' is neither a suite nor a shape", hint=f"suites: {', '.join(operator.suites)}; {usual}"
            )
    return tuple(dict.fromkeys(found))


def _shape(operator: Operator, text: str) -> tuple[int, ...]:
    shape = operator.shapes.read(text)
    if shape is None:
        hint = f"write {operator.shapes.help}, e.g. {operator.example}"
        raise UsageError(f"'{text}' is not a shape of {operator.name}", hint=hint)
    if wrong := operator.shapes.wrong(shape):
        raise UsageError(
            f"shape {text}: {wrong}",
            hint="empty and huge sizes are computed correctly by every library, there is nothing to tune in them",
        )
    return shape


def seed_parts(text: str) -> tuple[int, int | None]:
    """The two halves of `--seed`, the secret one only where it was given."""
    try:
        return Seed.parts(text)
    except ValueError as error:
        raise UsageError(f"--seed: {error}", hint="give an integer, or a whole seed as it was printed") from None


def seed(text: str | None) -> Seed:
    """`--seed` of a command that judges; the secret half is drawn where none was given."""
    return Seed.draw(*seed_parts("0" if text is None else text))
