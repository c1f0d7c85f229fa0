"""The schema of what a tuning kit writes: each line by its kind, every field of its kind and bounded.

A result comes from somebody else's machine, and what was imported lies in a product that may be somebody else's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny

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
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class _Kept(_Line):
    """A part whose other keys are kept too."""

    model_config = ConfigDict(extra="allow")


class KitMachine(_Kept):
    """Where a kit ran."""

    board: _Words


class BoardMachine(KitMachine):
    """Of a processor's kit."""

    arch: _Word
    vlen: Annotated[int, Field(ge=0, le=1 << 16)]  # bits
    emulator: _Words


class DeviceMachine(KitMachine):
    """Of a device's kit."""

    device: _Words
    capability: Annotated[int, Field(ge=0, le=10_000)]
    cublaslt: Annotated[int, Field(ge=0, lt=1 << 31)] = 0  # version; 0: absent


class KitHead(_Line):
    """The first line of a file of results."""

    kit: _Id
    product: _Id
    platform: _Words
    steps: _Step


class StepOf(_Kept):
    """What a control or a verification is of."""

    control: _Words = ""
    dtype: _Word = ""
    variant: Annotated[int, Field(ge=-1, lt=_MOST_ARMS)] = -1


class KitRow(_Line):
    """How a step ended."""

    step: _Step
    kind: Literal["control", "verify", "time"]
    outcome: _Word
    date: _Date
    cases: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    message: _Words = ""
    case: _Words = ""
    of: StepOf = StepOf()


class _Problem(_Line):
    dtype: _Word
    dims: Annotated[dict[_Name, _Size], Field(max_length=32)]
    options: Annotated[dict[_Name, _Size | _Word], Field(max_length=32)]


class BoardProblem(_Problem):
    """What a processor's kit timed."""

    variants: Annotated[list[_Number], Field(min_length=1, max_length=_MOST_ARMS)]


class TimedOnBoard(KitRow):
    """A timing of a processor's kit."""

    of: BoardProblem  # type: ignore[assignment]
    ns: Annotated[list[_Rounds], Field(max_length=_MOST_ARMS)]  # by variant, in the order of the problem's
    mhz: _Figure


class DeviceProblem(_Line):
    """What a device's kit timed."""

    dtype: _Word
    a_along_m: Literal[0, 1]
    b_along_k: Literal[0, 1]
    m: _Size
    n: _Size
    k: _Size
    batch: _Size


class TimedArm(_Kept):
    """A variant, or an answer of the baseline, with its rounds in us, or why it has none."""

    variant: _Number | None = None
    cublaslt: _Number | None = None
    us: _Rounds | None = None
    refused: _Words = ""


class DeviceTiming(KitRow):
    """A timing of a device's kit, however it ended."""

    of: DeviceProblem  # type: ignore[assignment]
    arms: Annotated[list[TimedArm], Field(max_length=_MOST_ARMS)] = []
    chosen: Annotated[int, Field(ge=-1, lt=_MOST_ARMS)] = -1


class TimedOnDevice(DeviceTiming):
    """One with figures."""

    arms: Annotated[list[TimedArm], Field(max_length=_MOST_ARMS)]
    chosen: Annotated[int, Field(ge=-1, lt=_MOST_ARMS)]
    mhz: _Figure
    watts: _Figure


class KeptRow(_Kept):
    """A timing as the product keeps it."""


class KeptOnBoard(KeptRow, _Problem):
    """Of a processor's kit."""

    model_config = ConfigDict(extra="allow")

    ns: Annotated[list[_Time | None], Field(max_length=_MOST_ARMS)]  # by number of variant


class KeptOnDevice(KeptRow):
    """Of a device's kit."""

    of: DeviceProblem
    arms: Annotated[list[TimedArm], Field(max_length=_MOST_ARMS)]
    chosen: Annotated[int, Field(ge=-1, lt=_MOST_ARMS)] = -1


class KeptKit(_Line):
    """What a product keeps of a kit."""

    kit: _Id
    machine: SerializeAsAny[KitMachine]
    date: _Date  # of the last row
    rows: list[SerializeAsAny[KeptRow]]


@dataclass(frozen=True)
class KitLines:
    """A file of results, line by line."""

    head: KitHead
    machines: Sequence[KitMachine]  # each time it was started
    rows: Sequence[KitRow]
    end: object  # the number of rows, as the last line says it


def read(lines: Sequence[Mapping[str, object]], origin: str) -> KitLines:
    """Raises SpecError, naming the line, unless each is one that a kit writes."""
    device = "arch" not in _inside(lines[0], "machine")
    machines: list[KitMachine] = []
    rows: list[KitRow] = []
    for number, one in enumerate(lines, 1):
        where, given = f"{origin}, line {number}", dict(one)
        if number == 1:
            head = yamlfile.validate(KitHead, given, where)
        if number == 1 or "machine" in one:
            machines.append(_machine(given, where, device))
        if "step" in one:
            rows.append(yamlfile.validate(_kind(given, device), given, where))
    return KitLines(head, machines, rows, lines[-1].get("end"))


def _kind(row: Mapping[str, object], device: bool) -> type[KitRow]:
    if row.get("kind") != "time":
        return KitRow
    if row.get("outcome") == "ok":
        return TimedOnDevice if device else TimedOnBoard
    return DeviceTiming if device else KitRow


def _machine(given: Mapping[str, object], where: str, device: bool) -> KitMachine:
    return yamlfile.validate(DeviceMachine if device else BoardMachine, _inside(given, "machine"), f"{where}, machine")


def kept(kit: Mapping[str, object], origin: str, device: bool) -> KeptKit:
    """What a product keeps of a kit. device: of a product for one. Raises SpecError."""
    rows = kit.get("rows")
    if isinstance(rows, list):
        schema = KeptOnDevice if device else KeptOnBoard
        rows = [yamlfile.validate(schema, row, f"{origin}, row {number}") for number, row in enumerate(rows)]
    return yamlfile.validate(KeptKit, {**kit, "machine": _machine(kit, origin, device), "rows": rows}, origin)


def _inside(one: Mapping[str, object], name: str) -> dict[str, object]:
    found = one.get(name)
    return found if isinstance(found, dict) else {}
