"""What a job needs is brought side by side; what is missing is said without waiting for the rest."""

from __future__ import annotations

import threading

import pytest

from tensorop.errors import MissingTool
from tensorop.process import children
from tensorop.provision import prewarm


def test_a_missing_piece_ends_what_the_others_started(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, how = threading.Event(), []

    def long() -> None:
        begun.set()
        try:
            children.run(["sleep", "600"])
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
    assert children.run(["true"]).returncode == 0  # a later job of this process starts its own


def test_all_that_is_needed_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    monkeypatch.setattr(prewarm, "jobs", lambda arch, **_: {name: lambda n=name: done.append(n) for name in "abc"})
    prewarm.bring("riscv64")
    assert sorted(done) == ["a", "b", "c"]
