"""A board reached by ssh, by its own clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorop.clocked import Clocked
from tensorop.measure import boards
from tensorop.model.core import Core
from tensorop.model.platform import Platform
from tensorop.runners import ssh


@dataclass(frozen=True)
class Backend(Clocked):
    runner: ssh.Ssh

    name = "ssh"
    address = "host"
    jail = True

    @classmethod
    def machine(cls, address: str) -> ssh.Ssh:
        return ssh.board(address)

    @classmethod
    def start(cls, platform: Platform, address: str) -> ssh.Ssh:
        return ssh.board(address)

    @classmethod
    def meet(cls, platform: Platform, address: str) -> tuple[Platform, ssh.Ssh, Core]:
        return boards.meet(platform, cls.start(platform, address))

    @property
    def identity(self) -> list[object]:
        return [self.core.label, self.core.vlen] if self.core else []

    def described(self) -> Mapping[str, object]:
        return {"host": self.runner.host, **self.core.short} if self.core else {}
