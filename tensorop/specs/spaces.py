"""The schema of recorded spaces: their first line, and that of a point."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tensorop.specs import jsontext, yamlfile

Row = tuple[list[int], Annotated[float, Field(gt=1e-15, lt=1e15)] | None, Annotated[float, Field(ge=0, lt=1e15)]]
_ROW: TypeAdapter[Row] = TypeAdapter(Row)


class SpaceHead(BaseModel):
    """What a reader needs of the first line, which says more of where the space was recorded."""

    model_config = ConfigDict(strict=True)
    dimensions: dict[str, list[int | str]]
    constraints: list[str]
    facts: dict[str, int | str]


def head(data: dict[str, object], origin: str) -> SpaceHead:
    """Raises SpecError with place, key and what was expected."""
    return yamlfile.validate(SpaceHead, data, origin)


def row(line: str) -> Row:
    """Numbers of values, cost, spread. Raises ValueError, TypeError for what is none."""
    *numbers, cost, spread = jsontext.loads(line)
    return _ROW.validate_python((numbers, cost, spread), strict=True)
