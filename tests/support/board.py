"""A board on this machine: a real sshd on 127.0.0.1 whose programs run under QEMU.

A forced command starts every session with a PATH in which `env` hands RISC-V programs to the emulator and `cat`,
`uname` and `getconf` answer as the board would. Everything else of it (keys, copying, losing it) is real.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tensorop.provision import qemu

CPUINFO = """processor\t: 0
hart\t\t: 0
model name\t: Spacemit(R) X60
isa\t\t: rv64imafdcv_zicbop_zicsr_zifencei_zba_zbb_zbs
mmu\t\t: sv39
uarch\t\t: spacemit,x60
mvendorid\t: 0x710
marchid\t\t: 0x8000000058000001
"""
_EXCHANGE = "curve25519-sha256"  # the usual one takes four times as long, at each of hundreds of connections
_SYS = "sys/devices/system/cpu/cpu0"
_CACHES = {
    "index0": ("1", "Data", "32K", "4", "64", "128", "0"),
    "index1": ("1", "Instruction", "32K", "4", "64", "128", "0"),
    "index2": ("2", "Unified", "512K", "16", "64", "512", "0-3"),
}
_FIELDS = (
    "level",
    "type",
    "size",
    "ways_of_associativity",
    "coherency_line_size",
    "number_of_sets",
    "shared_cpu_list",
)

_ENV = """#!/bin/bash
# `env -i K=V... PROGRAM ...` of a foreign program
shift
words=()
while [[ $1 == *=* ]]; do words+=(-E "$1"); shift; done
exec /usr/bin/env -i {qemu} -cpu "$(<"{root}/cpu")" -L {sysroot} "${{words[@]}}" "$@"
"""
_CAT = """#!/bin/bash
case "$1" in
/proc/cpuinfo) exec /bin/cat "{root}/cpuinfo" ;;
/sys/*) exec /bin/cat "{root}$1" ;;
"") [ -e "{root}/full" ] && {{ /bin/cat > /dev/null; echo "cat: write error: No space left on device" >&2; exit 1; }}
    exec /bin/cat ;;
*) exec /bin/cat "$@" ;;
esac
"""
_UNAME = """#!/bin/bash
[ "$1" = -m ] && exec /bin/cat "{root}/machine"
echo 6.6.63-board
"""
_GETCONF = """#!/bin/bash
[ "$1" = GNU_LIBC_VERSION ] && exec echo glibc 2.41
[ "$1" = _NPROCESSORS_ONLN ] && exec echo 8
[ "$1" = PAGESIZE ] && exec echo 4096
"""
_SSH = """#!/bin/bash
exec /usr/bin/ssh -F "{root}/ssh_config" "$@"
"""
_SESSION = """#!/bin/bash
export PATH={root}/bin:$PATH HOME={root}/home
cd
exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"
"""


@dataclass
class Board:
    """A running one. word: for --runner, with `path` first in PATH; options: ssh's, for runners made by hand."""

    root: Path
    port: int
    server: subprocess.Popen[bytes] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        return ("-F", str(self.root / "ssh_config"), "-p", str(self.port))

    @property
    def word(self) -> str:
        return f"ssh://127.0.0.1:{self.port}"

    @property
    def path(self) -> str:
        """A PATH whose ssh knows the keys of this board."""
        return f"{self.root / 'client'}:{os.environ['PATH']}"

    def trust(self, other: Board) -> None:
        """Lets the key of another board's user in, and makes its ssh know this board."""
        for file, text in (
            (self.root / "authorized", other.root / "user.pub"),
            (other.root / "known", self.root / "known"),
        ):
            file.write_text(file.read_text() + text.read_text())

    def start(self) -> None:
        self.server = subprocess.Popen(
            ["/usr/sbin/sshd", "-D", "-e", "-f", str(self.root / "sshd_config")],
            stderr=(self.root / "sshd.log").open("ab"),
        )
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        raise AssertionError((self.root / "sshd.log").read_text())

    def stop(self) -> None:
        """As when its power goes: the server and every session end at once."""
        if self.server is None:
            return
        for pid in _descendants(self.server.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.server.kill()
        self.server.wait()
        self.server = None

    def is_a(self, *, vlen: int = 256, machine: str = "riscv64", cpuinfo: str = CPUINFO) -> None:
        """What it claims and emulates from now on."""
        (self.root / "cpu").write_text(f"rv64,v=true,vext_spec=v1.0,vlen={vlen},elen=64")
        (self.root / "machine").write_text(machine + "\n")
        (self.root / "cpuinfo").write_text(cpuinfo)


def programs(board: Board) -> list[int]:
    """Emulated programs that run on it now."""
    if board.server is None:
        return []
    names = {pid: Path(f"/proc/{pid}/comm") for pid in _descendants(board.server.pid)}
    return [pid for pid, comm in names.items() if comm.exists() and comm.read_text().startswith("qemu")]


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for child in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split():
        found += [int(child), *_descendants(int(child))]
    return found


@contextlib.contextmanager
def board(root: Path) -> Iterator[Board]:
    """One that is a SpacemiT K1 until told otherwise; skips where this machine has no sshd."""
    if not Path("/usr/sbin/sshd").exists() or shutil.which("ssh") is None:
        pytest.skip("no openssh-server on this machine")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    for folder in ("bin", "home", "client"):
        (root / folder).mkdir(parents=True)
    for index, values in _CACHES.items():
        folder = root / _SYS / "cache" / index
        folder.mkdir(parents=True)
        for field, value in zip(_FIELDS, values, strict=True):
            (folder / field).write_text(value + "\n")
    names = {"root": root, "qemu": qemu.qemu("riscv64"), "sysroot": qemu.sysroot("riscv64")}
    shims = {
        "bin/env": _ENV,
        "bin/cat": _CAT,
        "bin/uname": _UNAME,
        "bin/getconf": _GETCONF,
        "session": _SESSION,
        "client/ssh": _SSH,
    }
    for name, text in shims.items():
        (root / name).write_text(text.format(**names) if "{root}" in text else text)
        (root / name).chmod(0o755)
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(root / key)], check=True)
    (root / "authorized").write_bytes((root / "user.pub").read_bytes())
    (root / "known").write_text(f"[127.0.0.1]:{port} {(root / 'host.pub').read_text()}")
    (root / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {root}/host\nAuthorizedKeysFile {root}/authorized\n"
        f"StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\nForceCommand {root}/session\n"
        f"PermitRootLogin yes\nMaxStartups 50\nKexAlgorithms {_EXCHANGE}\n"
    )
    (root / "ssh_config").write_text(
        f"IdentityFile {root}/user\nIdentitiesOnly yes\nUserKnownHostsFile {root}/known\nStrictHostKeyChecking yes\n"
        f"KexAlgorithms {_EXCHANGE}\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where a server of root confines its unprivileged part
    running = Board(root, port)
    running.is_a()
    running.start()
    try:
        yield running
    finally:
        running.stop()
