"""The launcher that hides all files but a few folders from a compiler (native/view.c), built once per machine."""

from __future__ import annotations

import contextlib
import functools
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tensorop import paths, settings
from tensorop.process import children
from tensorop.provision import zig

_LAUNCHER = zig.OwnPart(
    what="the launcher that confines the compiler",
    files=("view.c",),
    name="view",
    form="-static",
    flags=("-std=gnu11", "-O2", "-g0", "-fno-builtin", "-fno-stack-protector"),
)
NAMESPACES, LANDLOCK = "n", "l"
_STRONGEST_FIRST = (NAMESPACES + LANDLOCK, NAMESPACES, LANDLOCK)


def guards() -> str:
    """The guards that work on this machine, found by starting the compiler behind them; empty if none works.

    Cached per process. Raises MissingTool, JobError as `OwnPart.build`.
    """
    return _guards(settings.read().cache)


@functools.cache
def _guards(root: Path) -> str:
    folder = paths.cache_dir("zig")
    for tried in _STRONGEST_FIRST:
        argv = behind(tried, [str(zig.zig()), "version"], folder)
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            if children.run(argv, env=zig.zig_environment(), cwd=folder, timeout=60).returncode == 0:
                return tried
    return ""


def behind(which: str, argv: Sequence[str], folder: Path) -> tuple[str, ...]:
    """The command that starts `argv` in `folder` behind the guards `which` (see `guards`); `argv` itself without any.

    The compiler can read its own folder, and read and write `folder` and its cache, and nothing else. The program's
    path must have no links.
    """
    if not which:
        return tuple(argv)
    own, kept = zig.zig().parent, paths.cache_dir("zig").resolve()
    seen = dict.fromkeys((f"r:{own}", f"w:{folder.resolve()}", f"w:{kept}"))
    return (str(_LAUNCHER.build()), which, *seen, "--", *argv)


def describe(which: str) -> str:
    """The names of guards for messages."""
    words = {NAMESPACES: "a root of its own (namespaces)", LANDLOCK: "Landlock"}
    return " and ".join(words[guard] for guard in which)
