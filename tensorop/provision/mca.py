"""llvm-mca of LLVM 18 or newer: the system's newest, else Debian 12's LLVM 19 unpacked into the cache.

It predicts how many cycles a loop takes on a core. Older versions have no model of Zen 4.
"""

from __future__ import annotations

from pathlib import Path

from tensorop.provision import debian, objdump

LEAST = 18
NAME = "llvm-mca"
HINT = "apt-get install llvm-19 (Debian 12), or without root: python -m tensorop.provision mca"
# With the libraries that the base system may lack.
_PACKAGES = (
    "llvm-19", "libllvm19", "libedit2", "libbsd0", "libmd0", "libffi8", "libtinfo6", "libxml2", "libicu72", "liblzma5",
    "libz3-4", "libzstd1", "zlib1g", "libstdc++6", "libgcc-s1",
)  # fmt: skip
_TOOLS = debian.Tools(
    kind="mca",
    what="LLVM 19",
    suite="bookworm",
    packages=_PACKAGES,
    bin="usr/lib/llvm-19/bin",
    names=(NAME,),
    purpose="to predict the cycles of loops for a language model",
    command="python -m tensorop.provision mca",
    hint=HINT,
    megabytes=60,
)


def found() -> Path | None:
    """The llvm-mca that is here; None without one that is new enough."""
    cached = _TOOLS.path(NAME)
    return objdump.system(NAME, LEAST) or (cached if cached.exists() else None)


def mca(*, offline: bool | None = None) -> Path:
    """The llvm-mca that is here, fetched if absent. Raises MissingTool."""
    return found() or _TOOLS.bring(NAME, offline=offline)
