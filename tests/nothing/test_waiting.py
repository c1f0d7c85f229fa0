"""Nothing foreign is waited for without end: locks, what cannot be ended, files that are none, a silent host."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorop import pipeline
from tensorop.commands import judge, opened
from tensorop.errors import JobError, Stopped, TensoropError, UsageError
from tensorop.kits import result
from tensorop.model.job import Job
from tensorop.process import children, deadline, locks, waiting
from tensorop.process.stopping import StopRequest
from tensorop.specs import benches, operators, yamlfile
from tensorop.store import journal
from tensorop.warm import reading

HOLDER = """
import fcntl, sys
held = open(sys.argv[1], "w")
fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A file and the process that holds its lock."""
    path = tmp_path / "lock"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout
        holder.stdout.readline()
        yield path, holder.pid


def test_a_lock_that_another_process_holds(
    locked: tuple[Path, int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, process = locked
    monkeypatch.setattr(locks, "SAID_S", 0.0)
    monkeypatch.setattr(locks, "MOST_S", 0.5)
    caplog.set_level(logging.INFO)
    with (
        pytest.raises(JobError, match=f"is still locked after 0.5 s, by process {process} .*: it fetches"),
        locks.held(path, "it fetches packages"),
    ):
        pass
    assert f"waiting for process {process} (" in caplog.text


def test_ctrl_c_ends_the_wait_for_a_lock(locked: tuple[Path, int]) -> None:
    children.end()
    try:
        with pytest.raises(children.Cancelled), locks.held(locked[0], "it measures"):
            pass
    finally:
        children.allow()


def test_a_lock_passes_on(tmp_path: Path) -> None:
    for _ in range(2):
        with locks.held(tmp_path / "lock", "a test"):
            assert locks.holder(tmp_path / "lock") == os.getpid()
    assert locks.holder(tmp_path / "lock") is None


def test_what_cannot_be_ended_is_left_to_itself() -> None:
    never = threading.Event()
    with pytest.raises(TimeoutError):
        waiting.within(0.1, never.wait)
    children.end()
    try:
        with pytest.raises(children.Cancelled):
            waiting.within(600.0, never.wait)
        assert waiting.within(600.0, lambda: 3, heeding=False) == 3
    finally:
        children.allow()
    with pytest.raises(ZeroDivisionError):
        waiting.within(600.0, lambda: 1 // 0)
    never.set()


def test_a_fifo_is_no_file(tmp_path: Path) -> None:
    """Whoever opens one waits for a writer."""
    fifo = tmp_path / "x.c"
    os.mkfifo(fifo)
    out = tmp_path / "out"
    kept = journal.journal_path(out)
    kept.parent.mkdir(parents=True)
    os.mkfifo(kept)
    gemm = operators.load("gemm")
    warm = Job("gemm", "generic", ("f32",), (), out=out, warm_start=str(fifo))
    for read in (
        lambda: yamlfile.read(fifo),
        lambda: result.lines(fifo),
        lambda: benches.read(fifo),
        lambda: opened.open_each(fifo),
        lambda: judge.template_text(fifo, gemm),
        lambda: journal.read(out),
        lambda: list(reading.read(warm)),
        lambda: journal.Journal.open(out, {}, fresh=False),
        lambda: journal.Journal.open(out, {}, fresh=True),
    ):
        with pytest.raises(TensoropError):
            read()  # type: ignore[no-untyped-call]


def test_ctrl_c_while_a_host_says_nothing(tmp_path: Path) -> None:
    """It takes the connection; ssh waits for its name."""
    stop = StopRequest()
    with socket.create_server(("127.0.0.1", 0)) as host:
        threading.Thread(target=lambda: (host.accept(), stop.ask()), daemon=True).start()
        runner = f"ssh://127.0.0.1:{host.getsockname()[1]}"
        job = Job("gemm", "spacemit-k1", ("f32",), ((8, 8, 8),), runner=runner, out=tmp_path / "out")
        with pytest.raises(Stopped):
            list(pipeline.run(job, stop))
    assert not (tmp_path / "out").exists()


def test_the_wish_for_a_warm_start_at_a_device(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--warm-start /dev/null: it must be a file or a folder"):
        list(reading.read(Job("gemm", "generic", ("f32",), (), out=tmp_path, warm_start="/dev/null")))


def test_time_at_a_lock_is_not_time_of_a_trial(locked: tuple[Path, int]) -> None:
    path, process = locked
    threading.Timer(0.5, os.kill, (process, signal.SIGKILL)).start()
    with deadline.within(0.2) as limit, locks.held(path, "it tests"):
        assert deadline.left(limit.at) > 0.1
    assert not limit.struck
