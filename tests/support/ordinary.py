"""A command run as an ordinary user, by root: nobody, with a home, a temporary folder and a cache of its own, without
any of root's privileges, and with the interpreter, the checkout and what root's cache holds to read."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tensorop import settings
from tests.support.commands import ROOT

USER = 65534
_SHARED = ("apt", "carried", "libc", "libraries", "llvm", "qemu", "sysroot")  # of a cache: filled once, and then read
# In a mount namespace: a folder that only root may enter holds what the user needs, and nothing else.
_SHOW = """
set -e
mount -t tmpfs -o mode=755 none "$0"
for path in {needed}; do mkdir -p "$0$path"; mount --bind "$path" "$0$path"; done
for closed in {closed}; do mount --rbind "$0$closed" "$closed"; done
exec "$@"
"""


def absent() -> str | None:
    """Why no command can be run as an ordinary user here; None where one can."""
    if os.geteuid() != 0:
        return "only root becomes another user"
    closed = ", ".join(map(str, _closed(_needed())))
    mounts = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    if closed and mounts.returncode != 0:
        return f"only root may enter {closed}, which another user needs, and no namespace of mounts is to be had here"
    return None


def run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command from the checkout."""
    with tempfile.TemporaryDirectory(prefix="tensorop-ordinary-", dir="/var/tmp") as folder:
        home = Path(folder)
        home.chmod(0o755)
        for name in ("tmp", "cache", "stage"):
            (home / name).mkdir()
        given = settings.read().cache
        for name in _SHARED:
            (home / "cache" / name).symlink_to(given / name)
        if (given / "zig").is_dir():  # the compiler writes there
            shutil.copytree(given / "zig", home / "cache/zig", symlinks=True)
        for path in (home, *home.rglob("*")):
            os.chown(path, USER, USER, follow_symlinks=False)
        argv = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs", *words]
        if closed := _closed(_needed()):
            quoted = {"needed": [*_needed(), home], "closed": closed}
            script = _SHOW.format(**{name: shlex.join(map(str, paths)) for name, paths in quoted.items()})
            argv = ["unshare", "--mount", "sh", "-c", script, str(home / "stage"), *argv]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            "TENSOROP_CACHE": str(home / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True)


def _needed() -> list[Path]:
    cache = settings.read().cache
    cache.mkdir(parents=True, exist_ok=True)
    return [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent, ROOT, cache]


def _closed(paths: Sequence[Path]) -> list[Path]:
    """The outermost folders on the way to these that only root may enter."""
    ways = [[*reversed(path.resolve().parents), path.resolve()] for path in paths]
    first = [next((folder for folder in way if not folder.stat().st_mode & 0o001), None) for way in ways]
    return sorted({folder for folder in first if folder})
