"""The schema of recorded spaces: the first line, and the lines of points."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tensorop.specs import jsontext, yamlfile

Row = tuple[list[int], Annotated[float, Field(gt=1e-15, lt=1e15)] | None, Annotated[float, Field(ge=0, lt=1e15)]]
_ROW: TypeAdapter[Row] = TypeAdapter(Row)


class SpaceHead(BaseModel):
    """The required keys of the first line; it has further ones about the recording."""

    model_config = ConfigDict(strict=True)
    dimensions: dict[str, list[int | str]]
    constraints: list[str]
    facts: dict[str, int | str]


def head(data: dict[str, object], origin: str) -> SpaceHead:
    """Checks the first line. Raises SpecError with place, key and the expected value."""
    return yamlfile.validate(SpaceHead, data, origin)


def row(line: str) -> Row:
    """A point: indices of its values, cost, spread. Raises ValueError or TypeError for an invalid line."""
    *numbers, cost, spread = jsontext.loads(line)
    return _ROW.validate_python((numbers, cost, spread), strict=True)
