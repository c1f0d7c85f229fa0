"""This machine, each of its processes at the lowest priority: all that a backend of one's own needs."""

from __future__ import annotations

from tensorop.clocked import Clocked
from tensorop.model.platform import Platform
from tensorop.runners.base import Launch
from tensorop.runners.native import Native


class Nice(Native):
    """How a process starts: the words that this machine runs for it."""

    def command(self, launch: Launch) -> list[str]:
        return ["nice", "-n", "19", *super().command(launch)]


class Backend(Clocked):
    """A clock measures here, so that `Clocked` brings the unit, the budgets and the way to measure."""

    name = "nice"  # as the file; `--runner nice`
    is_host = True  # its own processor, which must have what the platform requires
    confined = True  # the harness closes its own; without this line `--author llm` and `judge` are refused

    @classmethod
    def start(cls, platform: Platform, address: str) -> Nice:
        return Nice("nice")
