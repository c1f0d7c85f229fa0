"""`report`: everything a run and its product can tell, as a record and as a page."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from tensorop.errors import JobError, UsageError
from tensorop.report import gather, page

PAGE = Path("share") / "tensorop" / "report.html"


def report(folder: Path, *, plugins: tuple[Path, ...] = ()) -> tuple[dict[str, Any], Path]:
    """Gathers the record of a folder and writes share/tensorop/report.html in it. Returns both.

    Raises UsageError when the folder holds no run or cannot be written, JobError when its journal is damaged.
    """
    if not folder.exists():
        raise UsageError(f"{folder} does not exist", hint="make a product with `tensorop <operator> --out DIR`")
    record = gather.gather(folder, plugins)
    return record, _write(folder / PAGE, page.page(record))


def write(folder: Path, *, plugins: tuple[Path, ...] = ()) -> Path:
    """The page alone; returns its path. Parameters and errors as `report`."""
    return report(folder, plugins=plugins)[1]


def _write(path: Path, text: str) -> Path:
    part = None
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        part = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        part.chmod(0o644)
        part.replace(path)
    except OSError as error:
        if part is not None:
            part.unlink(missing_ok=True)
        raise JobError(
            f"cannot write {path}: {error.strerror or error}", hint="free space, or make it writable"
        ) from error
    return path
