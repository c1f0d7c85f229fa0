"""Imports a kit's results: the product gets a new dispatch among the same variants, and is published by one rename."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop.commands import report
from tensorop.errors import JobError
from tensorop.kits.product import KitProduct, KitResult
from tensorop.model.verdict import Seed, Verdict
from tensorop.package import plugin_record, publish
from tensorop.store import journal
from tensorop.store.lock import FolderLock


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    folder: Path
    source: str  # machine and date of the measurement
    rows: int  # problems with a time
    unmeasured: int  # problems without a time
    record: Mapping[str, Any]  # the choice, for JSON
    lines: Sequence[str]  # the choice, as text
    verdicts: tuple[Verdict, ...]  # of the new library on this machine, if it can run here

    def to_json(self) -> dict[str, Any]:
        whole = {"folder": str(self.folder), "measured": self.source, "rows": self.rows, "unmeasured": self.unmeasured}
        verdicts = {"verdicts": [verdict.to_json() for verdict in self.verdicts]} if self.verdicts else {}
        return {**whole, **self.record, **verdicts}


def retune(product: KitProduct, result: KitResult, *, jobs: int = 2, seed: Seed | None = None) -> Imported:
    """Imports results into a product.

    Raises JobError if the new library fails its verification here or cannot be published. After any error the product
    is unchanged.
    """
    lock = FolderLock(product.root)
    try:
        return _retune(product, result, jobs, seed or Seed.draw())
    finally:
        lock.release()


def _retune(product: KitProduct, result: KitResult, jobs: int, seed: Seed) -> Imported:
    own = result.kept
    here = product.board_of(own.machine)
    kits = [kit for kit in product.kept() if kit.kit != own.kit or product.board_of(kit.machine) != here]
    kits.append(own)
    made = product.retuned(kits, result, jobs)
    staged = publish.stage(made.product, product.root)
    try:
        verdicts = product.verified(staged, result, seed)
        failed = next((verdict for verdict in verdicts if not verdict.ok), None)
        if failed is not None:
            raise JobError(
                "the improved library failed verification on this machine and was not installed: "
                f"{failed.outcome.message}",
                hint="the product is unchanged; report this as a bug",
            )
        more = plugin_record.kept(product.manifest)
        publish.publish(staged, product.root, extra=made.extra, results=made.results, more=more)
    finally:
        publish.discard(staged)
    if journal.journal_path(product.root).is_file():
        report.write(product.root, plugins=product.opened.plugins)
    rows, record = len(own.rows), made.record
    return Imported(product.root, product.source(result), rows, result.unmeasured, record, made.lines, verdicts)
