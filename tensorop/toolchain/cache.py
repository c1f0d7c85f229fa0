"""The build cache: entries are keyed by everything that affects a product, published by one rename, and never changed.

Entries are executed. So each has a digest of its product, and is used only if the digest matches and its folder belongs
to this user or root; otherwise it is built again. So nothing is synced to disk: what a power failure cuts has another
digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tensorop import errors, settings
from tensorop.model.kernel import Artifact
from tensorop.model.trial import Outcome
from tensorop.process import places

_LOG = "log.txt"
_COMMAND = "command.txt"
_DIGEST = "sha256.txt"  # of product, command and log


@dataclass(frozen=True)
class BuildLog:
    """How an entry was built."""

    command: tuple[str, ...]  # relative to the entry's folder
    log: str = ""  # the tool's output


def key_of(*parts: object) -> str:
    """A key from everything that can change a product; parts are compared by their repr."""
    return hashlib.sha256("\0".join(repr(p) for p in parts).encode()).hexdigest()[:24]


def content(files: Iterable[Path]) -> str:
    """A digest of files' names and contents."""
    total = hashlib.sha256()
    for file in files:
        data = file.read_bytes()
        total.update(f"{file.name}\0{len(data)}\0".encode())
        total.update(data)
    return total.hexdigest()[:24]


def entry(
    kind: str, key: str, product: str, fill: Callable[[Path], BuildLog | Outcome], root: Path | None = None
) -> Artifact | Outcome:
    """The product of a key, built by `fill(folder)` if it is absent. An Outcome of `fill` is returned, not stored.

    root: replaces the user's cache. Safe in threads and processes: the second one to finish uses the first one's entry.
    Raises JobError if the folder cannot be written.
    """
    base = settings.read().cache / "build" / kind if root is None else root / kind
    folder = base / key[:2] / key
    try:
        if not _whole(folder, product):
            made = _publish(folder, product, fill)
            if made is not None:
                return made
        command = tuple(shlex.split((folder / _COMMAND).read_text()))
        return Artifact(folder / product, key, command, (folder / _LOG).read_text())
    except OSError as e:
        place = Path(places.written(e) or folder)
        cached = place.is_relative_to(settings.read().cache)
        way = "point TENSOROP_CACHE at a folder that can be written" if cached else "choose another --out or TMPDIR"
        raise errors.JobError(
            f"cannot write build results to {place}: {e.strerror or e}",
            hint=f"free disk space, or {way}",
        ) from e


def _publish(folder: Path, product: str, fill: Callable[[Path], BuildLog | Outcome]) -> Outcome | None:
    """Builds an entry aside and renames it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        made = fill(scratch)
        if isinstance(made, Outcome):
            return made
        (scratch / _COMMAND).write_text(shlex.join(made.command) + "\n")
        (scratch / _LOG).write_text(made.log)
        (scratch / _DIGEST).write_text(_digest(scratch, product))
        scratch.chmod(0o755)
        with contextlib.suppress(OSError):  # another process was first
            scratch.rename(folder)
        if not _whole(folder, product):
            _remove(folder)  # damaged by an interrupted run, or changed since
            scratch.rename(folder)
        return None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _whole(folder: Path, product: str) -> bool:
    """Whether an entry exists as it was published, in a folder that no other user can have written."""
    try:
        place = folder.lstat()
        if not stat.S_ISDIR(place.st_mode) or place.st_uid not in (os.geteuid(), 0) or place.st_mode & 0o022:
            return False
        file = (folder / product).lstat()
        recorded = (folder / _DIGEST).read_text()
        return stat.S_ISREG(file.st_mode) and recorded == _digest(folder, product)
    except (OSError, ValueError):
        return False


def _digest(folder: Path, product: str) -> str:
    total = hashlib.sha256()
    for name in (product, _COMMAND, _LOG):
        with (folder / name).open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return f"{total.hexdigest()}\n"


def _remove(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)
