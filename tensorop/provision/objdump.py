"""llvm-objdump of LLVM 14 or newer: the system's, else Debian 12's unpacked into the cache.

Older versions cannot disassemble RISC-V's vector instructions.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from tensorop import errors
from tensorop.provision import debian, process

LEAST = 14
NAME = "llvm-objdump"
HINT = "apt-get install llvm (Debian 12), or without root: python -m tensorop.provision objdump"
# With the libraries that the base system may lack.
_PACKAGES = (
    "llvm-14", "libllvm14", "libcurl3-nss", "libedit2", "libbsd0", "libmd0", "libffi8", "libtinfo6", "libxml2",
    "libicu72", "liblzma5", "libz3-4", "zlib1g", "libstdc++6", "libgcc-s1",
)  # fmt: skip
_TOOLS = debian.Tools(
    kind="llvm",
    what="LLVM 14",
    suite="bookworm",
    packages=_PACKAGES,
    bin="usr/lib/llvm-14/bin",
    names=(NAME,),
    purpose="to read the machine code of kernels",
    command="python -m tensorop.provision objdump",
    hint=HINT,
    megabytes=55,
)


def version(binary: Path) -> int:
    """The major version of a program of LLVM; 0 if it does not run or is another program."""
    found = re.search(r"LLVM version (\d+)\.", process.output_of(binary, "--version"))
    return int(found[1]) if found else 0


def system(name: str = NAME, least: int = LEAST) -> Path | None:
    """LLVM's program on the PATH that is new enough: `llvm-objdump`, else the newest `llvm-objdump-NN`."""
    plain = shutil.which(name)
    if plain is not None and version(Path(plain)) >= least:
        return Path(plain)
    numbered: dict[int, Path] = {}
    for folder in os.get_exec_path():
        for file in sorted(Path(folder).glob(f"{name}-*")):
            number = file.name.removeprefix(f"{name}-")
            if number.isdecimal() and int(number) >= least:
                numbered.setdefault(int(number), file)
    return next((file for _, file in sorted(numbered.items(), reverse=True) if version(file) >= least), None)


def cached() -> Path:
    """The path of the unpacked llvm-objdump, whether or not it exists."""
    return _TOOLS.path(NAME)


def objdump(*, offline: bool | None = None) -> Path:
    """An llvm-objdump that is new enough: the system's or the unpacked one, fetched if absent. Raises MissingTool."""
    if (here := system()) is not None:
        return here
    binary = _TOOLS.bring(NAME, offline=offline)
    if version(binary) < LEAST:
        raise errors.MissingTool(f"{binary} does not run on this machine", hint=HINT)
    return binary
