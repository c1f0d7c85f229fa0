"""The interface of runners, which start processes on a target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from pathlib import Path


class Need(IntFlag):
    """Permissions of a process in its jail (native/jail.h), besides computing."""

    NOTHING = 0
    THREADS = 1  # starts threads
    READS = 2  # opens files for reading: some libraries load parts at the first call
    FORKS = 8  # forks; 4 is the emulator's own


@dataclass(frozen=True)
class Launch:
    """A process to start on a target."""

    argv: Sequence[str]  # the first word is a path on the target
    vlen: int | None = None  # bits, if the target's VLEN can be chosen
    dynamic: bool = False  # needs a loader and shared libraries
    environment: Mapping[str, str] = field(default_factory=dict)  # the program's whole environment
    plugin_args: Sequence[str] = ()  # instrumentation of an emulator
    needs: Need = Need.NOTHING  # permissions in the jail, if the runner brings the jail


class Runner(ABC):
    """Starts processes on a target."""

    name: str  # in messages
    emulated: bool = False  # a clock on it does not measure the target
    here: bool = False  # the started process is the program, so this kernel measures its processor time
    far: bool = False  # the connection may break; `back` then waits for the target
    patience: float = 1.0  # factor of deadlines

    @property
    def hint(self) -> str:
        """Advice if the target is lost."""
        return ""

    @property
    def processor(self) -> int:
        """The processor to measure on; -1 for any."""
        return -1

    @abstractmethod
    def place(self, program: Path) -> str:
        """Returns the program's path on the target, after a copy if needed. Raises BoardError, MissingTool."""

    @abstractmethod
    def command(self, launch: Launch) -> list[str]:
        """The host's argv that runs `launch.argv` on the target. Only `confined.run` starts it."""

    def environment(self, wanted: Mapping[str, str]) -> dict[str, str] | None:
        """The environment in which the host starts `command`'s argv, for a program that gets `wanted`.

        None means this process's own environment: a tool in between needs it, and the program never sees it.
        """
        return {}

    def lost(self, status: int, log: str) -> str | None:
        """The reason if the target caused this exit status; None if the program caused it."""
        return None

    def back(self) -> bool:
        """Waits until a lost target answers again; False if it does not."""
        return False


class Machine(Runner):
    """A runner whose target has a shell, so that its properties can be read."""

    @abstractmethod
    def shell(self, script: str) -> str:
        """stdout of shell commands. Raises JobError, or BoardError for a board."""

    def link(self) -> float:
        """Bandwidth of the connection in bytes per second, without the log-in; 0 for this machine."""
        return 0.0
