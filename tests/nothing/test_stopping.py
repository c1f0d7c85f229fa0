"""Interrupts and what must change together."""

from __future__ import annotations

from pathlib import Path

import pytest

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
