"""QEMU's user mode: a foreign architecture's programs on this machine."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorop.provision import jail as provision_jail
from tensorop.provision import qemu as provision_qemu
from tensorop.provision import sysroot as provision_sysroot
from tensorop.runners.base import Need


@dataclass(frozen=True)
class Qemu:
    """Runs programs of `arch` on an emulated core.

    cpu: QEMU's -cpu string, with {vlen} (bits) where the core has one; vlen: the one used when none is asked for.
    """

    arch: str
    cpu: str = ""
    vlen: int | None = None
    name: str = "qemu"
    emulated: bool = True

    def place(self, program: Path) -> str:
        return str(program.absolute())

    def command(
        self,
        argv: Sequence[str],
        *,
        vlen: int | None = None,
        dynamic: bool = False,
        environment: Mapping[str, str] | None = None,
        plugin_args: Sequence[str] = (),
        needs: Need = Need.NOTHING,
    ) -> list[str]:
        out = [str(provision_qemu.qemu(self.arch))]
        if self.cpu:
            out += ["-cpu", self.cpu.format(vlen=vlen or self.vlen)]
        if dynamic:
            out += ["-L", str(provision_sysroot.sysroot(self.arch))]
        for key, value in (environment or {}).items():
            out += ["-E", f"{key}={value}"]
        jail = ",".join((str(provision_jail.plugin()), *(f"{need.name.lower()}=on" for need in needs if need.name)))
        return [*out, "-plugin", jail, *plugin_args, *argv]

    def environment(self, wanted: Mapping[str, str]) -> dict[str, str]:
        # The guest inherits QEMU's own; what it shall find goes through -E.
        return {}

    def lost(self, status: int, log: str) -> str | None:
        if status == -signal.SIGKILL:
            return "the emulator was killed from outside (out of memory?)"
        # A guest's own abort is caught in the harness and comes back as a reply.
        return "the emulator itself failed" if status == -signal.SIGABRT else None
