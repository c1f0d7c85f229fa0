"""QEMU user mode with TCG plug-ins: the system's, else Debian 12's 7.2 unpacked into the cache.

Debian 13's 10.0 is a static build without `-plugin`, so the option is asked for, not the version.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tensorop import errors
from tensorop.provision import cache, debian, process
from tensorop.provision.targets import host_arch, target

SUITE = "bookworm"
# qemu-user and what it loads beyond the base system, down to libgnutls' own needs.
PACKAGES = (
    "qemu-user",
    "libcapstone4",
    "libglib2.0-0",
    "libnuma1",
    "liburing2",
    "libgnutls30",
    "libpcre2-8-0",
    "libp11-kit0",
    "libidn2-0",
    "libunistring2",
    "libtasn1-6",
    "libnettle8",
    "libhogweed6",
    "libgmp10",
    "libffi8",
)
GUESTS = ("qemu-riscv64", "qemu-aarch64", "qemu-x86_64")
HINT = "apt-get install qemu-user (Debian 12), or without root: python -m tensorop.provision qemu"


def has_plugins(binary: Path) -> bool:
    """Whether it runs and takes `-plugin`."""
    return re.search(r"^-plugin\b", process.told(binary, "-help"), re.MULTILINE) is not None


def system(arch: str) -> Path | None:
    """The qemu on the PATH, whatever it can do."""
    found = shutil.which(f"qemu-{target(arch).arch}")
    return Path(found) if found else None


def cached(arch: str) -> Path:
    """Where the unpacked one lies, whether or not it is there."""
    entry = f"{SUITE}-{target(host_arch()).debian}-{debian.recipe(PACKAGES)}"
    return cache.entry_path("qemu", entry) / f"qemu-{target(arch).arch}"


def qemu(arch: str, *, offline: bool | None = None) -> Path:
    """A `qemu-ARCH` that takes plug-ins. Raises MissingTool with how to get one."""
    here = system(arch)
    if here is not None and has_plugins(here):
        return here
    return unpacked(arch, offline=offline)


def unpacked(arch: str, *, offline: bool | None = None) -> Path:
    """The same from the cache, fetched when absent, leaving the system's alone. Raises MissingTool."""
    binary = cached(arch)
    host = target(host_arch())
    unpack = debian.unpacker(PACKAGES, suite=SUITE, architecture=host.debian, doing="fetching QEMU 7.2", hint=HINT)

    def fill(folder: Path) -> None:
        (folder / "root").mkdir()
        unpack(folder / "root")
        for other in (folder / "root/usr/bin").iterdir():
            if other.name not in GUESTS:
                other.unlink()
        _wrap(folder, binary.parent, host.multiarch)

    command = "python -m tensorop.provision qemu"
    purpose = "to run code of other architectures"
    cache.entry(binary.parent, fill, what="QEMU 7.2", command=command, offline=offline, purpose=purpose)
    if not has_plugins(binary):
        raise errors.MissingTool(f"{binary} does not run on this machine or takes no plug-ins", hint=HINT)
    return binary


def _wrap(folder: Path, final: Path, multiarch: str) -> None:
    """Small scripts that start the unpacked binaries with the unpacked libraries.

    The libraries' path goes through the loader's argument and not through LD_LIBRARY_PATH, which the guest would
    inherit; what a shell adds to an empty environment is taken out again, so that the guest's stays as it was given.
    """
    libraries = f"{final}/root/usr/lib/{multiarch}:{final}/root/lib/{multiarch}"
    loader = host_loader()
    for name in GUESTS:
        script = folder / name
        script.write_text(
            "#!/bin/sh\n"
            "exec /usr/bin/env -u PWD -u OLDPWD -u SHLVL -u _ "
            f"{loader} --library-path '{libraries}' '{final}/root/usr/bin/{name}' \"$@\"\n"
        )
        script.chmod(0o755)


def host_loader() -> str:
    """The dynamic loader that this machine's programs name, e.g. /lib64/ld-linux-x86-64.so.2."""
    known = {
        "x86_64": "/lib64/ld-linux-x86-64.so.2",
        "aarch64": "/lib/ld-linux-aarch64.so.1",
        "riscv64": "/lib/ld-linux-riscv64-lp64d.so.1",
    }
    return known[host_arch()]


def qemu_version(binary: Path) -> str:
    """The version it prints, e.g. 7.2.22. Raises MissingTool when it does not run."""
    out = process.run([str(binary), "--version"], doing=f"asking {binary} for its version", hint=HINT)
    found = re.search(r"version (\S+)", out)
    return found.group(1) if found else out.split("\n", 1)[0]
