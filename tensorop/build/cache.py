"""Built things, keyed by all that went into them: filled aside, published by one rename, never changed.

What is here is executed. So an entry has the digest of its product, written last and down to the disk, and is taken
only where both agree and the folder is this user's; any other is made again.
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

from tensorop import errors, paths
from tensorop.model.kernel import Artifact
from tensorop.model.trial import Outcome
from tensorop.store.durable import sync

_LOG = "log.txt"
_COMMAND = "command.txt"
_DIGEST = "sha256.txt"  # of product, command and log


@dataclass(frozen=True)
class BuildLog:
    """What filled an entry: the command, relative to the entry's folder, and what the tool said."""

    command: tuple[str, ...]
    log: str = ""


def key_of(*parts: object) -> str:
    """A name made of everything that can change a product; parts are compared by their repr."""
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
    """The product of a key, made by `fill(folder)` when it is not there; an Outcome of `fill` is handed on, not kept.

    root: instead of the user's cache. Safe in threads and processes: who finishes second takes the first one's.
    Raises JobError when the folder cannot be written.
    """
    try:
        base = root / kind if root is not None else paths.cache_dir("build", kind)
        folder = base / key[:2] / key
        if not _whole(folder, product):
            made = _publish(folder, product, fill, lasting=root is None)
            if made is not None:
                return made
        command = tuple(shlex.split((folder / _COMMAND).read_text()))
        return Artifact(folder / product, key, command, (folder / _LOG).read_text())
    except OSError as e:
        way = (
            "give another --out or TMPDIR"
            if root is not None
            else "point TENSOROP_CACHE at a folder that can be written"
        )
        raise errors.JobError(
            f"cannot write what was built below {e.filename or root or 'the cache'}: {e.strerror or e}",
            hint=f"free some space, or {way}",
        ) from e


def _publish(folder: Path, product: str, fill: Callable[[Path], BuildLog | Outcome], lasting: bool) -> Outcome | None:
    """lasting: down to the disk; a job's own candidates are made again in no time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        made = fill(scratch)
        if isinstance(made, Outcome):
            return made
        (scratch / _COMMAND).write_text(shlex.join(made.command) + "\n")
        (scratch / _LOG).write_text(made.log)
        (scratch / _DIGEST).write_text(_digest(scratch, product))
        for name in (product, _DIGEST) if lasting else ():
            sync(scratch / name)
        scratch.chmod(0o755)
        with contextlib.suppress(OSError):  # somebody else was first
            scratch.rename(folder)
        if not _whole(folder, product):
            _remove(folder)  # torn by whatever ended an earlier run, or changed since
            scratch.rename(folder)
        return None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _whole(folder: Path, product: str) -> bool:
    """Whether an entry is there, as it was published, in a folder that nobody else can have filled."""
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
