"""The command line in a process of its own, as users start it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import preloaded

ROOT = Path(__file__).resolve().parents[2]
JOURNAL = Path("share/tensorop/journal.jsonl")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        return json.loads(self.stdout)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH", "")) if p)
    return {**os.environ, "PYTHONPATH": path, **(extra or {})}


def _hear_signals() -> None:
    """A suite run in the background of a shell, or under nohup, ignores these and hands that down."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


Child = subprocess.Popen[str] | preloaded.Child


def start(*words: object, cwd: Path, env: Mapping[str, str] | None = None, fresh: bool = False) -> Child:
    """A running command, in a process group of its own. fresh: as users start it, and below this process; it is where
    `env` changes what can be imported."""
    if not (fresh or "PYTHONPATH" in (env or {})):
        return preloaded.Child(list(map(str, words)), cwd, environment(env))
    return subprocess.Popen(
        [sys.executable, "-m", "tensorop", *map(str, words)],
        cwd=cwd,
        env=environment(env),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=_hear_signals,
    )


def finish(child: Child, timeout_s: float = 300) -> Ended:
    try:
        out, err = child.communicate(timeout=timeout_s)
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise
    return Ended(child.returncode, out, err)


class Watched:
    """A running command whose progress is read as it comes."""

    def __init__(self, *words: object, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        self.child = start(*words, cwd=cwd, env=env)
        self.told = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.child.stderr
        for line in self.child.stderr:
            self.told += line

    def until(self, what: str | Callable[[], bool], timeout_s: float = 120) -> None:
        """Until a text was told or something holds; fails when the command ends before or the time runs out."""
        end = time.monotonic() + timeout_s
        while not (what in self.told if isinstance(what, str) else what()):
            assert self.child.poll() is None, f"ended early with {self.child.returncode}\n{self.told}"
            assert time.monotonic() < end, f"nothing happened\n{self.told}"
            time.sleep(0.01)

    def press(self, number: int = signal.SIGINT) -> None:
        """A signal to its whole process group, as the terminal's Ctrl-C is."""
        kill_group(self.child, number)

    def finish(self, timeout_s: float = 300) -> Ended:
        assert self.child.stdout
        try:
            out = self.child.stdout.read()
            status = self.child.wait(timeout_s)
        except BaseException:
            kill_group(self.child)
            self.child.wait()
            raise
        self._reader.join()
        return Ended(status, out, self.told)


def tensorop(
    *words: object, cwd: Path, env: Mapping[str, str] | None = None, timeout_s: float = 300, fresh: bool = False
) -> Ended:
    """Runs a command to its end; no end of any command may show a traceback."""
    ended = finish(start(*words, cwd=cwd, env=env, fresh=fresh), timeout_s)
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended


def refused(*words: object, cwd: Path, env: Mapping[str, str] | None = None, status: int = 2) -> str:
    """Runs a command that must fail with this status; returns what it said: at most a few lines, none on stdout."""
    ended = tensorop(*words, cwd=cwd, env=env)
    assert ended.status == status, f"status {ended.status}\n{ended.stdout}\n{ended.stderr}"
    assert ended.stdout == ""
    return ended.stderr


def journal(folder: Path) -> list[dict[str, Any]]:
    """The whole lines of a run's journal."""
    path = folder / JOURNAL
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [record for record in journal(folder) if record["event"] == kind]


def wait_for(what: Callable[[], bool], child: Child, timeout_s: float = 120) -> None:
    """Until `what` holds; fails when the command ends before or the time runs out."""
    end = time.monotonic() + timeout_s
    while not what():
        if child.poll() is not None:
            out, err = child.communicate()
            raise AssertionError(f"ended early with {child.returncode}\n{out}\n{err}")
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def kill_group(child: Child, number: int = signal.SIGKILL) -> None:
    """What Ctrl-C at a terminal or an out-of-memory kill does to a command."""
    os.killpg(child.pid, number)
