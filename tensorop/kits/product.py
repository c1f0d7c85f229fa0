"""The base class of products with kits. Each kind of target has its own subclass."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tensorop import paths
from tensorop.commands.opened import Opened
from tensorop.dispatch.choice import CostRow
from tensorop.errors import JobError, SpecError, UsageError
from tensorop.kits import rows as kitrows
from tensorop.kits.rows import KeptKit, KeptOnBoard, KeptRow, KitMachine, KitRow
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.verdict import Seed, Verdict
from tensorop.model.winner import Winners, by_operator
from tensorop.package.manifest import read
from tensorop.package.product import MANIFEST, SHARE, Product
from tensorop.package.publish import Staged
from tensorop.render import words
from tensorop.specs import files, jsontext
from tensorop.target import KitRequest

KEPT = f"{SHARE}/kits.json"
SCHEMA = 1
MOST = 4096  # problems of a dtype on one board; the time of a choice grows with their square
AGAIN = "build it again with this version: run the same `tensorop <operator>` command"
KINDS = ("control", "verify", "time")  # of steps, in a kit's order


@dataclass(frozen=True)
class KitPlan:
    """A kit without its manifest."""

    kit: str  # its id
    files: Mapping[str, bytes]  # the program, its script, its README and its plan
    steps: Mapping[str, int]  # counts by kind
    facts: Mapping[str, Any]  # entries of the kit's manifest besides those of every kit


@dataclass(frozen=True)
class KitResult:
    """A kit's results, checked against the product."""

    kept: KeptKit  # as the product keeps it
    unmeasured: int  # problems without a time
    cases: int  # verified calls


@dataclass(frozen=True)
class Retuned:
    """A product with a new dispatch, not yet published."""

    product: Product
    results: Mapping[str, Any]  # of its manifest
    record: Mapping[str, Any]  # the choice in `import --format json`
    lines: Sequence[str]  # the choice as text
    kits: Sequence[KeptKit]  # whose results chose

    @property
    def extra(self) -> dict[str, bytes]:
        """The product's file with the kits' results."""
        record = {"schema": SCHEMA, "kits": [kit.model_dump(exclude_unset=True) for kit in self.kits]}
        return {KEPT: (json.dumps(record, indent=1, allow_nan=False) + "\n").encode()}


