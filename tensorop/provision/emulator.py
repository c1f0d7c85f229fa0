"""The command behind which programs of a foreign architecture run on this machine, also those that load libraries."""

from __future__ import annotations

from tensorop.provision import qemu, sysroot
from tensorop.provision.targets import target


def command(arch: str, *, offline: bool | None = None) -> list[str]:
    """QEMU with a core that has what libraries may ask for, and with glibc. Raises MissingTool, UsageError."""
    cpu = target(arch).emulated_cpu
    return [str(qemu.qemu(arch, offline=offline)), "-cpu", cpu, "-L", str(sysroot.sysroot(arch, offline=offline))]
