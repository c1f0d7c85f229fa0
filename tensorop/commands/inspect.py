"""`inspect`: the provenance cards of libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorop.commands import opened
from tensorop.package.card import read_card


def inspect(path: Path) -> dict[str, dict[str, Any]]:
    """By file name the card of a library, or of each operator's library in a product's folder, as it was written.

    Raises UsageError when there is no library or it holds no card, JobError when the card is damaged.
    """
    return {library.name: read_card(library) for library in opened.libraries_of(path)[1]}
