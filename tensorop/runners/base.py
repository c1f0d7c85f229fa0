"""What a runner is: the way to start a process on the target, and nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from pathlib import Path


class Need(IntFlag):
    """What a process must be able to do in its jail beyond computing (native/jail.h): nothing, mostly.

    THREADS: start threads; READS: open files for reading, for libraries that load parts of themselves at a first call.
    """

    NOTHING = 0
    THREADS = 1
    READS = 2


@dataclass(frozen=True)
class Launch:
    """What is started on a target. argv: its first word is a path there; vlen: bits, where the target's can be chosen;
    dynamic: it needs a loader and shared libraries; environment: everything the program finds in its own; plugin_args:
    instrumentation of an emulator; needs: what the jail leaves to it, where it is the runner that brings the jail."""

    argv: Sequence[str]
    vlen: int | None = None
    dynamic: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    plugin_args: Sequence[str] = ()
    needs: Need = Need.NOTHING


class Runner(ABC):
    """Starts processes on a target.

    name: what messages call it; emulated: whether a clock on it says nothing of the target; here: whether the process
    that is started is the program itself, so that this machine's kernel knows how long it ran; far: whether the way to
    it may break, and `back` may mend it; patience: by how much deadlines stretch; hint: what to try where it is lost;
    processor: the one to measure on, -1 where that is not ours to say.
    """

    name: str
    emulated: bool = False
    here: bool = False
    far: bool = False
    patience: float = 1.0

    @property
    def hint(self) -> str:
        return ""

    @property
    def processor(self) -> int:
        return -1

    @abstractmethod
    def place(self, program: Path) -> str:
        """The program's path on the target, copied there when it has to be. Raises BoardError, MissingTool."""

    @abstractmethod
    def command(self, launch: Launch) -> list[str]:
        """The host's argv that runs `launch.argv` there. `confined.run` alone starts it."""

    def environment(self, wanted: Mapping[str, str]) -> dict[str, str] | None:
        """The environment in which the host starts `command`'s argv, when the program shall find `wanted`.

        None: this process's own, because the tool in between needs it and the program never sees it.
        """
        return {}

    def lost(self, status: int, log: str) -> str | None:
        """Why the target, and not the program, ended with this status; None when it was the program."""
        return None

    def back(self) -> bool:
        """Waits until a target that went away answers again; False when it stays away."""
        return False


class Machine(Runner):
    """One that can be asked what it is."""

    @abstractmethod
    def shell(self, script: str) -> str:
        """stdout of a shell's commands. Raises BoardError."""

    def link(self) -> float:
        """Bytes a second to it, its log-in left out; 0 where nothing is between."""
        return 0.0
