"""QEMU's user mode: runs another architecture's programs on this machine."""

from __future__ import annotations

import functools
import signal
from dataclasses import dataclass
from pathlib import Path

from tensorop import settings
from tensorop.provision import qemu as provision_qemu
from tensorop.runners.base import Launch, Runner


@dataclass(frozen=True)
class Qemu(Runner):
    """Runs programs of `arch` on an emulated core."""

    arch: str
    cpu: str = ""  # QEMU's -cpu string, with {vlen} (bits) if the core has one
    vlen: int | None = None  # bits, for launches without one
    name: str = "qemu"
    emulated = True

    def place(self, program: Path) -> str:
        return str(program.absolute())

    def command(self, launch: Launch) -> list[str]:
        emulator, sysroot, plugin = _tools(self.arch, launch.dynamic, settings.read().cache)
        out = [str(emulator)]
        if self.cpu:
            out += ["-cpu", self.cpu.format(vlen=launch.vlen or self.vlen)]
        if launch.dynamic:
            out += ["-L", str(sysroot)]
        for key, value in launch.environment.items():
            out += ["-E", f"{key}={value}"]  # the guest also inherits QEMU's own environment, which is empty
        jail = ",".join((str(plugin), *(f"{need.name.lower()}=on" for need in launch.needs if need.name)))
        return [*out, "-plugin", jail, *launch.plugin_args, *launch.argv]

    def lost(self, status: int, log: str) -> str | None:
        if status == -signal.SIGKILL:
            return "the emulator was killed from outside (out of memory?)"
        # The harness catches a guest's abort and sends it as a reply.
        return "the emulator itself failed" if status == -signal.SIGABRT else None


@functools.lru_cache(maxsize=8)
def _tools(arch: str, dynamic: bool, cache: Path) -> tuple[Path, Path | None, Path]:
    """The emulator, the libraries of dynamic programs, and the jail.

    They are looked up once per process and cache, since a job starts thousands of programs.
    """
    sysroot = provision_qemu.sysroot(arch) if dynamic else None
    return provision_qemu.qemu(arch), sysroot, provision_qemu.jail()
