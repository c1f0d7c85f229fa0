"""Kits of products for devices: as those for processors, but that the product's backend knows what is in them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from tensorop import __version__
from tensorop.commands.opened import Opened
from tensorop.errors import JobError, UsageError
from tensorop.kits import export as exporting
from tensorop.kits import held as holding
from tensorop.kits import result as results
from tensorop.kits.export import Made
from tensorop.kits.held import KEPT, SCHEMA
from tensorop.model.winner import by_operator
from tensorop.package import plugin_record, publish
from tensorop.package.product import MANIFEST
from tensorop.specs import files, jsontext
from tensorop.store.lock import FolderLock
from tensorop.target import Asked, Target, Unmeasured

_AGAIN = "make the product again with this version: the same `tensorop <operator>` command"
KINDS = ("control", "verify", "time")


@dataclass(frozen=True)
class Device:
    """A product for a device. told: its manifest."""

    opened: Opened
    root: Path
    told: Mapping[str, Any]

    @property
    def held(self) -> Unmeasured:
        operator = self.opened.operator
        return Unmeasured(operator, self.root, by_operator(self.told)[operator.name])

    @property
    def digest(self) -> str:
        return holding.digest(self.told, self.opened.operator.name)

    @cached_property
    def target(self) -> Target:
        return self.opened.reach()


@dataclass(frozen=True)
class Imported:
    """said: where and when; told: by dtype, what the choice costs and how far predictions are off, before and after;
    against: the geometric mean of the baseline's best over the choice by what was known before, and over the fastest
    variant, where it was measured."""

    folder: Path
    said: str
    rows: int
    unmeasured: int
    told: Mapping[str, Any]
    against: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        whole = {"folder": str(self.folder), "measured": self.said, "rows": self.rows, "unmeasured": self.unmeasured}
        return {**whole, "choice": dict(self.told), "against": dict(self.against)}


def read(opened: Opened) -> Device:
    """Raises UsageError for a library outside of its product."""
    if opened.root is None:
        raise UsageError(f"{opened.library} is not in a product's folder", hint="give the folder, not the library")
    try:
        return Device(opened, opened.root, jsontext.loads(files.read(opened.root / MANIFEST, files.JSON)))
    except (OSError, ValueError) as error:
        raise UsageError(f"{opened.root / MANIFEST} cannot be read: {error!s:.200}", hint=_AGAIN) from None


def export(of: Device, out: Path, asked: Asked, kinds: Sequence[str] = KINDS) -> Made:
    """Writes the folder `out` and `out`.tar.gz; kinds: of steps. Raises as `kit.export.export`."""
    exporting.free(out)
    of.opened.require_fit()  # a kit is linked with it and runs elsewhere
    platform = of.opened.platform
    try:
        files, steps = of.target.kit(of.held, replace(asked, before=len(holding.kept(of.root, device=True))))
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise _strange(of.root, error) from None
    steps = [step for step in steps if step.split()[0] in ("settings", *kinds)]
    text = "\n".join([f"product {of.digest}", f"platform {platform.name}", *steps, ""])
    kit = hashlib.sha256(hashlib.sha256(files["kit"]).digest() + text.encode()).hexdigest()
    counts = {kind: sum(step.startswith(f"{kind} ") for step in steps) for kind in KINDS}
    manifest = {
        "schema": 1,
        "kit": kit,
        "product": of.digest,
        "operator": of.opened.operator.name,
        "platform": {"name": platform.name, "device": dict(platform.device or {})},
        "tool": {"name": "tensorop", "version": __version__},
        "steps": counts,
    }
    whole = {
        **files,
        "plan.txt": f"tensorop-device-kit 1\nkit {kit}\n{text}".encode(),
        "manifest.json": (json.dumps(manifest, indent=1) + "\n").encode(),
    }
    return exporting.written(out, whole, kit, counts)


def retune(of: Device, path: Path) -> Imported:
    """Raises UsageError for what is no result of this product's kit, JobError for one that is cut off, says that the
    library is wrong there, or cannot be put in place; the product is as it was then."""
    lock = FolderLock(of.root)
    try:
        return _retune(of, path)
    finally:
        lock.release()


def _retune(of: Device, path: Path) -> Imported:
    head, *rest = results.lines(path)
    try:
        results.of_product(path, head, of.digest, of.root)
        machine = _machine(of, path, head, rest)
        rows = results.whole(path, head, rest, machine["board"])
        timed = [row for row in rows if row["kind"] == "time"]
        kept = [{name: row[name] for name in ("of", "arms", "chosen", "date", "mhz", "watts")} for row in _good(timed)]
        _require_planned(of, path, timed)
        own = {"kit": head["kit"], "machine": dict(machine), "date": rows[-1]["date"], "rows": kept}
        cases = sum(int(row["cases"]) for row in rows if row["kind"] == "verify")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UsageError(
            f"{path} is damaged: {type(error).__name__}: {error!s:.200}", hint="bring the file here again"
        ) from None
    if not kept:
        raise JobError(f"{path} has no figure: nothing could be timed there", hint="./run-kit says why")
    before = [kit for kit in holding.kept(of.root, device=True) if kit["kit"] != own["kit"] or not _same(kit, machine)]
    all_rows = [row for kit in before if _same(kit, machine) for row in kit["rows"]] + kept
    said = f"measured on {' '.join(machine['board'].split()):.80} by kit, {own['date']:.10}"
    try:
        made, told = of.target.retuned(of.held, all_rows, said)
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise _strange(of.root, error) from None
    staged = publish.stage(made, of.root)
    try:
        text = json.dumps({"schema": SCHEMA, "kits": [*before, own]}, indent=1, allow_nan=False) + "\n"
        verified = {"dtype": ", ".join(of.opened.dtypes), "vlen": 0, "threads": 1, "outcome": "ok", "cases": cases}
        said_of = {"choice": told, "verification": [verified]}
        more = plugin_record.kept(of.told)
        publish.publish(staged, of.root, extra={KEPT: text.encode()}, results=said_of, more=more)
    finally:
        publish.discard(staged)
    return Imported(of.root, said, len(kept), len(timed) - len(kept), told, _against(kept))


def _machine(of: Device, path: Path, head: Mapping[str, Any], rest: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    machines = [one["machine"] for one in (head, *rest) if "machine" in one]
    first, device = machines[0], of.opened.platform.device or {}
    if any((one["board"], one["device"]) != (first["board"], first["device"]) for one in machines):
        raise UsageError(f"{path} was measured on several machines", hint="run the kit on one from start to end")
    if not int(device["least"]) <= int(first["capability"]) <= int(device["most"]):
        raise UsageError(
            f"{path} was measured on {first['device']} (compute capability {first['capability']}), "
            f"{of.opened.platform.name} is for {device['least']} to {device['most']}",
            hint="run the kit on a GPU of that kind",
        )
    return dict(first)


def _good(timed: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows with a figure."""
    good = [row for row in timed if row["outcome"] == "ok"]
    return [row for row in good if any("variant" in arm and "us" in arm for arm in row["arms"])]


