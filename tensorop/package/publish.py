"""Puts a product into its folder: assembles it beside the folder, then swaps the two by one rename."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tensorop import errors
from tensorop.package.product import MANIFEST, SHARE, Product
from tensorop.process import places
from tensorop.specs import files as reading
from tensorop.specs import jsontext

_PREFIX_FOLDERS = ("include", "lib", "share")
# Files that a run writes below share/tensorop beside the product.
_OF_RUNS = tuple(
    f"{SHARE}/{name}" for name in ("journal.jsonl", "bench.json", "report.html", "report.json", "kits.json")
)
_OF_BENCH = f"{SHARE}/threads.json"  # `bench --threads 1,2` measures this library, so a newer one does not keep it
MOST_NAME, MOST_PATH = 200, 3000  # bytes, so that the longest names below a product's folder still fit
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)


@dataclass(frozen=True)
class Staged:
    """A complete product in a folder beside its final place. `folder` can be tested like the final one."""

    product: Product
    folder: Path

    @property
    def library(self) -> Path:
        """The operator's shared library."""
        return self.folder / self.product.library


def stage(product: Product, folder: Path) -> Staged:
    """Assembles the product beside `folder`, and replaces one that was staged there before.

    Raises JobError if include/, lib/ or share/ of `folder` hold files that tensorop did not write, if the parent folder
    cannot be written, or if the disk is full. It then removes the half-written product.
    """
    folder = folder.resolve()  # a symbolic link stays in place
    _refuse_foreign(folder, product.files)
    scratch = scratch_of(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove(scratch)
        scratch.mkdir(mode=0o755)
        _write(scratch, product.files, product.links)
    except OSError as error:
        _remove(scratch)
        raise _cannot(folder, error) from error
    except BaseException:  # Ctrl-C
        _remove(scratch)
        raise
    return Staged(product, scratch)


def scratch_of(folder: Path) -> Path:
    """The folder in which a product for `folder` is assembled."""
    place = folder.resolve()
    return place.with_name(f".{place.name}.staged")


def publish(
    staged: Staged,
    folder: Path,
    *,
    extra: Mapping[str, bytes] | None = None,
    results: Mapping[str, object] | None = None,
    more: Mapping[str, object] | None = None,
) -> Path:
    """Puts a staged product at `folder` and returns the path. Readers see the old product or the new one, never a mix.

    extra: further files by their path below the folder, e.g. the report; results: JSON values for the manifest's
    `results`, e.g. verdicts; more: further keys of the manifest. The journal stays, and so does everything outside of
    include/, lib/ and share/.
    Raises JobError as `stage` does; the old product is unchanged then.
    """
    asked, folder = folder.absolute(), folder.resolve()
    added = dict(extra or {})
    entries = dict(more or {}) | ({} if results is None else {"results": results})
    if entries:
        whole = json.loads(staged.product.files[MANIFEST]) | entries
        added[MANIFEST] = (json.dumps(whole, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()
    _refuse_foreign(folder, {**staged.product.files, **added})
    try:
        _write(staged.folder, added, {})
        _keep(folder, staged.folder, added)
        _swap(staged.folder, folder)
    except OSError as error:
        raise _cannot(folder, error) from error
    finally:
        _remove(staged.folder)
    return asked


def check_place(folder: Path, starts: bool = False) -> None:
    """Raises JobError or UsageError if no product can be put at `folder`. Call it before a run.

    starts: whether this machine starts programs that are built there
    """
    longest = max((len(os.fsencode(part)) for part in folder.parts), default=0)
    if longest > MOST_NAME or len(os.fsencode(folder.absolute())) > MOST_PATH:
        raise errors.UsageError(
            f"--out is too long: its longest name has {longest} bytes; names may have {MOST_NAME}, whole paths "
            f"{MOST_PATH}",
            hint="choose a shorter --out",
        )
    try:
        if folder.is_symlink() and not folder.exists():
            raise errors.UsageError(
                f"--out {folder} is a broken link", hint="create the folder that it names, or choose another --out"
            )
        if folder.is_dir():
            _refuse_foreign(folder.resolve(), {})
            _refuse_used(folder)
        if starts:
            places.require_programs("--out", folder, "choose another --out")
    except (OSError, RuntimeError) as error:  # a link to itself
        raise errors.UsageError(
            f"{folder} cannot be a product's folder: {error}", hint="choose another --out"
        ) from None


def discard(staged: Staged) -> None:
    """Removes a product that will not be published."""
    _remove(staged.folder)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _write(root: Path, files: Mapping[str, bytes], links: Mapping[str, str]) -> None:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        path.chmod(0o755 if ".so" in path.name else 0o644)
    for name, target in links.items():
        (root / name).symlink_to(target)


def _keep(folder: Path, scratch: Path, files: Mapping[str, bytes]) -> None:
    """Hard-links a run's files into the new folder.

    An open journal stays the same file, so writes to it continue.
    """
    for name in _OF_RUNS:
        old, new = folder / name, scratch / name
        if name in files or not old.is_file():
            continue
        new.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(old, new)
        except OSError:  # a file system without hard links
            shutil.copy2(old, new)


def _swap(scratch: Path, folder: Path) -> None:
    if not folder.exists():
        scratch.rename(folder)
        return
    _exchange(scratch, folder)
    # Now `scratch` is the old folder; entries that are not the product's move to the new one.
    for entry in scratch.iterdir():
        if entry.name not in _PREFIX_FOLDERS:
            entry.rename(folder / entry.name)


def _exchange(one: Path, other: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "renameat2"):
        here = ctypes.c_int(-100)  # AT_FDCWD
        if libc.renameat2(here, os.fsencode(one), here, os.fsencode(other), ctypes.c_uint(_EXCHANGE)) == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
            raise OSError(number, os.strerror(number), str(other))
    # Without support for exchange the folder is absent for a moment; if the second step fails, the old one returns.
    aside = one.with_name(f"{one.name}-old")
    other.rename(aside)
    try:
        one.rename(other)
    except OSError:
        aside.rename(other)
        raise
    aside.rename(one)


def _refuse_foreign(folder: Path, files: Mapping[str, bytes]) -> None:
    """Raises JobError if a product would replace files of others, e.g. in /usr/local."""
    if folder.exists() and not folder.is_dir():
        raise errors.JobError(f"--out {folder} is a file; expected a folder", hint="choose another --out")
    known = {*files, *_OF_RUNS, _OF_BENCH, MANIFEST}
    with contextlib.suppress(OSError, ValueError, AttributeError, KeyError, TypeError):
        known |= set(jsontext.loads(reading.read(folder / MANIFEST, reading.JSON))["files"])
    for top in _PREFIX_FOLDERS:
        for path in sorted((folder / top).rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and not path.is_symlink() and name not in known:
                raise errors.JobError(
                    f"{folder} contains {name}, which tensorop did not write and would delete (it replaces include/, "
                    "lib/ and share/)",
                    hint="choose another --out, or move that file away",
                )


def _refuse_used(folder: Path) -> None:
    """Raises UsageError if a folder has files but no product or run of tensorop."""
    if (folder / MANIFEST).is_file() or (folder / f"{SHARE}/journal.jsonl").is_file():
        return
    others = sorted(entry.name for entry in folder.iterdir() if entry.name not in (*_PREFIX_FOLDERS, "work"))
    if others:
        raise errors.UsageError(
            f"--out {folder} is in use: expected a new or empty folder, or an earlier product or run of tensorop; it "
            f"contains {others[0]}" + (f" and {len(others) - 1} more" if others[1:] else ""),
            hint="choose a new folder; tensorop writes include/, lib/, share/ and work/ there",
        )


def _cannot(folder: Path, error: OSError) -> errors.JobError:
    if error.errno in places.FULL:
        return errors.JobError(
            f"the disk is full: the product does not fit beside {folder}; what was there is unchanged",
            hint="free disk space and run the same command again; it resumes",
        )
    return errors.JobError(
        f"cannot write the product to {folder}: {error.strerror or error} ({places.written(error)}); nothing there "
        "changed",
        hint="choose another --out, or make the folder and the one it lies in writable",
    )
