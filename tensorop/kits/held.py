"""A product's winners and trees, made again of its manifest; and what kits have measured of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tensorop.author import offline
from tensorop.commands.opened import Opened
from tensorop.dispatch.choice import CostRow
from tensorop.errors import JobError, SpecError, UsageError
from tensorop.kits import rows as kitrows
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.point import Point
from tensorop.model.winner import Tree, Winners, by_operator, trees_of
from tensorop.package.product import MANIFEST, SHARE
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.specs import files, jsontext
from tensorop.store import journal

KEPT = f"{SHARE}/kits.json"
SCHEMA = 1
MOST = 4096  # problems of a dtype on one board: what a choice of them takes grows with their square
_AGAIN = "make the product again with this version: the same `tensorop <operator>` command"


@dataclass(frozen=True)
class Held:
    """A product as a kit needs it. told: its manifest; digest: of what its kits are of, which an import leaves."""

    opened: Opened
    root: Path
    told: Mapping[str, Any]
    winners: tuple[Winners, ...]
    texts: Texts

    @property
    def operator(self) -> Operator:
        return self.opened.operator

    @property
    def of_operator(self) -> Mapping[str, Any]:
        return by_operator(self.told)[self.operator.name]

    @property
    def digest(self) -> str:
        return digest(self.told, self.operator.name)

    @property
    def archive(self) -> Path:
        return self.opened.library.with_suffix(".a")


def digest(told: Mapping[str, Any], operator: str) -> str:
    """Of what a product's kits are of, by its manifest."""
    variants = {name: of_dtype["variants"] for name, of_dtype in by_operator(told)[operator]["dtypes"].items()}
    parts = [operator, told["platform"], told["compiler"], told["tool"], variants]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read(opened: Opened) -> Held:
    """Raises UsageError for a library outside of its product and for one without what a kit needs."""
    root = opened.root
    if root is None:
        raise UsageError(f"{opened.library} is not in a product's folder", hint="give the folder, not the library")
    try:
        told = jsontext.loads(files.read(root / MANIFEST, files.JSON))
        dtypes = by_operator(told)[opened.operator.name]["dtypes"]
        past = journal.read(root) if journal.journal_path(root).is_file() else None
        templates = _templates(opened.operator, past.templates.values() if past else ())
        winners = tuple(_winners(opened, name, of_dtype, templates) for name, of_dtype in dtypes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"{root / MANIFEST} does not say what a kit needs: {type(error).__name__}: {error!s:.200}", hint=_AGAIN
        ) from None
    held = Held(opened, root, told, winners, Texts(past.texts if past else None))
    try:
        files.require(held.archive, files.LIBRARY)
    except FileNotFoundError:
        raise UsageError(f"{held.archive} is absent, and a kit is linked with it", hint=_AGAIN) from None
    except OSError as error:
        raise UsageError(f"{held.archive} cannot be read: {error.strerror}", hint=_AGAIN) from None
    return held


def _templates(operator: Operator, others: Any) -> dict[str, KernelTemplate]:
    direct = offline.direct(operator.folder, operator.name)
    own = [*offline.templates(operator.folder, operator.name, operator.added), *([direct] if direct else [])]
    return {template.digest: template for template in (*others, *own)}


def _winners(opened: Opened, dtype: str, told: Mapping[str, Any], templates: Mapping[str, KernelTemplate]) -> Winners:
    variants = []
    for one in told["variants"]:
        if one["digest"] not in templates:
            raise UsageError(
                f"template '{one['template']}' ({one['digest']}) of {opened.library.name} is not here: neither shipped "
                "as it was, nor in a journal beside the product",
                hint=_AGAIN,
            )
        variant = instantiate.variant(opened.operator, templates[one["digest"]], dtype, Point.of(one["point"]))
        if variant.id != one["id"]:
            raise UsageError(f"variant {one['id']} of {dtype} is another one by this version", hint=_AGAIN)
        variants.append(replace(variant, specialisations=tuple(map(int, one.get("specialisations", ())))))
    direct = variants.pop() if variants[-1].template.name == offline.DIRECT else None
    return Winners(dtype, tuple(variants), trees_of(told), direct, int(told.get("direct", {}).get("most_flops", 0)))


# --- what kits have measured --------------------------------------------------------------------------------------


def kept(root: Path, *, device: bool = False) -> list[dict[str, Any]]:
    """What earlier kits brought, in order. device: of a product for one. Raises JobError where that is damaged."""
    path = root / KEPT
    try:
        told = jsontext.loads(files.read(path, files.JSON))
        if told["schema"] != SCHEMA:
            raise ValueError(f"schema {told['schema']}")
        for number, kit in enumerate(told["kits"]):
            kitrows.kept(kit, f"kit {number}", device)
        return list(told["kits"])
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, SpecError) as error:
        raise JobError(
            f"{path} is damaged: {error!s:.300}",
            hint="take it away; what kits measured is imported again from their files",
        ) from None


def board_of(kit: Mapping[str, Any]) -> tuple[Any, ...]:
    """Figures of one board are told from another's."""
    machine = kit["machine"]
    return tuple(machine[name] for name in ("arch", "board", "vlen", "emulator"))


def measured(operator: Operator, winners: Winners, kits: Sequence[Mapping[str, Any]]) -> list[CostRow]:
    """What these kits say of one dtype, the last one of a problem."""
    found: dict[str, CostRow] = {}
    for row in (row for kit in kits for row in kit["rows"]):
        if row["dtype"] == winners.dtype:
            if set(row["dims"]) != set(operator.reference.shapes.names):
                raise JobError(
                    f"{KEPT} has a problem of another operator: {row['dims']!r:.100}",
                    hint="take it away; what kits measured is imported again from their files",
                )
            problem = operator.reference.problem(winners.dtype, row["dims"], row["options"])
            costs = tuple(None if cost is None else float(cost) for cost in row["ns"])
            if len(costs) == len(winners.all) and any(cost is not None for cost in costs):
                found[problem.label] = CostRow(problem, costs)
    if len(found) > MOST:
        raise JobError(
            f"kits measured {len(found)} problems of {winners.dtype} on one board, at most {MOST} are chosen by",
            hint=f"export a kit with fewer --probes; without {KEPT} what earlier kits measured is forgotten",
        )
    return list(found.values())


def place(winners: Winners, vlen: int) -> Tree:
    """The tree that serves cores of this VLEN."""
    shorter = [tree for tree in winners.trees if tree.vlen <= vlen]
    return shorter[-1] if shorter else winners.trees[0]
