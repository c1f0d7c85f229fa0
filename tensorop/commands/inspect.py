"""`inspect`: the provenance card of a library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorop.commands import opened
from tensorop.package.card import read_card


def inspect(path: Path) -> dict[str, Any]:
    """The card of a library, or of the library in a product's folder, as it was written.

    Raises UsageError when there is no library or it holds no card, JobError when the card is damaged.
    """
    return read_card(opened.library_of(path)[1])
