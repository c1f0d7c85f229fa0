"""Cache entries: a folder is filled aside, listed, and published by one rename; a damaged one is filled again.

An entry has the file `entry.json`, written last: the size of every regular file and the target of every link. If a file
is absent or has another size (a full disk, an interrupted copy), the entry is filled again.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tensorop import errors, paths, settings
from tensorop.process import locks

LIST = "entry.json"
log = logging.getLogger("tensorop")


def entry_path(*parts: str) -> Path:
    """The path of an entry, whether or not it exists."""
    return settings.read().cache.joinpath(*parts)


def by_hand(what: str, arch: str) -> str:
    """The command that fetches a piece."""
    return f"python -m tensorop.provision {what} {arch}"


def _inventory(folder: Path) -> dict[str, int | str]:
    found: dict[str, int | str] = {}
    for root, dirs, files in os.walk(folder):
        for name in (*files, *(d for d in dirs if os.path.islink(os.path.join(root, d)))):
            path = Path(root, name)
            key = str(path.relative_to(folder))
            if key != LIST:
                found[key] = os.readlink(path) if path.is_symlink() else path.stat().st_size
    return found


def is_whole(folder: Path) -> bool:
    """Whether a folder is a finished entry whose files all have their sizes."""
    try:
        listed = json.loads((folder / LIST).read_text())
    except (OSError, ValueError):
        return False
    return isinstance(listed, dict) and listed == _inventory(folder)


@dataclass(frozen=True)
class CacheEntry:
    """A folder in the cache, and the function that fills it."""

    folder: Path
    fill: Callable[[Path], None]  # writes the files into a scratch folder
    what: str  # in messages
    command: str  # fetches the entry by hand
    purpose: str = ""
    megabytes: int = 0  # to fetch, if known
    doing: str = "fetching"

    @property
    def present(self) -> bool:
        return is_whole(self.folder)

    def bring(self, *, offline: bool | None = None) -> Path:
        """The folder, filled if it is absent or damaged.

        Concurrent processes fill it once. The logger "tensorop" announces a download. Raises MissingTool when offline
        and absent, JobError if the cache cannot be written.
        """
        folder, what = self.folder, self.what
        if is_whole(folder):
            return folder
        if settings.read().offline if offline is None else offline:
            raise errors.MissingTool(
                f"{what} is not in the cache ({folder}), and --offline forbids the download",
                hint=f"run once online: {self.command}",
            )
        hint = "free disk space, or set TENSOROP_CACHE to a folder that you may write to"
        with errors.of_system(errors.JobError, f"cannot write {what} into the cache {folder.parent}", hint):
            paths.cache_dir()
            folder.parent.mkdir(parents=True, exist_ok=True)
            with locks.held(Path(f"{folder}.lock"), f"{self.doing} {what}"):
                if not is_whole(folder):
                    size = f" ({self.megabytes} MB)" if self.megabytes else ""
                    purpose = f", {self.purpose}" if self.purpose else ""
                    log.info("%s %s%s%s; it is kept in %s", self.doing, what, size, purpose, folder)
                    _fill(folder, self.fill)
        return folder


def _fill(folder: Path, fill: Callable[[Path], None]) -> None:
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        fill(scratch)
        scratch.chmod(0o755)
        (scratch / LIST).write_text(json.dumps(_inventory(scratch), indent=0, sort_keys=True))
        if folder.exists():
            shutil.rmtree(folder)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
