"""Programs of LLVM: the system's newest, else Debian 12's unpacked into the cache."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tensorop import errors
from tensorop.provision import debian, process


def version(binary: Path) -> int:
    """The major version of a program of LLVM; 0 if it does not run or is another program."""
    found = re.search(r"LLVM version (\d+)\.", process.output_of(binary, "--version"))
    return int(found[1]) if found else 0


@dataclass(frozen=True)
class LlvmTool(debian.Tools):
    """One program of LLVM."""

    least: int = 0  # the oldest version that serves

    @property
    def name(self) -> str:
        return self.names[0]

    def system(self) -> Path | None:
        """The program on the PATH that is new enough: `llvm-objdump`, else the newest `llvm-objdump-NN`."""
        plain = shutil.which(self.name)
        if plain is not None and version(Path(plain)) >= self.least:
            return Path(plain)
        numbered: dict[int, Path] = {}
        for folder in os.get_exec_path():
            for file in sorted(Path(folder).glob(f"{self.name}-*")):
                number = file.name.removeprefix(f"{self.name}-")
                if number.isdecimal() and int(number) >= self.least:
                    numbered.setdefault(int(number), file)
        return next((file for _, file in sorted(numbered.items(), reverse=True) if version(file) >= self.least), None)

    def found(self) -> Path | None:
        """The program that is here; None without one that is new enough."""
        unpacked = self.path(self.name)
        return self.system() or (unpacked if version(unpacked) >= self.least else None)

    def program(self, *, offline: bool | None = None) -> Path:
        """The program that is here, fetched if absent. Raises MissingTool."""
        if (here := self.system()) is not None:
            return here
        binary = self.bring(self.name, offline=offline)
        if version(binary) < self.least:
            raise errors.MissingTool(f"{binary} does not run on this machine", hint=self.hint)
        return binary


# Each with the libraries that the base system may lack. Older objdumps cannot disassemble RISC-V's vector instructions.
OBJDUMP = LlvmTool(
    kind="llvm",
    piece="objdump",
    what="LLVM 14",
    packages=(
        "llvm-14", "libllvm14", "libcurl3-nss", "libedit2", "libbsd0", "libmd0", "libffi8", "libtinfo6", "libxml2",
        "libicu72", "liblzma5", "libz3-4", "zlib1g", "libstdc++6", "libgcc-s1",
    ),
    bin="usr/lib/llvm-14/bin",
    names=("llvm-objdump",),
    purpose="to read the machine code of kernels",
    megabytes=55,
    least=14,
)  # fmt: skip
# It predicts how many cycles a loop takes on a core. Older versions have no model of Zen 4.
MCA = LlvmTool(
    kind="mca",
    piece="mca",
    what="LLVM 19",
    packages=(
        "llvm-19", "libllvm19", "libedit2", "libbsd0", "libmd0", "libffi8", "libtinfo6", "libxml2", "libicu72",
        "liblzma5", "libz3-4", "libzstd1", "zlib1g", "libstdc++6", "libgcc-s1",
    ),
    bin="usr/lib/llvm-19/bin",
    names=("llvm-mca",),
    purpose="to predict the cycles of loops for a language model",
    megabytes=60,
    least=18,
)  # fmt: skip
