"""The cross compiler: clang with every target's headers, from PyPI's `ziglang`; and the host's own C compiler."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorop import errors, paths, settings
from tensorop.model.architecture import architecture, host_arch
from tensorop.process import children
from tensorop.provision import cache, process

_MOST_S = 600.0
HINT = "pip install ziglang==0.17.0"
CC_HINT = "apt-get install gcc libc6-dev"


def zig() -> Path:
    """The zig binary of this interpreter's `ziglang`, by a path without links. Raises MissingTool without it.

    `python -m ziglang` starts the same file; the direct path saves starting an interpreter for each build.
    """
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise errors.MissingTool("the Python package ziglang (the cross compiler) is not installed", hint=HINT)
    binary = (Path(spec.submodule_search_locations[0]) / "zig").resolve()
    if not binary.is_file():
        raise errors.MissingTool(
            f"{binary} is missing: the package ziglang is damaged", hint=f"{HINT} --force-reinstall"
        )
    return binary


def zig_cc() -> tuple[str, ...]:
    """The C compiler's argv prefix; run it with `zig_environment()`. Raises MissingTool."""
    return (str(zig()), "cc")


def zig_environment(local: Path | None = None) -> dict[str, str]:
    """The environment of zig. Its caches lie below tensorop's, so that an empty or unwritable home is harmless.

    It has nothing else of this process's environment, which may hold keys: source code can make a compiler read files.
    local: the cache of this job's objects, which zig never removes; by default beside the libraries.
    """
    home = paths.cache_dir("zig")
    return {
        **settings.plain_environment(),
        "ZIG_GLOBAL_CACHE_DIR": str(home.resolve()),
        "ZIG_LOCAL_CACHE_DIR": str((local or home).resolve()),
    }


def run(argv: Sequence[str], failure: str, *, hint: str) -> None:
    """Compiles or links a part of tensorop.

    Raises MissingTool with the failure and its reason, JobError if the disk is full.
    """
    try:
        done = children.run(argv, env=zig_environment(), timeout=_MOST_S)
    except subprocess.TimeoutExpired:
        raise errors.MissingTool(f"{failure}: {argv[0]} took more than {_MOST_S:g} s", hint=hint) from None
    if done.returncode != 0:
        reason = "; ".join(done.stderr.strip().splitlines()[:2]) or f"exit status {done.returncode}"
        process.require_room(done.stderr, failure)
        raise errors.MissingTool(f"{failure}: {reason}", hint=hint)


@dataclass(frozen=True)
class OwnPart:
    """A part of tensorop for this machine, linked without a C library, so that zig need not build one."""

    what: str  # in messages
    files: tuple[str, ...]  # of native/: the source, then its headers
    name: str  # of the built file
    form: str  # -static or -shared
    flags: tuple[str, ...]

    def build(self) -> Path:
        """Builds the part once per source and compiler; offline too, since nothing is fetched.

        Raises MissingTool without a compiler, JobError if the cache cannot be written.
        """
        return _built(self, settings.read().cache)


@functools.cache
def _built(part: OwnPart, root: Path) -> Path:
    triple = architecture(host_arch()).static_triple
    files = [paths.native_dir() / file for file in part.files]
    words = "\0".join((triple, zig_version(), part.form, *part.flags))
    made_of = words.encode() + b"\0".join(file.read_bytes() for file in files)

    def fill(folder: Path) -> None:
        made = folder / "made.o"
        steps = (
            (*part.flags, "-c", str(files[0]), "-o", str(made)),
            (part.form, "-nostdlib", str(made), "-o", f"{folder}/{part.name}"),
        )
        for step in steps:
            run([*zig_cc(), "-target", triple, *step], f"{part.what} cannot be built", hint="tensorop doctor")
        made.unlink()

    folder = root / "own" / f"{part.name}-{hashlib.sha256(made_of).hexdigest()[:16]}"
    entry = cache.CacheEntry(folder, fill, part.what, command="tensorop doctor", doing="building")
    return entry.bring(offline=False) / part.name


def zig_version() -> str:
    """The output of `zig version`, e.g. 0.17.0."""
    return process.run([str(zig()), "version"], doing="asking zig for its version", hint=HINT).strip()


def host_cc() -> Path:
    """The host's C compiler. Raises MissingTool."""
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return Path(found)
    raise errors.MissingTool("no C compiler (cc, gcc, clang) on the PATH", hint=CC_HINT)
