"""QEMU user mode with TCG plug-ins: the system's, else Debian 12's 7.2 unpacked into the cache.

Debian 13's 10.0 is a static build without `-plugin`, so the option is asked for, not the version.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tensorop import errors
from tensorop.model.architecture import architecture
from tensorop.provision import debian, process

HINT = "apt-get install qemu-user (Debian 12), or without root: python -m tensorop.provision qemu"

# What it loads beyond the base system comes along, down to libgnutls' own needs.
_PACKAGES = (
    "qemu-user", "libcapstone4", "libglib2.0-0", "libnuma1", "liburing2", "libgnutls30", "libpcre2-8-0",
    "libp11-kit0", "libidn2-0", "libunistring2", "libtasn1-6", "libnettle8", "libhogweed6", "libgmp10", "libffi8",
)  # fmt: skip
_TOOLS = debian.Tools(
    kind="qemu",
    what="QEMU 7.2",
    suite="bookworm",
    packages=_PACKAGES,
    bin="usr/bin",
    names=("qemu-riscv64", "qemu-aarch64", "qemu-x86_64"),
    purpose="to run code of other architectures",
    command="python -m tensorop.provision qemu",
)


def has_plugins(binary: Path) -> bool:
    """Whether it runs and takes `-plugin`."""
    return re.search(r"^-plugin\b", process.told(binary, "-help"), re.MULTILINE) is not None


def system(arch: str) -> Path | None:
    """The qemu on the PATH, whatever it can do."""
    found = shutil.which(f"qemu-{architecture(arch).name}")
    return Path(found) if found else None


def cached(arch: str) -> Path:
    """The place of the unpacked one, whether or not it is there."""
    return _TOOLS.path(f"qemu-{architecture(arch).name}")


def qemu(arch: str, *, offline: bool | None = None) -> Path:
    """A `qemu-ARCH` that takes plug-ins. Raises MissingTool with how to get one."""
    here = system(arch)
    if here is not None and has_plugins(here):
        return here
    return unpacked(arch, offline=offline)


def unpacked(arch: str, *, offline: bool | None = None) -> Path:
    """The same from the cache, fetched when absent, leaving the system's alone. Raises MissingTool."""
    binary = _TOOLS.bring(cached(arch).name, offline=offline, hint=HINT)
    if not has_plugins(binary):
        raise errors.MissingTool(f"{binary} does not run on this machine or takes no plug-ins", hint=HINT)
    return binary


def qemu_version(binary: Path) -> str:
    """The version it prints, e.g. 7.2.22. Raises MissingTool when it does not run."""
    out = process.run([str(binary), "--version"], doing=f"asking {binary} for its version", hint=HINT)
    found = re.search(r"version (\S+)", out)
    return found.group(1) if found else out.split("\n", 1)[0]
