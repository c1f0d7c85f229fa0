"""calibration-NAME.yaml: constants of a board model that were fitted on a board, with the measurements.

A platform file uses it with `calibration: FILE` and a `parent` that has the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from tensorop.errors import SpecError
from tensorop.specs import yamlfile
from tensorop.specs.board_alternative import put, switched
from tensorop.specs.yamlfile import File, Record

EXPLAINED = 0.3  # root mean square of log(modelled / measured) up to which a model explains the board
_TABLE = ("mf8", "mf4", "mf2", "m1", "m2", "m4", "m8")
_RANGE = ("assumed", "low", "high", "group")


class _Model(Record):
    name: str
    version: int


class _Constant(Record):
    value: float = Field(strict=False)
    was: float = Field(strict=False)
    low: float = Field(strict=False)
    high: float = Field(strict=False)
    determined: bool


class _Figure(Record):
    ns: float = Field(gt=0, strict=False)
    mhz: float = Field(gt=0, strict=False)
    spread: float = Field(ge=0, strict=False)
    measured: float = Field(gt=0, strict=False)
    before: float = Field(gt=0, strict=False)
    after: float = Field(gt=0, strict=False)


class _Residual(Record):
    before: float = Field(ge=0, strict=False)
    after: float = Field(ge=0, strict=False)
    known: float = Field(ge=0, strict=False)


class Calibration(File):
    """The file's record. The comments in a written file explain its keys (see `text`)."""

    platform: str
    model: _Model
    board: dict[str, str | int | float | None]
    constants: dict[str, _Constant]  # by dotted key in the model
    residual: _Residual
    figures: dict[str, _Figure]  # by benchmark
    absent: dict[str, str] = Field(default_factory=dict)  # benchmark -> reason why it was not measured
    alternatives: dict[str, Literal["shown", "refuted", "open"]] = Field(default_factory=dict)  # of the model


def text(calibration: Calibration) -> str:
    """The text of the file."""
    head = (
        f"# Constants of the board model {calibration.model.name}, fitted by `tensorop platforms check` on a board.\n"
        "# To use them, write `calibration: <this file's name>` and `parent: "
        f"{calibration.platform}` in a platform file.\n"
        "#   constants: the fitted value, the assumed one (was), and the range of the fit (low, high);\n"
        "#              determined: false if no benchmark depends on the constant: it keeps the assumed value\n"
        "#   figures: for each benchmark ns, their spread and the clock in MHz; then cycles per unit as measured,\n"
        "#            and as modelled before and after the fit\n"
        "#   residual: root mean square of log(modelled / measured): for the fitted benchmarks before and after the\n"
        "#             fit, and for benchmarks that no constant affects (known)\n"
        "#   alternatives: shown: it replaces the best fit; refuted: it is removed; open: the board does not decide\n"
    )
    return head + yamlfile.dump(calibration.model_dump(by_alias=True))


def apply(section: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """A `model:` section in which a calibration file's determined constants replace the assumed ones.

    Raises SpecError if the file is broken, is for another model or version, or does not explain the board.
    """
    spec = yamlfile.validate(Calibration, yamlfile.read(path), str(path))
    if (spec.model.name, spec.model.version) != (section.get("name"), section.get("version")):
        raise SpecError(
            f"{path}: key 'model': expected {section.get('name')} version {section.get('version')}, which the platform "
            f"has, got {spec.model.name} version {spec.model.version}",
            hint="calibrate again: `tensorop platforms check NAME --runner ssh://board`",
        )
    if max(spec.residual.after, spec.residual.known) > EXPLAINED:
        raise SpecError(
            f"{path}: key 'residual': expected at most {EXPLAINED}, got {spec.residual.after} after the fit and "
            f"{spec.residual.known} for benchmarks that no constant affects: the model does not describe this board"
        )
    out = _settled(section, spec, path)
    for key, constant in spec.constants.items():
        if constant.determined:
            source = f"fitted on {spec.board.get('cpu', 'a board')}: {path.name}"
            out = put(out, key.split("."), _fitted(out, key, constant.value, source, path))
    return {**out, "calibrated": True}


def _settled(section: Mapping[str, Any], spec: Calibration, path: Path) -> dict[str, Any]:
    """The section with shown alternatives as its best fit, and without refuted ones."""
    known = section.get("alternatives") or {}
    for name in spec.alternatives:
        if name not in known:
            raise SpecError(f"{path}: key 'alternatives': expected alternatives of the model, got '{name}'")
    shown = [name for name, verdict in spec.alternatives.items() if verdict == "shown"]
    out = switched(section, shown, f"shown by {spec.board.get('cpu', 'a board')}: {path.name}")
    left = {n: part for n, part in (out.get("alternatives") or {}).items() if spec.alternatives.get(n) != "refuted"}
    return {**out, "alternatives": left} if known else out


def _fitted(section: Mapping[str, Any], key: str, value: float, source: str, path: Path) -> dict[str, Any]:
    """The mapping at a dotted key of a model with a fitted constant."""
    known: Any = section
    for part in key.split("."):
        known = known.get(part) if isinstance(known, Mapping) else None
    if not isinstance(known, Mapping):
        raise SpecError(
            f"{path}: key 'constants.{key}': expected the name of a constant of the model; it has none of this name"
        )
    kept = {name: item for name, item in known.items() if name not in _RANGE}
    if "value" in kept:
        return {**kept, "value": value, "source": source}
    scaled = {name: item * value if name in _TABLE[3:] else item for name, item in kept.items()}
    return {**scaled, "source": source}
