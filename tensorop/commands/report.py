"""`report`: all data of a run and its product, as a record and as an HTML page."""

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
    """Gathers the record of a folder and writes share/tensorop/report.html in it. Returns the record and the path.

    Raises UsageError if the folder contains no run or cannot be written, JobError if its files are damaged.
    """
    if not folder.exists():
        raise UsageError(f"{folder} does not exist", hint="build a product first: `tensorop <operator> --out DIR`")
    from tensorop.report import page  # imported here, since matplotlib would double the start-up time of other commands

    try:
        record = gather.gather(folder, plugin_record.reopened(folder / MANIFEST, plugins))
        text = page.page(record)
    except (UsageError, JobError, OSError):
        raise
    except Exception as error:  # the files may have been changed, and every part of the page reads them
        raise JobError(
            f"the files in {folder / 'share' / 'tensorop'} cannot be shown: {type(error).__name__}: {error!s:.300}",
            hint="journal.jsonl, manifest.json and bench.json must be as tensorop wrote them; build the product again",
        ) from error
    return record, durable.write(folder / PAGE, text)


def write(folder: Path, *, plugins: tuple[Path, ...] = ()) -> Path:
    """Writes the page and returns its path. Parameters and errors as `report`."""
    return report(folder, plugins=plugins)[1]
