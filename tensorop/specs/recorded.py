"""A comparison that `bench --format json` printed, or share/tensorop/bench.json, read again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tensorop.errors import SpecError, UsageError
from tensorop.model.bench import Span
from tensorop.model.comparison import Figure, Place, Recorded
from tensorop.specs import files, jsontext, yamlfile

_HINT = "give what `tensorop bench DIR --format json` printed, or a product's share/tensorop/bench.json"


_Figure = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _At(BaseModel):
    model_config = ConfigDict(strict=True)
    ours: _Figure


class _Row(_At):
    """An older row has no `dims`, but each of them as a key of its own, an integer."""

    model_config = ConfigDict(strict=True, extra="allow")
    op: str
    dtype: str
    layout: str
    shape: str = ""
    dims: dict[str, int] = {}
    spread: float = Field(ge=0, allow_inf_nan=False)
    ratio: dict[str, _Figure] = {}
    interval: dict[str, list[float]] = {}
    by_vlen: dict[Annotated[str, Field(pattern=r"^[0-9]{1,6}$")], _At] = {}
    noisy: bool = False


class _Model(BaseModel):
    model_config = ConfigDict(strict=True)
    name: str
    version: int


class _Baseline(BaseModel):
    model_config = ConfigDict(strict=True)
    version: str


class _Bench(BaseModel):
    model_config = ConfigDict(strict=True)
    platform: str
    threads: int
    unit: str
    model: _Model | None
    machine: dict[str, Any] = {}
    baselines: dict[str, _Baseline] = {}
    results: Annotated[list[_Row], Field(max_length=10_000)]


def read(path: Path) -> Recorded:
    """The record in a file. Raises UsageError with file, place and what was expected."""
    try:
        data = jsontext.loads(files.text(path, files.JSON))
    except SpecError as error:
        raise UsageError(error.message, hint=_HINT) from None
    except ValueError as error:
        raise UsageError(f"{path}: expected JSON: {error}", hint=_HINT) from None
    return parse(data, str(path))


def parse(data: Any, origin: str) -> Recorded:
    """The record of a comparison's JSON. origin: what errors call it. Raises UsageError."""
    if not isinstance(data, dict):
        raise UsageError(f"{origin}: expected the record of a comparison, got {type(data).__name__}", hint=_HINT)
    try:
        found = yamlfile.validate(_Bench, data, origin)
    except UsageError as error:
        raise UsageError(error.message, hint=_HINT) from None
    figures: dict[Place, Figure] = {}
    for row in found.results:
        dims = row.dims or {k: v for k, v in (row.model_extra or {}).items() if type(v) is int}
        place = Place(row.op, row.dtype, tuple(dims.items()), row.layout, written=row.shape)
        if row.by_vlen:
            figures |= {place.at(int(vlen)): Figure(at.ours, at.ours, at.ours) for vlen, at in row.by_vlen.items()}
        elif found.model:
            figures[place] = Figure(row.ours, row.ours, row.ours)
        else:
            half = row.ours * row.spread / 2
            beside = {
                f"{name} {found.baselines[name].version}": Span(row.ratio[name], ends[0], ends[1])
                for name, ends in row.interval.items()
                if len(ends) == 2 and name in row.ratio and name in found.baselines
            }
            figures[place] = Figure(row.ours, row.ours - half, row.ours + half, row.noisy, beside)
    model = (found.model.name, found.model.version) if found.model else None
    return Recorded(
        origin, found.platform, found.threads, found.unit, model, str(found.machine.get("cpu", "")), figures
    )
