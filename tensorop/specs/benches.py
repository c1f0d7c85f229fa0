"""Reads comparisons: output of `bench --format json`, or a product's bench.json or threads.json."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from tensorop.errors import SpecError, UsageError
from tensorop.model.bench import OURS, AtVlen, BaselineInfo, Bench, Ratio, Row
from tensorop.specs import files, jsontext, yamlfile

_HINT = "pass the output of `tensorop bench DIR --format json`, or a product's share/tensorop/bench.json"

_Number = Annotated[float, Field(allow_inf_nan=False)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Vlen = Annotated[str, Field(pattern=r"^[0-9]{1,6}$")]
_WIDTHS = re.compile(r"VLEN (\d+(?: and \d+)*): ")
R = TypeVar("R", Row, AtVlen)
_Interval = Annotated[list[_Number], Field(min_length=2, max_length=2)]


class _At(BaseModel):
    """Keys that a row and its results at one VLEN share. Mappings are by baseline, or by library with `ours`."""

    model_config = ConfigDict(strict=True)
    ours: _Positive
    ratio: dict[str, _Positive] = {}
    interval: dict[str, _Interval] = {}
    alternatives: dict[str, dict[str, _Positive]] = {}
    verdicts: dict[str, str] = Field(default={}, alias="verdict")
    per_kflop: dict[str, dict[str, _Number]] = {}
    empty_cycles: dict[str, _Number] = {}
    called: dict[str, str] = {}
    path_instructions: int | None = None

    def made(self, kind: type[R], **more: Any) -> R:
        """Row or AtVlen. more: fields that differ from the keys"""
        ratios = {}
        for name, value in self.ratio.items():
            low, high = self.interval.get(name, (value, value))
            ratios[name] = Ratio(value, low, high, self.alternatives.get(name, {}))
        theirs = {name: counters for name, counters in self.per_kflop.items() if name != OURS}
        of_both = {"ratios": ratios, "counters": self.per_kflop.get(OURS, {}), "baseline_counters": theirs}
        return kind(**yamlfile.shared(self, kind) | of_both | more)


class _Row(_At):
    """A row. Older files have no `dims`; there each dimension is a key of the row."""

    model_config = ConfigDict(strict=True, extra="allow")
    op: str
    dtype: str
    layout: str
    written: str = Field(default="", alias="shape")
    dims: dict[str, int] = {}
    spread: float = Field(ge=0, allow_inf_nan=False)
    by_vlen: dict[_Vlen, _At] = {}
    noisy: bool = False
    peak_share: _Number | None = None
    time_share: _Number | None = None
    empty_ns: dict[str, _Number] = {}

    def row(self) -> Row:
        dims = self.dims or {k: v for k, v in (self.model_extra or {}).items() if type(v) is int}
        return self.made(Row, dims=dims, by_vlen={int(vlen): at.made(AtVlen) for vlen, at in self.by_vlen.items()})


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")
    name: str
    version: int


class _Baseline(BaseModel):
    model_config = ConfigDict(strict=True)
    version: str
    config: str = ""
    remarks: list[str] = []
    cores: dict[_Vlen, dict[str, str]] = {}
    limited: list[int] = []

    def info(self) -> BaselineInfo:
        cores = {int(vlen): by_dtype for vlen, by_dtype in self.cores.items()}
        # Older files name these VLENs in the remarks alone.
        heads = filter(None, map(_WIDTHS.match, self.remarks))
        older = [int(vlen) for head in heads for vlen in head[1].split(" and ")]
        return BaselineInfo(self.version, self.config, tuple(self.remarks), cores, tuple(self.limited or older))


class _Bench(BaseModel):
    model_config = ConfigDict(strict=True)
    platform: str
    threads: int
    unit: str
    model: _Model | None
    machine: dict[str, Any] = {}
    baselines: dict[str, _Baseline] = {}
    absent: dict[str, str] = {}
    results: Annotated[list[_Row], Field(max_length=10_000)]
    peak: dict[str, _Positive] = {}

    def bench(self) -> Bench:
        made = {
            "model": self.model.model_dump() if self.model else None,
            "baselines": {name: baseline.info() for name, baseline in self.baselines.items()},
            "rows": tuple(row.row() for row in self.results),
        }
        return Bench(**yamlfile.shared(self, Bench) | made)


def read(path: Path, hint: str = _HINT) -> tuple[Bench, ...]:
    """The comparison in a file, or one for each number of threads.

    Raises UsageError with file, place and the expected value.
    """
    try:
        data = jsontext.loads(files.text(path, files.JSON))
    except SpecError as error:
        raise UsageError(error.message, hint=hint) from None
    except ValueError as error:
        raise UsageError(f"{path}: expected JSON: {error}", hint=hint) from None
    return parse(data, str(path), hint)


def parse(data: Any, origin: str, hint: str = _HINT) -> tuple[Bench, ...]:
    """The comparisons in a JSON value. Raises UsageError. origin: its name in errors"""
    if not isinstance(data, dict):
        raise UsageError(
            f"{origin}: expected a JSON object with the result of a comparison, got {type(data).__name__}", hint=hint
        )
    by_threads = data.get("by_threads")
    each = {origin: data}
    if by_threads and isinstance(by_threads, dict):
        each = {f"{origin}: by_threads.{count:.20}": one for count, one in by_threads.items()}
    try:
        return tuple(yamlfile.validate(_Bench, one, place).bench() for place, one in each.items())
    except UsageError as error:
        raise UsageError(error.message, hint=hint) from None
