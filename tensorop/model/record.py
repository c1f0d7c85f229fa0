"""Checked records for parts of files; unknown keys are errors."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

R = TypeVar("R")


class BrokenRule(ValueError):
    """A violated rule, in words."""


def rule(holds: object, text: str) -> None:
    """Checks a condition that a schema cannot express. Raises BrokenRule if it does not hold."""
    if not holds:
        raise BrokenRule(text)


Whole = Annotated[int, Field(strict=True, ge=0)]  # no strings or booleans
Count = Annotated[int, Field(strict=True, gt=0)]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: type[R]) -> type[R]:
    """Makes a frozen dataclass that checks its fields. Objects raise pydantic's ValidationError, a ValueError."""
    config: ConfigDict = {"extra": "forbid"}
    made: Any = dataclass(frozen=True, config=config)(kind)
    return made  # type: ignore[no-any-return]
