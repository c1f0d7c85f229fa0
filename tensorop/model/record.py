"""Records that parts of files are read into as they are: of what is not a record's, no key is taken."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

R = TypeVar("R")


class BrokenRule(ValueError):
    """A rule that does not hold, in words."""


def rule(holds: object, text: str) -> None:
    """What a schema cannot say of a record. Raises BrokenRule where it does not hold."""
    if not holds:
        raise BrokenRule(text)


Whole = Annotated[int, Field(strict=True, ge=0)]  # no text of digits, no boolean
Count = Annotated[int, Field(strict=True, gt=0)]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: type[R]) -> type[R]:
    """A frozen dataclass whose fields are checked when it is made. Raises pydantic's ValidationError, a ValueError."""
    config: ConfigDict = {"extra": "forbid"}
    made: Any = dataclass(frozen=True, config=config)(kind)
    return made  # type: ignore[no-any-return]
