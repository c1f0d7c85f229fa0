"""What a job needs is brought side by side; what is missing is said without waiting for the rest."""

from __future__ import annotations

import subprocess
import threading

import pytest

from tensorop.errors import JobError, MissingTool
from tensorop.process import children
from tensorop.provision import libc, prewarm


def test_a_missing_piece_ends_what_the_others_started(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, how = threading.Event(), []

    def long() -> None:
        begun.set()
        try:
            children.run(["sleep", "600"], timeout=600)
        except BaseException as error:
            how.append(type(error))
            raise

    def missing() -> None:
        begun.wait(60)
        raise MissingTool("openblas is not in the cache", hint="python -m tensorop.provision openblas riscv64")

    monkeypatch.setattr(prewarm, "jobs", lambda arch, **_: {"libc": long, "openblas": missing})
    with pytest.raises(MissingTool, match="not in the cache"):
        prewarm.bring("riscv64")
    assert how == [children.Cancelled]
    assert children.run(["true"], timeout=60).returncode == 0  # a later job of this process starts its own


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        ("error: IO failure on output stream: No space left on device", JobError, "the disk is full: zig cannot link"),
        ("error: no such option", MissingTool, "zig cannot link a program for x86_64: error: no such option"),
    ],
)
def test_a_full_disk_is_no_torn_tool(monkeypatch: pytest.MonkeyPatch, said: str, kind: type, told: str) -> None:
    failed = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(children, "run", lambda *words, **more: failed)
    with pytest.raises(kind, match=told) as refused:
        libc.warm_shared("x86_64", "x86_64-linux-gnu.2.31")
    assert type(refused.value) is kind


def test_all_that_is_needed_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    monkeypatch.setattr(prewarm, "jobs", lambda arch, **_: {name: lambda n=name: done.append(n) for name in "abc"})
    prewarm.bring("riscv64")
    assert sorted(done) == ["a", "b", "c"]
