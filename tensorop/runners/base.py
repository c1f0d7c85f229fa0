"""What a runner is: the way to start a process on the target, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntFlag
from pathlib import Path
from typing import Protocol


class Need(IntFlag):
    """What a process must be able to do in its jail beyond computing (native/jail.h): nothing, mostly.

    THREADS: start threads; READS: open files for reading, for libraries that load parts of themselves at a first call.
    """

    NOTHING = 0
    THREADS = 1
    READS = 2


class Runner(Protocol):
    """Starts processes on a target.

    name: what the command line calls it; emulated: whether a clock on it says nothing of the target.
    """

    @property
    def name(self) -> str: ...

    @property
    def emulated(self) -> bool: ...

    def place(self, program: Path) -> str:
        """The program's path on the target, copied there when it has to be. Raises BoardError, MissingTool."""
        ...

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
        """The host's argv that runs `argv` (whose first word is a path on the target) there. `confined.run` alone
        starts it.

        vlen: bits, where the target's can be chosen; dynamic: it needs a loader and shared libraries;
        environment: everything the program finds in its own; plugin_args: instrumentation of an emulator;
        needs: what the jail leaves to it, where it is the runner that brings the jail.
        """
        ...

    def environment(self, wanted: Mapping[str, str]) -> dict[str, str] | None:
        """The environment in which the host starts `command`'s argv, when the program shall find `wanted`.

        None: this process's own, because the tool in between needs it and the program never sees it.
        """
        ...

    def lost(self, status: int, log: str) -> str | None:
        """Why the target, and not the program, ended with this status; None when it was the program."""
        ...
