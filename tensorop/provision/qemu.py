"""QEMU user mode with TCG plug-ins, the sysroot of programs that run in it, and the plug-in that confines it.

The system's QEMU is used if it has plug-ins, else Debian 12's 7.2 unpacked into the cache. Debian 13's 10.0 is a static
build without `-plugin`, so the check is for the option and not for the version.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tensorop import errors
from tensorop.model.architecture import ARCHITECTURES, architecture, host_arch
from tensorop.provision import cache, debian, process, zig

# With the libraries that the base system may lack, including those of libgnutls.
TOOLS = debian.Tools(
    kind="qemu",
    piece="qemu",
    what="QEMU 7.2",
    packages=(
        "qemu-user", "libcapstone4", "libglib2.0-0", "libnuma1", "liburing2", "libgnutls30", "libpcre2-8-0",
        "libp11-kit0", "libidn2-0", "libunistring2", "libtasn1-6", "libnettle8", "libhogweed6", "libgmp10", "libffi8",
    ),
    bin="usr/bin",
    names=tuple(f"qemu-{arch}" for arch in ARCHITECTURES),
    purpose="to run code of other architectures",
)  # fmt: skip
_PLUGIN = ("-std=gnu11", "-O2", "-g0", "-fPIC", "-fvisibility=hidden", "-fomit-frame-pointer")
_JAIL = zig.OwnPart(
    what="the plug-in that confines QEMU",
    files=("qemu_jail.c", "jail.h", "plugin/qemu_plugin_api.h"),
    name="jail.so",
    form="-shared",
    flags=_PLUGIN,
)
_PATH = zig.OwnPart(
    what="the plug-in that counts instructions outside of the work on operands",
    files=("qemu_path.c", "plugin/qemu_plugin_api.h"),
    name="path.so",
    form="-shared",
    flags=_PLUGIN,
)


def has_plugins(binary: Path) -> bool:
    """Whether a QEMU runs and accepts `-plugin`."""
    return re.search(r"^-plugin\b", process.output_of(binary, "-help"), re.MULTILINE) is not None


def system(arch: str) -> Path | None:
    """The qemu on the PATH, with or without plug-ins."""
    found = shutil.which(f"qemu-{architecture(arch).name}")
    return Path(found) if found else None


def cached(arch: str) -> Path:
    """The path of the unpacked qemu, whether or not it exists."""
    return TOOLS.path(f"qemu-{architecture(arch).name}")


def qemu(arch: str, *, offline: bool | None = None) -> Path:
    """A `qemu-ARCH` that accepts plug-ins. Raises MissingTool with the command that fetches one."""
    here = system(arch)
    if here is not None and has_plugins(here):
        return here
    return unpacked(arch, offline=offline)


def unpacked(arch: str, *, offline: bool | None = None) -> Path:
    """A `qemu-ARCH` from the cache, fetched if absent, even if the system has one. Raises MissingTool."""
    binary = TOOLS.bring(cached(arch).name, offline=offline)
    if not has_plugins(binary):
        raise errors.MissingTool(
            f"{binary} does not run on this machine, or does not support plug-ins", hint=TOOLS.hint
        )
    return binary


def qemu_version(binary: Path) -> str:
    """The version that a QEMU prints, e.g. 7.2.22. Raises MissingTool if it does not run."""
    out = process.run([str(binary), "--version"], doing=f"asking {binary} for its version", hint=TOOLS.hint)
    found = re.search(r"version (\S+)", out)
    return found.group(1) if found else out.split("\n", 1)[0]


def sysroot_entry(arch: str) -> cache.CacheEntry:
    """The glibc loader and libraries of an architecture.

    glibc is Debian 13's 2.41: scipy-openblas32 for riscv64 needs 2.38, and Debian 12 has no riscv64. zlib1g is for the
    libgfortran in the older aarch64 wheels of OpenBLAS.
    """
    names, what = ("libc6", "libgcc-s1", "zlib1g"), f"the sysroot of {arch}"
    packages = debian.Packages(names, "trixie", arch, what, cache.by_hand("sysroot", arch))
    folder = cache.entry_path("sysroot", f"{packages.suite}-{packages.debian}-{packages.recipe}")
    return packages.entry(folder, "to run libraries in")


def sysroot(arch: str, *, offline: bool | None = None) -> Path:
    """The root for `qemu -L`; "/" for this machine's own architecture. Raises MissingTool."""
    return Path("/") if arch == host_arch() else sysroot_entry(arch).bring(offline=offline)


def emulator(arch: str) -> list[str]:
    """The command that runs programs of a foreign architecture on this machine, with or without shared libraries.

    It is QEMU with glibc and a core that has the features libraries may require. Raises MissingTool, UsageError.
    """
    return [str(qemu(arch)), "-cpu", architecture(arch).emulated_cpu, "-L", str(sysroot(arch))]


def jail() -> Path:
    """The plug-in that confines QEMU (native/qemu_jail.c). It uses the C library in QEMU's process.

    Raises as `OwnPart.build`.
    """
    return _JAIL.build()


def path_counter() -> Path:
    """The plug-in of native/qemu_path.c. Raises as `OwnPart.build`."""
    return _PATH.build()
