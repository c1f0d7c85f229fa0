"""A language model is asked again during a search under a board model; a replay makes the same library."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorop.store import journal
from tests.nothing.test_revising import ANSWERS, GROUP, LLM, WHOLE, Model, model, noted, printed, started, tried
from tests.support import plugins

_ = model  # the fixture
JOB = ("--runner", "qemu", "--trials", "16", "--batch", "2")


def made(out: Path) -> dict[str, bytes]:
    """Sources and libraries."""
    files = [*(out / "share" / "tensorop" / "src").rglob("*.c"), *(out / "lib").glob("*.so")]
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


@pytest.mark.extended
def test_what_was_measured_is_asked_with_and_a_replay_makes_the_same_library(model: Model, tmp_path: Path) -> None:
    out, again = tmp_path / "out", tmp_path / "again"
    job = (*JOB, *plugins.small_blocks(tmp_path / "plugins", "cortex-a53"))
    text = printed(started(out, *job, *LLM), 600)
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

    text = printed(started(again, *job, "--author", "replay", "--transcript", str(out)), 600)
    assert len(model.asked) == len(ANSWERS)
    assert tried(journal.read(again)) == tried(history), text
    assert made(again) == made(out)
