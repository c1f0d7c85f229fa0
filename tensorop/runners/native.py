"""Runs programs on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tensorop.errors import JobError
from tensorop.process import children
from tensorop.runners.base import Launch, Machine

ASK_S = 60.0


@dataclass(frozen=True)
class Native(Machine):
    """Runs programs on this machine, with exactly the environment that they are given."""

    name: str = "native"
    here = True

    @property
    def processor(self) -> int:
        """The last processor that this process may use, since the first serves most interrupts."""
        return max(os.sched_getaffinity(0))

    def shell(self, script: str) -> str:
        try:
            return children.run(["sh", "-s"], input=script, timeout=ASK_S).stdout
        except subprocess.TimeoutExpired:
            raise JobError(
                f"the program that describes this machine did not end within {ASK_S:g} s", hint="run `tensorop doctor`"
            ) from None

    def place(self, program: Path) -> str:
        return str(program.absolute())

    def command(self, launch: Launch) -> list[str]:
        return list(launch.argv)

    def environment(self, wanted: Mapping[str, str]) -> dict[str, str]:
        return dict(wanted)

    def lost(self, status: int, log: str) -> str | None:
        # Only the kernel (out of memory) or the user sends SIGKILL to a harness.
        return "the process was killed from outside (out of memory?)" if status == -signal.SIGKILL else None
