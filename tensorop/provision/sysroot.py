"""The glibc loader and libraries of a foreign architecture, for programs that load shared libraries under QEMU."""

from __future__ import annotations

from pathlib import Path

from tensorop.model.architecture import architecture, host_arch
from tensorop.provision import cache, debian, qemu

# Debian 13's glibc 2.41: scipy-openblas32 for riscv64 wants 2.38 and Debian 12 has no riscv64 at all.
SUITE = "trixie"
# zlib1g is for the libgfortran inside the older aarch64 wheels of OpenBLAS.
PACKAGES = ("libc6", "libgcc-s1", "zlib1g")


def path(arch: str) -> Path:
    """Its place, whether or not it is there."""
    return cache.entry_path("sysroot", f"{SUITE}-{architecture(arch).debian}-{debian.recipe(PACKAGES)}")


def sysroot(arch: str, *, offline: bool | None = None) -> Path:
    """The root to give to `qemu -L`; "/" for this machine's own architecture. Raises MissingTool."""
    if arch == host_arch():
        return Path("/")
    what, purpose = f"the sysroot of {arch}", "to run libraries in"
    return debian.entry(
        path(arch),
        PACKAGES,
        suite=SUITE,
        arch=arch,
        what=what,
        piece="sysroot",
        purpose=purpose,
        offline=offline,
    )


def emulator(arch: str) -> list[str]:
    """The command behind which programs of a foreign architecture run on this machine, also those that load libraries:
    QEMU with a core that has what libraries may ask for, and with glibc. Raises MissingTool, UsageError."""
    return [str(qemu.qemu(arch)), "-cpu", architecture(arch).emulated_cpu, "-L", str(sysroot(arch))]
