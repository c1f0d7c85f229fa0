"""What a kit measured, into its product: other trees, the same variants, verified and put in place by one rename."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tensorop.commands import opened, report, verify
from tensorop.dispatch import choice
from tensorop.errors import JobError
from tensorop.kits import held as holding
from tensorop.kits.held import KEPT, SCHEMA, Held
from tensorop.kits.result import Result
from tensorop.model.verdict import Seed, Verdict
from tensorop.model.winner import Tree, Winners
from tensorop.package import plugin_record, publish
from tensorop.package.product import product
from tensorop.package.sources import OperatorPart
from tensorop.store import journal
from tensorop.store.lock import FolderLock

MEASURED = "measured"  # the key of a product's facts
SMALL = 4e6  # flops of a problem that is run here once more: an emulator is slow
FEW = 64 << 20  # bytes of its operands


@dataclass(frozen=True)
class Imported:
    """regret: by dtype, before and after, of what the trees cost on shapes left out of their making."""

    folder: Path
    said: str
    rows: int
    regret: Mapping[str, tuple[float | None, float | None]]
    verdicts: tuple[Verdict, ...]

    def to_json(self) -> dict[str, Any]:
        told = {"folder": str(self.folder), "measured": self.said, "rows": self.rows}
        regret = {dtype: {"before": old, "after": new} for dtype, (old, new) in self.regret.items()}
        return {**told, "regret": regret, "verdicts": [verdict.to_json() for verdict in self.verdicts]}


def retune(
    held: Held, result: Result, *, plugins: tuple[Path, ...] = (), jobs: int = 2, seed: Seed | None = None
) -> Imported:
    """Raises JobError where the new library does not verify here or cannot be put in place; the product is unchanged
    then, as in every error."""
    lock = FolderLock(held.root)
    try:
        return _retune(held, result, plugins, jobs, seed)
    finally:
        lock.release()


def _retune(held: Held, result: Result, plugins: tuple[Path, ...], jobs: int, seed: Seed | None) -> Imported:
    kits = [kit for kit in holding.kept(held.root) if kit["kit"] != result.kit or not _same_board(kit, result)]
    own = {"kit": result.kit, "machine": dict(result.machine), "date": result.date, "rows": list(result.rows)}
    here = [kit for kit in kits if _same_board(kit, result)]
    kits.append(own)
    vlen = int(result.machine["vlen"])
    winners = [_chosen(held, of_dtype, [*here, own], vlen) for of_dtype in held.winners]
    said = f"measured on {result.where} by kit, {result.date[:10]}"
    facts = {**held.of_operator["facts"], MEASURED: [_told(kit) for kit in kits]}
    line = f"Grown on ns {said}"
    if any(len(w.trees) > 1 for w in winners):
        line += f", where VLEN {vlen} is served; else on {facts.get('unit', 'what the product was made on')}"
    made = product(held.opened.platform, [OperatorPart(held.operator, winners, facts, line, held.texts)], jobs=jobs)
    staged = publish.stage(made, held.root)
    try:
        anew = opened.staged(staged, held.operator, held.opened.platform, plugins)
        verdicts = tuple(verify.quick(anew, held.opened.reach(), seed or Seed.draw(), _problems(held, result)))
        failed = next((verdict for verdict in verdicts if not verdict.ok), None)
        if failed is not None:
            raise JobError(
                f"the re-tuned library is wrong here and is not published: {failed.outcome.message}",
                hint="the product is unchanged; please report this",
            )
        kept = json.dumps({"schema": SCHEMA, "kits": kits}, indent=1, allow_nan=False) + "\n"
        results = dict(held.told.get("results") or {})
        publish.publish(
            staged, held.root, extra={KEPT: kept.encode()}, results=results, more=plugin_record.kept(held.told)
        )
    finally:
        publish.discard(staged)
    if journal.journal_path(held.root).is_file():
        report.write(held.root, plugins=plugins)
    pairs = zip(held.winners, winners, strict=True)
    regret = {old.dtype: (holding.place(old, vlen).regret, holding.place(new, vlen).regret) for old, new in pairs}
    return Imported(held.root, said, len(result.rows), regret, verdicts)


def _told(kit: Mapping[str, Any]) -> dict[str, Any]:
    """What the manifest and the card say of a kit."""
    machine = {name: kit["machine"][name] for name in ("board", "vlen", "emulator")}
    return {**machine, "date": kit["date"], "kit": kit["kit"], "rows": len(kit["rows"])}


def _same_board(kit: Mapping[str, Any], result: Result) -> bool:
    return holding.board_of(kit) == holding.board_of({"machine": result.machine})


def _chosen(held: Held, given: Winners, kits: Sequence[Mapping[str, Any]], vlen: int) -> Winners:
    """The same variants with another tree where this board's cores are served."""
    rows = holding.measured(held.operator, given, kits)
    if len(given.all) < 2 or not rows:
        return given
    platform = held.opened.platform
    at = vlen if vlen in platform.vlens else platform.vlens[0]
    found = choice.winners(held.operator, platform, given.dtype, given.variants, {at: rows}, direct=given.direct)
    there = holding.place(given, vlen)
    trees = tuple(_tree(tree, there, found.trees[0]) for tree in given.trees)
    unasked = found.unasked if len(trees) == 1 else min(given.unasked, found.unasked)
    return replace(given, trees=trees, unasked=unasked)


def _tree(tree: Tree, replaced: Tree, new: Tree) -> Tree:
    return replace(new, vlen=tree.vlen) if tree is replaced else tree


def _problems(held: Held, result: Result) -> Iterator[Any]:
    """What was timed, as the library serves it, where it is small enough to be run here once more."""
    for row in result.rows:
        problem = held.operator.reference.problem(row["dtype"], row["dims"], row["options"])
        reference = held.operator.reference
        if reference.work(problem) <= SMALL and reference.traffic(problem) <= FEW:
            yield problem
