"""The schema of what a tuning kit writes: each line by its kind, every field of its kind and bounded.

A result comes from somebody else's machine, and what was imported lies in a product that may be somebody else's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tensorop.specs import yamlfile

MOST_STEPS = 100_000
_MOST_ARMS = 4096
_MOST_ROUNDS = 1024

_Id = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Date = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
_Word = Annotated[str, Field(max_length=64)]
_Words = Annotated[str, Field(max_length=4096)]
_Size = Annotated[int, Field(ge=0, lt=1 << 31)]
_Step = Annotated[int, Field(ge=0, le=MOST_STEPS)]
_Number = Annotated[int, Field(ge=0, lt=_MOST_ARMS)]
_Figure = Annotated[float, Field(ge=0, lt=1e15)]
_Time = Annotated[float, Field(gt=1e-6, lt=1e15)]
_Rounds = Annotated[list[_Time], Field(min_length=1, max_length=_MOST_ROUNDS)]
_Name = Annotated[str, Field(min_length=1, max_length=32)]


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Machine(_Line):
    board: _Words


class _Processor(_Machine):
    arch: _Word
    vlen: Annotated[int, Field(ge=0, le=1 << 16)]
    emulator: _Words


class _Device(_Machine):
    device: _Words
    capability: Annotated[int, Field(ge=0, le=10_000)]


class _Head(_Line):
    kit: _Id
    product: _Id
    platform: _Words
    steps: _Step


class _Row(_Line):
    kind: Literal["control", "verify", "time"]
    outcome: _Word
    date: _Date
    cases: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    message: _Words = ""
    case: _Words = ""


class _Problem(_Line):
    dtype: _Word
    dims: Annotated[dict[_Name, _Size], Field(max_length=32)]
    options: Annotated[dict[_Name, _Size | _Word], Field(max_length=32)]


class _Timed(_Problem):
    variants: Annotated[list[_Number], Field(min_length=1, max_length=_MOST_ARMS)]


class _ProcessorRow(_Row):
    of: _Timed
    ns: Annotated[list[_Rounds], Field(max_length=_MOST_ARMS)]
    mhz: _Figure


class _DeviceProblem(_Line):
    dtype: _Word
    a_along_m: Literal[0, 1]
    b_along_k: Literal[0, 1]
    m: _Size
    n: _Size
    k: _Size
    batch: _Size


class _Arm(_Line):
    variant: _Number | None = None
    cublaslt: _Number | None = None
    us: _Rounds | None = None
    refused: _Words = ""


class _DeviceRow(_Row):
    of: _DeviceProblem
    arms: Annotated[list[_Arm], Field(max_length=_MOST_ARMS)]
    chosen: Annotated[int, Field(ge=-1, lt=_MOST_ARMS)]
    mhz: _Figure
    watts: _Figure


class _Kept(_Problem):
    """A row of a processor as the product keeps it."""

    ns: Annotated[list[_Time | None], Field(max_length=_MOST_ARMS)]


class _KeptOfDevice(_Line):
    of: _DeviceProblem
    arms: Annotated[list[_Arm], Field(max_length=_MOST_ARMS)]


class _Kit(_Line):
    kit: _Id
    date: _Date


def check(lines: Sequence[Mapping[str, Any]], origin: str) -> None:
    """Raises SpecError, naming the line, unless each is one that a kit writes."""
    device = "arch" not in _inside(lines[0], "machine")
    for number, one in enumerate(lines, 1):
        where, given = f"{origin}, line {number}", dict(one)
        if number == 1:
            yamlfile.validate(_Head, given, where)
        if number == 1 or "machine" in one:
            yamlfile.validate(_Device if device else _Processor, _inside(given, "machine"), f"{where}, machine")
        if "step" in one:
            yamlfile.validate(_Row, given, where)
            if one["kind"] == "time" and one["outcome"] == "ok":
                yamlfile.validate(_DeviceRow if device else _ProcessorRow, given, where)


def kept(kit: Any, origin: str, device: bool) -> None:
    """Raises SpecError unless this is what a product keeps of a kit. device: of a product for one."""
    yamlfile.validate(_Kit, kit, origin)
    yamlfile.validate(_Device if device else _Processor, _inside(kit, "machine"), f"{origin}, machine")
    for number, row in enumerate(kit["rows"]):
        yamlfile.validate(_KeptOfDevice if device else _Kept, row, f"{origin}, row {number}")


def _inside(one: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = one.get(name)
    return found if isinstance(found, dict) else {}
