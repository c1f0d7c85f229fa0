"""`report`: everything a run and its product can tell, as a record and as a page."""

from __future__ import annotations

from pathlib import Path

from tensorop.errors import JobError, UsageError
from tensorop.package import plugin_record
from tensorop.package.product import MANIFEST
from tensorop.report import gather
from tensorop.report.gather import Report
from tensorop.store import durable

PAGE = Path("share") / "tensorop" / "report.html"


def report(folder: Path, *, plugins: tuple[Path, ...] = ()) -> tuple[Report, Path]:
    """Gathers the record of a folder and writes share/tensorop/report.html in it. Returns both.

    Raises UsageError when the folder holds no run or cannot be written, JobError when its journal is damaged.
    """
    if not folder.exists():
        raise UsageError(f"{folder} does not exist", hint="build a product first: `tensorop <operator> --out DIR`")
    from tensorop.report import page  # matplotlib, without which other commands start in half the time

    try:
        record = gather.gather(folder, plugin_record.reopened(folder / MANIFEST, plugins))
        text = page.page(record)
    except (UsageError, JobError, OSError):
        raise
    except Exception as error:  # files of others hold anything, and every part of the page reads them
        raise JobError(
            f"the files in {folder / 'share' / 'tensorop'} cannot be shown: {type(error).__name__}: {error!s:.300}",
            hint="journal.jsonl, manifest.json and bench.json must be as tensorop wrote them; build the product again",
        ) from error
    return record, durable.write(folder / PAGE, text)


def write(folder: Path, *, plugins: tuple[Path, ...] = ()) -> Path:
    """The page alone; returns its path. Parameters and errors as `report`."""
    return report(folder, plugins=plugins)[1]
