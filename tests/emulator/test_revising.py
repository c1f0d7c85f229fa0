"""A language model is asked again during a search under a board model; a replay makes the same library."""

from __future__ import annotations

import shutil
from pathlib import Path

from tensorop.store import journal
from tests.nothing.test_revising import ANSWERS, GROUP, LLM, WHOLE, Model, model, noted, started, tried

_ = model  # the fixture
JOB = ("--platform", "cortex-a53", "--runner", "qemu", "--trials", "16", "--batch", "2")


def sources(out: Path) -> dict[str, bytes]:
    folder = out / "share" / "tensorop" / "src"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.c")}


def test_what_was_measured_is_asked_with_and_a_replay_makes_the_same_library(model: Model, tmp_path: Path) -> None:
    out, again = tmp_path / "out", tmp_path / "again"
    text, _ = started(out, *JOB, *LLM).communicate(timeout=1500)
    assert len(model.asked) == len(ANSWERS), text
    better = model.asked[1]
    assert "Your best template so far is `llm-1`" in better
    assert "fmla" in better.split("hottest loop")[1]
    assert "nothing is spilled there" in better
    for what in (
        "No kernel can cost less than",
        "Instructions of one call",
        "by cause: ",
        "times the bound",
        "24x24x24",
    ):
        assert what in better
    history = journal.read(out)
    assert noted(history) == WHOLE
    assert [template.name for template, _ in history.joined(GROUP)] == ["llm-2", "llm-4"]

    (again / "work").mkdir(parents=True)
    shutil.copytree(out / "work" / "llm", again / "work" / "llm")
    text, _ = started(again, *JOB, "--author", "replay").communicate(timeout=1500)
    assert len(model.asked) == len(ANSWERS)
    assert tried(journal.read(again)) == tried(history), text
    assert sources(again) == sources(out)
