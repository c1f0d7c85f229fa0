"""A board reached by ssh: the program is copied there once and run with an environment of its own."""

from __future__ import annotations

import hashlib
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tensorop import errors
from tensorop.runners import process

_OPTIONS = (
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
)


@dataclass(frozen=True)
class Ssh:
    """Runs programs on `host` (as ssh spells it: user@host); options: further words for ssh, such as -p 2222."""

    host: str
    options: tuple[str, ...] = ()
    folder: str = ".cache/tensorop"  # on the board, below the user's home
    name: str = "ssh"
    emulated: bool = False
    _placed: dict[Path, str] = field(default_factory=dict, compare=False, repr=False)

    def _ssh(self, command: str) -> list[str]:
        if shutil.which("ssh") is None:
            raise errors.MissingTool("ssh is not on this machine", hint="apt-get install openssh-client")
        return ["ssh", *_OPTIONS, *self.options, self.host, command]

    def place(self, program: Path) -> str:
        """Copies a program under a name made of its content. Raises BoardError when the board does not answer."""
        if program in self._placed:
            return self._placed[program]
        data = program.read_bytes()
        remote = f"{self.folder}/{program.name}-{hashlib.sha256(data).hexdigest()[:16]}"
        folder, path = shlex.quote(self.folder), shlex.quote(remote)
        receive = (
            f"mkdir -p {folder} && cat > {path}.$$ && chmod +x {path}.$$ && mv {path}.$$ {path} && readlink -f {path}"
        )
        copied = process.run(self._ssh(receive), stdin=[data], timeout_s=120, environment=None)
        if copied.status != 0:
            said = copied.stderr.strip().splitlines()[-1:] or ["no answer"]
            raise errors.BoardError(
                f"cannot copy {program.name} to {self.host}: {said[0]}", hint=f"check that `ssh {self.host} true` works"
            )
        self._placed[program] = copied.stdout.decode(errors="replace").strip() or remote
        return self._placed[program]

    def command(
        self,
        argv: Sequence[str],
        *,
        vlen: int | None = None,
        dynamic: bool = False,
        environment: Mapping[str, str] | None = None,
        plugin_args: Sequence[str] = (),
    ) -> list[str]:
        words = ["env", "-i", *(f"{k}={v}" for k, v in (environment or {}).items()), *argv]
        return self._ssh("exec " + shlex.join(words))

    def environment(self, wanted: Mapping[str, str]) -> dict[str, str] | None:
        return None

    def lost(self, status: int, log: str) -> str | None:
        # ssh's own failures end with 255, and so may a program: then it is asked again in vain, which is harmless.
        return f"the connection to {self.host} was lost" if status == 255 else None
