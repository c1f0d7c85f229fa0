"""Runs programs on a board over ssh; each file is copied once, under a name that contains its digest."""

from __future__ import annotations

import hashlib
import io
import shlex
import shutil
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tensorop import errors
from tensorop.process import waiting
from tensorop.runners import process
from tensorop.runners.base import Launch, Machine
from tensorop.specs import files

# Connections are not shared: a program that never returns ends with its own connection (see harness.c).
_SET = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3", "ControlPath=none")
_OPTIONS = tuple(f"-o{option}" for option in _SET)
_LIMITED = 'ulimit -c 0; ulimit -v 8388608 2>/dev/null; exec "$0" "$@"'
_BACK_S = 45.0  # how long to wait for a lost board
_ASK_BYTES = _PROBE_BYTES = 1 << 20
_LOGIN = (
    ("Permission denied", "it does not take this user's key; `ssh-copy-id HOST` brings yours there"),
    ("Host key verification failed", "its host key is unknown or has changed; run `ssh HOST` once by hand"),
    ("Could not resolve", "no such host; check the name after ssh://"),
    ("Connection refused", "nothing listens there; is sshd running on it, is the port right?"),
    ("timed out", "it does not answer; is it switched on and in the same network?"),
    ("No space left", "free disk space on it, or remove its folder .cache/tensorop"),
    ("Disk quota", "free disk space on it, or remove its folder .cache/tensorop"),
    ("Read-only file system", "its home folder must be writable"),
)


