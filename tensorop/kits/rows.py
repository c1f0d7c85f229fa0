"""The schema of a kit's results: a class for each kind of line, with types and limits for every field.

Results are untrusted: they come from another machine, and an imported result can be in another user's product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny

from tensorop.specs import yamlfile

MOST_STEPS = 100_000
# What kits compare with, by its key in machines and arms: what an answer is, and how far the comparison holds.
BASELINES = {
    "cublaslt": ("{} of its answers to seven queries, 32 MiB of workspace", ""),
    "cublaslt_softmax": (
        "two cuBLASLt products and a softmax, {} of the answers to seven queries",
        "not the peer: two cuBLASLt products and a softmax",
    ),
}
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
    """A part whose unknown keys are kept."""

    model_config = ConfigDict(extra="allow")


class KitMachine(_Kept):
    """The machine that ran a kit."""

    board: _Words


class BoardMachine(KitMachine):
    """The machine of a CPU kit."""

    arch: _Word
    vlen: Annotated[int, Field(ge=0, le=1 << 16)]  # bits
    emulator: _Words


class DeviceMachine(KitMachine):
    """The machine of a device's kit."""

    device: _Words
    capability: Annotated[int, Field(ge=0, le=10_000)]
    cublaslt: Annotated[int, Field(ge=0, lt=1 << 31)] = 0  # version; 0: absent
    cublaslt_softmax: Annotated[int, Field(ge=0, lt=1 << 31)] = 0  # the same, for kits that compare with this

    @property
    def baseline(self) -> str:
        """What the kit compares with; empty: nothing."""
        return next((name for name in BASELINES if name in self.model_fields_set), "")


class KitHead(_Line):
    """The first line of a file of results."""

    kit: _Id
    product: _Id
    platform: _Words
    steps: _Step


class StepOf(_Kept):
    """The subject of a control or a verification."""

    control: _Words = ""
    dtype: _Word = ""
    variant: Annotated[int, Field(ge=-1, lt=_MOST_ARMS)] = -1


class KitRow(_Line):
    """The result of a step."""

    step: _Step
    kind: Literal["control", "verify", "time"]
    outcome: _Word
    date: _Date
    cases: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    message: _Words = ""
    case: _Words = ""
    of: StepOf = StepOf()


class KitProblem(_Line):
    """A timed problem. On a device, dims are the numbers of a call, and options its layout."""

    dtype: _Word
    dims: Annotated[dict[_Name, _Size], Field(max_length=32)]
    options: Annotated[dict[_Name, _Size | _Word], Field(max_length=32)]


class BoardProblem(KitProblem):
    """The problem that a CPU kit timed, with its variants."""

    variants: Annotated[list[_Number], Field(min_length=1, max_length=_MOST_ARMS)]


class TimedOnBoard(KitRow):
    """A timing of a CPU kit."""

    of: BoardProblem  # type: ignore[assignment]
    ns: Annotated[list[_Rounds], Field(max_length=_MOST_ARMS)]  # by variant, in the order of `of.variants`
    mhz: _Figure


class TimedArm(_Kept):
    """A variant, or an answer of the baseline, with its rounds in us, or the reason for their absence."""

    variant: _Number | None = None
    cublaslt: _Number | None = None
    cublaslt_softmax: _Number | None = None
    us: _Rounds | None = None
    refused: _Words = ""

    @property
    def answer(self) -> tuple[str, int] | None:
        """The baseline with the number of its answer; None for a variant."""
        return next(((name, one) for name in BASELINES if (one := getattr(self, name)) is not None), None)


class DeviceTiming(KitRow):
    """A timing of a device's kit, with any outcome."""

    of: KitProblem  # type: ignore[assignment]
    arms: Annotated[list[TimedArm], Field(max_length=_MOST_ARMS)] = []
    chosen: Annotated[int, Field(ge=-1, lt=_MOST_ARMS)] = -1


class TimedOnDevice(DeviceTiming):
    """A successful timing of a device's kit."""

    arms: Annotated[list[TimedArm], Field(max_length=_MOST_ARMS)]
    chosen: Annotated[int, Field(ge=-1, lt=_MOST_ARMS)]
    mhz: _Figure
    watts: _Figure


class KeptRow(_Kept):
    """A timing in the product's format."""


class KeptOnBoard(KeptRow, KitProblem):
    """A timing of a CPU kit, in the product."""

    model_config = ConfigDict(extra="allow")

    ns: Annotated[list[_Time | None], Field(max_length=_MOST_ARMS)]  # by number of variant


class KeptOnDevice(KeptRow):
    """A timing of a device's kit, in the product."""

    of: KitProblem
    arms: Annotated[list[TimedArm], Field(max_length=_MOST_ARMS)]
    chosen: Annotated[int, Field(ge=-1, lt=_MOST_ARMS)] = -1


class KeptKit(_Line):
    """A kit's results in the product."""

    kit: _Id
    machine: SerializeAsAny[KitMachine]
    date: _Date  # of the last row
    rows: list[SerializeAsAny[KeptRow]]


@dataclass(frozen=True)
class KitLines:
    """The lines of a file of results."""

    head: KitHead
    machines: Sequence[KitMachine]  # one for each start of the kit
    rows: Sequence[KitRow]
    end: object  # the number of rows, from the last line


def read(lines: Sequence[Mapping[str, object]], origin: str) -> KitLines:
    """The lines of a file, by kind. Raises SpecError, naming the line, if one does not fit its schema."""
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
    """A kit's results, from the product's file. device: as in KitProduct. Raises SpecError for an invalid one."""
    rows = kit.get("rows")
    if isinstance(rows, list):
        schema = KeptOnDevice if device else KeptOnBoard
        rows = [yamlfile.validate(schema, row, f"{origin}, row {number}") for number, row in enumerate(rows)]
    return yamlfile.validate(KeptKit, {**kit, "machine": _machine(kit, origin, device), "rows": rows}, origin)


def _inside(one: Mapping[str, object], name: str) -> dict[str, object]:
    found = one.get(name)
    return found if isinstance(found, dict) else {}
