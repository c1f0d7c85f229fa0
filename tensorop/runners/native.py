"""This machine."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorop.runners.base import Need


@dataclass(frozen=True)
class Native:
    """Runs programs here, with the environment they are given and no other."""

    name: str = "native"
    emulated: bool = False

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
        return list(argv)

    def environment(self, wanted: Mapping[str, str]) -> dict[str, str]:
        return dict(wanted)

    def lost(self, status: int, log: str) -> str | None:
        # Nobody but the kernel short of memory (or the user) sends this one to a harness.
        return "the process was killed from outside (out of memory?)" if status == -signal.SIGKILL else None