@dataclass(frozen=True)
class Ssh(Machine):
    """Runs programs on `host`.

    `tensorop.measure.boards.meet` finds `processor` and `patience` from the board's properties.
    """

    host: str  # as ssh expects it: user@host
    options: tuple[str, ...] = ()  # further options of ssh, such as -p 2222
    folder: str = ".cache/tensorop"  # on the board, below the user's home
    name: str = "ssh"
    far = True
    processor: int = -1  # the processor to measure on, -1 for any
    patience: float = 1.0  # factor of deadlines: how much slower than a desktop the board and its connection are
    _placed: dict[tuple[Path, int], str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def hint(self) -> str:
        return f"check that `ssh {shlex.join([*self.options, self.host])} true` works"

    @property
    def address(self) -> str:
        """`ssh://[user@]host[:port]`, as `--runner` takes it."""
        return ":".join((f"ssh://{self.host}", *self.options[1:]))

    def link(self) -> float:
        begin = time.monotonic()
        self.shell("", b"")
        login = time.monotonic() - begin
        begin = time.monotonic()
        self.shell("cat > /dev/null", bytes(_PROBE_BYTES))
        return _PROBE_BYTES / max(time.monotonic() - begin - login, 1e-3)

    def _ssh(self, command: str) -> list[str]:
        if shutil.which("ssh") is None:
            raise errors.MissingTool("ssh is not on this machine", hint="apt-get install openssh-client")
        return ["ssh", *_OPTIONS, *self.options, self.host, command]

    def shell(self, script: str, data: bytes | None = None, *, doing: str = "asking") -> str:
        """stdout of shell commands on the board. data: their stdin; without it the shell reads the script from stdin.

        Raises BoardError with the reason.
        """
        command, fed = "exec sh -s", script.encode()
        if data is not None:  # independent of the user's shell there
            command, fed = f"exec sh -c {shlex.quote(script or 'true')}", data
        limit = 60 * self.patience + len(fed) / 100e3
        ended = process.run(self._ssh(command), timeout_s=limit, talk=process.Talk([fed]))
        if ended.status == 0 and not ended.timed_out:
            return ended.stdout.decode(errors="replace")
        lines = [line for line in ended.stderr.strip().splitlines() if not line.startswith("Warning:")]
        word = f"no answer within {limit:.0f} s" if ended.timed_out else (lines or [f"status {ended.status}"])[-1]
        hint = next((h for sign, h in _LOGIN if sign.lower() in ended.stderr.lower()), "")
        raise errors.BoardError(
            f"{doing} {self.host} failed: {word}",
            hint=hint.replace("HOST", self.host) or self.hint,
        )

    def place(self, path: Path) -> str:
        """Copies a program or a folder of libraries to the board and returns its path there. Raises BoardError."""
        known = (path, path.stat().st_mtime_ns)
        if known not in self._placed:
            self._placed[known] = self._folder(path) if path.is_dir() else self._file(path)
        return self._placed[known]

    def _read(self, path: Path) -> bytes:
        hint = "build it again, or remove it from its folder"
        with errors.of_system(errors.BoardError, f"{path} cannot be copied to {self.host}", hint):
            return files.read(path, files.LIBRARY)

    def _file(self, path: Path) -> str:
        data = self._read(path)
        name = shlex.quote(f"{self.folder}/{path.name}-{hashlib.sha256(data).hexdigest()[:16]}")
        # Nearly all candidates are new, so a check would only cost a connection.
        if len(data) > _ASK_BYTES and (remote := self.shell(_there(name), b"").strip()):
            return remote
        receive = f"cd && mkdir -p {shlex.quote(self.folder)} && {{ cat > {name}.$$; {_whole(name, len(data))}; }}"
        return self.shell(receive, data, doing=f"copying {path.name} to").strip()

    def _folder(self, path: Path) -> str:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for file in sorted(p for p in path.iterdir() if p.is_file()):
                held = self._read(file)
                entry = tarfile.TarInfo(file.name)
                entry.size, entry.mode = len(held), 0o755
                archive.addfile(entry, io.BytesIO(held))
        data = packed.getvalue()
        name = shlex.quote(f"{self.folder}/libraries-{hashlib.sha256(data).hexdigest()[:16]}")
        if remote := self.shell(_there(name), b"").strip():
            return remote
        receive = (
            f"cd && rm -rf {name}.part && mkdir -p {name}.part && tar -xf - -C {name}.part && mv {name}.part {name} "
            f"&& readlink -f {name}"
        )
        return self.shell(receive, data, doing=f"copying {path.name} to").strip()

    def prune(self) -> None:
        """Removes candidates of earlier jobs (a search leaves hundreds). Raises BoardError."""
        folder = shlex.quote(self.folder)
        self.shell(f"cd && [ ! -d {folder} ] || find {folder} -name 'candidate-*' -mmin +240 -exec rm -f {{}} +", b"")

    def back(self) -> bool:
        """Waits until a lost board answers again; False if it does not."""
        deadline = time.monotonic() + _BACK_S
        while True:
            try:
                self.shell("", b"")
                return True
            except errors.BoardError:
                if time.monotonic() > deadline:
                    return False
                waiting.pause(2.0)

    def command(self, launch: Launch) -> list[str]:
        # The program closes its own jail; these limits also hold on kernels without one.
        words = ["env", "-i", *(f"{k}={v}" for k, v in launch.environment.items()), *launch.argv]
        return self._ssh("exec " + shlex.join(["sh", "-c", _LIMITED, *words]))

    def environment(self, wanted: Mapping[str, str]) -> dict[str, str] | None:
        return None

    def lost(self, status: int, log: str) -> str | None:
        # ssh returns 255 for its own failures and for programs ended by a signal; the harness catches most signals.
        return f"the connection to {self.host} was lost" if status == 255 else None


def board(address: str) -> Ssh:
    """The board at [user@]host[:port]. Raises UsageError for an invalid address."""
    host, _, port = address.rstrip("/").partition(":")
    # ssh would read a host with a leading dash as an option.
    if not host or host.startswith("-") or (port and not port.isdigit()):
        raise errors.UsageError(
            f"--runner ssh://{address} is not an address",
            hint="expected ssh://[user@]host[:port], e.g. ssh://user@board:2222",
        )
    return Ssh(host, ("-p", port) if port else ())


def _there(name: str) -> str:
    """A shell command that prints the absolute path of `name` if it exists."""
    return f"cd && if [ -e {name} ]; then readlink -f {name}; fi"


def _whole(name: str, size: int) -> str:
    """A shell command that puts a received file in place if it is complete, and removes it otherwise."""
    return (
        f'[ "$(wc -c < {name}.$$)" -eq {size} ] && chmod +x {name}.$$ && mv {name}.$$ {name} && readlink -f {name} '
        f"|| {{ rm -f {name}.$$; exit 1; }}"
    )
