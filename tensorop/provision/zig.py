"""The cross compiler: clang with every target's headers, from PyPI's `ziglang`, and the host's own C compiler."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from tensorop import children, errors, paths, settings
from tensorop.provision import process

_HINT = "pip install ziglang==0.17.0"


def zig() -> Path:
    """The zig binary of this interpreter's `ziglang`, by a path without links. Raises MissingTool without it.

    `python -m ziglang` starts the same file; going there directly saves starting an interpreter for each build.
    """
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise errors.MissingTool("the Python package ziglang (the cross compiler) is not installed", hint=_HINT)
    binary = (Path(spec.submodule_search_locations[0]) / "zig").resolve()
    if not binary.is_file():
        raise errors.MissingTool(f"{binary} is missing: the package ziglang is torn", hint=f"{_HINT} --force-reinstall")
    return binary


def zig_cc() -> tuple[str, ...]:
    """The C compiler's argv prefix; run it with `zig_environment()`. Raises MissingTool."""
    return (str(zig()), "cc")


def zig_environment(local: Path | None = None) -> dict[str, str]:
    """The environment to run zig in: its caches below ours, so that an empty or unwritable home does no harm.

    Nothing else of this process's environment is in it, where keys may be: a compiler reads files it is told to.
    `local` is where objects of this job are cached (they are kept for ever); by default beside the libraries.
    """
    home = paths.cache_dir("zig")
    return {
        **settings.plain_environment(),
        "ZIG_GLOBAL_CACHE_DIR": str(home.resolve()),
        "ZIG_LOCAL_CACHE_DIR": str((local or home).resolve()),
    }


def build(*words: str, what: str) -> None:
    """Compiles or links a part of tensorop's own for this machine. Raises MissingTool: `what` cannot be built."""
    done = children.run([*zig_cc(), *words], env=zig_environment())
    if done.returncode != 0:
        said = "; ".join(done.stderr.strip().splitlines()[:2]) or f"exit status {done.returncode}"
        raise errors.MissingTool(f"{what} cannot be built: {said}", hint="tensorop doctor")


def zig_version() -> str:
    """What `zig version` prints, e.g. 0.17.0."""
    return process.run([str(zig()), "version"], doing="asking zig for its version", hint=_HINT).strip()


def host_cc() -> Path:
    """The host's C compiler (QEMU's plug-in and native programs are built by it). Raises MissingTool."""
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return Path(found)
    raise errors.MissingTool("no C compiler (cc, gcc, clang) on the PATH", hint="apt-get install gcc libc6-dev")