@dataclass(frozen=True)
class KitProduct(ABC):
    """A product with kits."""

    opened: Opened
    root: Path
    manifest: Mapping[str, Any]

    device: ClassVar[bool] = False  # for a device, not for CPUs
    board: ClassVar[tuple[str, ...]]  # fields of KitMachine that distinguish boards

    @property
    def operator(self) -> Operator:
        return self.opened.operator

    @property
    def platform(self) -> Platform:
        return self.opened.platform

    @property
    def of_operator(self) -> Mapping[str, Any]:
        return by_operator(self.manifest)[self.operator.name]

    @property
    def digest(self) -> str:
        """A digest of operator, platform, compiler, tool and variants; an import of results does not change it."""
        variants = {name: of_dtype["variants"] for name, of_dtype in self.of_operator["dtypes"].items()}
        made_with = [self.manifest[key] for key in ("platform", "compiler", "tool")]
        whole = json.dumps([self.operator.name, *made_with, variants], sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()

    def kept(self) -> list[KeptKit]:
        """The results of earlier kits; see the function `kept`."""
        return kept(self.root, device=self.device)

    @classmethod
    def board_of(cls, machine: KitMachine) -> tuple[object, ...]:
        """A key for boards: only results with equal keys are used together."""
        return tuple(getattr(machine, name) for name in cls.board)

    def script(self, own: Path, arch: str, plan: str) -> bytes:
        """`run-kit`, which tests the machine and starts the kit's program.

        own: the folder of the test, machine.sh; arch: names of the architecture; plan: the plan's file
        """
        text = (paths.native_dir() / "kit" / "run-kit.sh").read_text(encoding="utf-8")
        test = (own / "machine.sh").read_text(encoding="utf-8").rstrip()
        marks = {"MACHINE": test, "ARCH": arch, "PLATFORM": words.in_build_file(self.platform.name), "PLAN": plan}
        for mark, value in marks.items():
            text = text.replace(f"@{mark}@", value)
        return text.encode()

    @abstractmethod
    def plan(self, request: KitRequest) -> KitPlan:
        """Makes a kit. Raises UsageError for an invalid request, JobError if the program cannot be built."""

    @abstractmethod
    def require_machine(self, path: Path, machine: KitMachine) -> None:
        """Raises UsageError if the product does not run on the kit's machine."""

    @abstractmethod
    def require_judged(self, path: Path, rows: Sequence[KitRow]) -> None:
        """Raises UsageError unless the rows have the controls and verifications of the product's kits."""

    @abstractmethod
    def row(self, path: Path, row: KitRow) -> KeptRow | None:
        """A timed row in the product's format, None without a time. Raises UsageError if it fits no plan."""

    @abstractmethod
    def where(self, machine: KitMachine) -> str:
        """A short description of a machine."""

    def source(self, result: KitResult) -> str:
        """Machine and date of a result, for the user."""
        return f"measured on {self.where(result.kept.machine)} by kit, {result.kept.date[:10]}"

    @abstractmethod
    def retuned(self, kits: Sequence[KeptKit], result: KitResult, jobs: int) -> Retuned:
        """The product with a dispatch from the kits' results; the new results are last."""

    def verified(self, staged: Staged, result: KitResult, seed: Seed) -> tuple[Verdict, ...]:
        """Verifies the new library on this machine, if it can run here."""
        return ()


def read_manifest(opened: Opened) -> tuple[Path, dict[str, Any]]:
    """The product's folder and its manifest. Raises UsageError for a library outside its product's folder."""
    root = opened.root
    if root is None:
        raise UsageError(f"{opened.library} is not inside a product's folder", hint="pass the folder of a product")
    try:
        return root, read(root / MANIFEST)
    except (OSError, ValueError) as error:
        raise unreadable(root, error) from None


def unreadable(root: Path, error: Exception) -> UsageError:
    message = f"{root / MANIFEST} does not say what a kit needs: {type(error).__name__}: {error!s:.200}"
    return UsageError(message, hint=AGAIN)


def kept(root: Path, *, device: bool = False) -> list[KeptKit]:
    """The results of earlier kits, in order. device: as in KitProduct. Raises JobError if the file is damaged."""
    path = root / KEPT
    try:
        document = jsontext.loads(files.read(path, files.JSON))
        if not jsontext.is_schema(document["schema"], SCHEMA):
            raise ValueError(f"schema {document['schema']!r:.40}, expected {SCHEMA}")
        return [kitrows.kept(kit, f"kit {number}", device) for number, kit in enumerate(document["kits"])]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, SpecError) as error:
        raise JobError(
            f"{path} is damaged: {error!s:.300}",
            hint="delete it and import the result files of the kits again",
        ) from None


def measured(operator: Operator, winners: Winners, kits: Sequence[KeptKit]) -> list[CostRow]:
    """The kits' costs for one dtype; the last result of a problem counts. Raises JobError for rows that do not fit."""
    found: dict[str, CostRow] = {}
    for row in (row for kit in kits for row in kit.rows if isinstance(row, KeptOnBoard)):
        if row.dtype == winners.dtype:
            if set(row.dims) != set(operator.reference.shapes.names):
                raise JobError(
                    f"{KEPT} contains a shape of another operator: {row.dims!r:.100}",
                    hint="delete it and import the result files of the kits again",
                )
            problem = operator.reference.problem(winners.dtype, row.dims, row.options)
            costs = tuple(None if cost is None else float(cost) for cost in row.ns)
            if len(costs) == len(winners.all) and any(cost is not None for cost in costs):
                found[problem.label] = CostRow(problem, costs)
    if len(found) > MOST:
        raise JobError(
            f"kits measured {len(found)} shapes of {winners.dtype} on one board; at most {MOST} can be used",
            hint=f"export a kit with fewer --probes, or delete {KEPT} to forget the earlier results",
        )
    return list(found.values())
