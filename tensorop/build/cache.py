"""Built things, keyed by all that went into them: filled aside, published by one rename, never changed."""

from __future__ import annotations

import contextlib
import hashlib
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tensorop import errors, paths
from tensorop.model.kernel import Artifact
from tensorop.model.trial import Outcome

_LOG = "log.txt"
_COMMAND = "command.txt"


@dataclass(frozen=True)
class Made:
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
    kind: str, key: str, product: str, fill: Callable[[Path], Made | Outcome], root: Path | None = None
) -> Artifact | Outcome:
    """The product of a key, made by `fill(folder)` when it is not there; an Outcome of `fill` is handed on, not kept.

    root: instead of the user's cache. Safe in threads and processes: who finishes second takes the first one's.
    Raises JobError when the folder cannot be written.
    """
    try:
        base = root / kind if root is not None else paths.cache_dir("build", kind)
        folder = base / key[:2] / key
        if not (folder / product).is_file():
            made = _publish(folder, product, fill)
            if made is not None:
                return made
        command = tuple(shlex.split((folder / _COMMAND).read_text()))
        return Artifact(folder / product, key, command, (folder / _LOG).read_text())
    except OSError as e:
        raise errors.JobError(
            f"cannot write what was built below {e.filename or root or 'the cache'}: {e.strerror or e}",
            hint="free some space, or point TENSOROP_CACHE at a folder that can be written",
        ) from e


def _publish(folder: Path, product: str, fill: Callable[[Path], Made | Outcome]) -> Outcome | None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        made = fill(scratch)
        if isinstance(made, Outcome):
            return made
        (scratch / _COMMAND).write_text(shlex.join(made.command) + "\n")
        (scratch / _LOG).write_text(made.log)
        scratch.chmod(0o755)
        with contextlib.suppress(OSError):  # somebody else was first
            scratch.rename(folder)
        if not (folder / product).is_file():
            shutil.rmtree(folder, ignore_errors=True)  # torn by whatever ended an earlier run
            scratch.rename(folder)
        return None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