def _require_planned(of: Device, path: Path, timed: Sequence[Mapping[str, Any]]) -> None:
    """Raises UsageError for a row that no plan of the product's kits has."""
    dtypes = of.held.told["dtypes"]
    count = sum(len(of_dtype["variants"]) for of_dtype in dtypes.values())
    for row in timed:
        told, arms = row["of"], [arm["variant"] for arm in row.get("arms", ()) if "variant" in arm]
        sizes = [told[name] for name in ("m", "n", "k", "batch")]
        if told["dtype"] not in dtypes or not all(0 < size < 1 << 31 for size in sizes):
            wrong, expected = f"the problem {told!r:.120}", f"sizes above 0 of {', '.join(dtypes)}"
        elif len(set(arms)) != len(arms) or any(number >= count for number in (*arms, row.get("chosen", -1))):
            wrong, expected = f"variants {arms!r:.80}", f"different ones, of 0 to {count - 1}"
        else:
            continue
        raise UsageError(
            f"{path} is damaged: row {row['step']} has {wrong}; expected {expected}", hint="bring the file here again"
        )


def _same(kit: Mapping[str, Any], machine: Mapping[str, Any]) -> bool:
    return all(kit["machine"][name] == machine[name] for name in ("board", "device"))


def _against(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    logs: dict[str, list[float]] = {"before": [], "fastest": []}
    for row in rows:
        us = {arm["variant"]: median(arm["us"]) for arm in row["arms"] if "variant" in arm and "us" in arm}
        best = [median(arm["us"]) for arm in row["arms"] if "cublaslt" in arm and "us" in arm]
        if best and row["chosen"] in us:
            logs["before"].append(math.log(min(best) / us[row["chosen"]]))
            logs["fastest"].append(math.log(min(best) / min(us.values())))
    return {name: round(math.exp(sum(of) / len(of)), 4) for name, of in logs.items() if of}


def _strange(root: Path, error: Exception) -> UsageError:
    said = f"{root / MANIFEST} does not say what a kit needs: {type(error).__name__}: {error!s:.200}"
    return UsageError(said, hint=_AGAIN)
