"""Interrupts and what must change together."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import tensorop
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.point import Point
from tensorop.model.trial import Stage, Trial
from tensorop.process import stopping
from tensorop.store import journal as journals
from tensorop.store.journal import Journal


def test_an_interrupt_waits_for_the_end_of_a_block() -> None:
    seen = []

    def changes() -> None:
        with stopping.whole(), stopping.whole():
            stopping.interrupt()
            seen.append("the rest")
        seen.append("never")

    with pytest.raises(KeyboardInterrupt):
        changes()
    assert seen == ["the rest"]
    with stopping.whole():
        seen.append("one is raised once")


def test_elsewhere_it_comes_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        stopping.interrupt()


def test_what_the_journal_wrote_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = journals._write

    def interrupted(descriptor: int, data: bytes) -> None:
        write(descriptor, data)
        stopping.interrupt()

    trial = Trial(
        "k", 0, Stage.MICRO, Variant(Kernel(KernelTemplate("op", "outer", "offline", "", ""), "f32", Point.of(mr=4)))
    )
    with Journal.open(tmp_path, {}) as journal:
        journal.template(trial.variant.template)
        monkeypatch.setattr(journals, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.start(trial)
        assert journal.history.started("k", 0) is not None
    assert journals.read(tmp_path).started("k", 0) is not None


def test_every_exception_crosses_a_block_that_may_end() -> None:
    """A context manager made of a generator sets the traceback of an exception that crosses it."""
    names = (found.name for found in pkgutil.walk_packages(tensorop.__path__, "tensorop."))
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    members = [one for module in modules for _, one in inspect.getmembers(module, inspect.isclass)]
    own = {one for one in members if issubclass(one, BaseException) and one.__module__.startswith("tensorop.")}
    assert len(own) > 15
    for one in own:
        with pytest.raises(one) as caught, stopping.StopRequest().may_end("stopping"):
            raise one.__new__(one)
        assert caught.type is one
