"""The command line in a process of its own that had it loaded already: a copy of one that stays, made for each command.

Loading takes a second, of jobs with what they search and report with three; a suite starts some hundred commands.
Jinja2 takes another for gemm's templates. The one that stays (`python -m tests.support.preloaded`) has loaded modules
and read these templates, and done nothing else. Each copy has a session, folder, environment and output of its own,
runs `tensorop.cli.entry.main` and ends as an interpreter ends.
"""

from __future__ import annotations

import array
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

_LONGEST = 1 << 20  # bytes of a wish


class Child:
    """A running command, as far as tests ask subprocess.Popen."""

    def __init__(self, words: list[str], cwd: Path, env: Mapping[str, str]) -> None:
        ends = [os.pipe() for _ in range(3)]
        wish = json.dumps({"words": words, "cwd": str(cwd), "env": dict(env)}).encode()
        fds = array.array("i", [write for _, write in ends])
        _server().sendmsg([len(wish).to_bytes(4, "little") + wish], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        for _, write in ends:
            os.close(write)
        self.stdout: IO[str] = os.fdopen(ends[0][0], encoding="utf-8")
        self.stderr: IO[str] = os.fdopen(ends[1][0], encoding="utf-8")
        self._told = os.fdopen(ends[2][0])
        self.pid = int(self._told.readline())
        self.returncode: int | None = None
        self._waiting = threading.Thread(target=self._wait, daemon=True)
        self._waiting.start()

    def _wait(self) -> None:
        self.returncode = int(self._told.readline())
        self._told.close()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._waiting.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("tensorop", timeout or 0)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        said: dict[str, str] = {}
        readers = [
            threading.Thread(target=lambda n=name, f=file: said.update({n: f.read()}), daemon=True)  # type: ignore[misc]
            for name, file in (("out", self.stdout), ("err", self.stderr))
        ]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
        self.stdout.close()
        self.stderr.close()
        return said["out"], said["err"]


@functools.cache
def _server() -> socket.socket:
    """The way to this process's own, which ends with it."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "tests.support.preloaded", str(theirs.fileno())]
    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), os.environ.get("PYTHONPATH", "")))}
    subprocess.Popen(
        command, cwd=root, env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
    )
    theirs.close()
    return ours


def _serve(way: socket.socket) -> dict[str, object] | None:
    """Returns the wish in each copy, and None when nobody can wish any more."""
    while True:
        head, rights, _, _ = socket.recv_fds(way, 4, 3)
        if not head:
            return None
        size = int.from_bytes(head, "little")
        wish = b""
        while len(wish) < size:
            wish += way.recv(min(size - len(wish), _LONGEST))
        if os.fork() == 0:  # one that waits for the command, and tells of it
            way.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            command = os.fork()
            if command == 0:
                os.setsid()
                os.dup2(rights[0], 1)
                os.dup2(rights[1], 2)
                for fd in rights:
                    os.close(fd)
                return dict(json.loads(wish))
            os.close(rights[0])
            os.close(rights[1])
            os.write(rights[2], f"{command}\n".encode())
            status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
            os.write(rights[2], f"{status}\n".encode())
            os._exit(0)
        for fd in rights:
            os.close(fd)


def _load() -> None:
    import skopt  # type: ignore[import-untyped]  # noqa: F401
    from sklearn import ensemble, inspection  # type: ignore[import-untyped]  # noqa: F401

    from tensorop.author import c_gate, offline
    from tensorop.cli import main  # noqa: F401
    from tensorop.render import instantiate, render
    from tensorop.report import page  # noqa: F401
    from tensorop.specs import operators

    gemm = operators.load("gemm")
    for template in (*offline.templates(gemm.folder, gemm.name), offline.direct(gemm.folder, gemm.name)):
        assert template is not None
        render.read_ahead(gemm.templates, c_gate.marked(template.text), instantiate.KERNEL)
    around = render.of_operator(gemm.parts)
    for name in around.list_templates(filter_func=lambda name: name.endswith((".c.j2", ".h.j2"))):
        if not name.startswith(("kernels/", "prompts/")):
            around.get_template(name)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _load()
    wish = _serve(socket.socket(fileno=int(sys.argv[1])))
    if wish is not None:
        os.chdir(str(wish["cwd"]))
        os.environ.clear()
        os.environ.update(wish["env"])  # type: ignore[call-overload]
        sys.argv = ["tensorop", *wish["words"]]  # type: ignore[misc]
        from tensorop.cli.entry import main

        main()
