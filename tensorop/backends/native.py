"""The native backend: runs on this machine and measures with its clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Self

from tensorop.clocked import Clocked
from tensorop.errors import JobError, UsageError
from tensorop.measure import boards, loop_analysis, machine
from tensorop.model.architecture import host_arch
from tensorop.model.platform import Platform
from tensorop.runners.base import Runner
from tensorop.runners.native import Native
from tensorop.specs import native, platforms


class Backend(Clocked):
    name = "native"
    is_host = True
    confined = True

    @classmethod
    def machine(cls, address: str) -> Native:
        return Native()

    @classmethod
    def start(cls, platform: Platform, address: str) -> Runner:
        if platform.arch != host_arch():
            raise UsageError(
                f"platform '{platform.name}' is {platform.arch} and cannot run natively on this {host_arch()} machine",
                hint=f"use --runner qemu, or --runner ssh://HOST with the address of a machine with {platform.arch}",
            )
        return Native()

    @classmethod
    def reach(cls, platform: Platform, address: str) -> Self:
        runner = cls.start(platform, address)
        if missing := native.missing_flags(platform):
            raise JobError(
                f"this machine's CPU lacks {', '.join(missing)}, which platform '{platform.name}' needs",
                hint="use --platform native, which fits this machine, or see `tensorop platforms list`",
            )
        return cls(boards.here(platform), runner)

    def described(self) -> Mapping[str, object]:
        """The machine's record. bandwidth (copy) and read_bandwidth (read only) are in bytes per nanosecond."""
        found = {"bandwidth": machine.copy_bandwidth(), "read_bandwidth": machine.read_bandwidth()}
        return {**dataclasses.asdict(machine.record()), **found}

    @property
    def llvm_cpu(self) -> str:
        return loop_analysis.HOST

    def widest(self) -> Self:
        return dataclasses.replace(self, platform=platforms.load("native"))

    def last_cache(self) -> int:
        here = (level["size"] for level in native.caches().values())
        return max([*here, *(level.size for level in self.platform.caches.values())], default=0)

    def bandwidth(self) -> float:
        return machine.read_bandwidth()
