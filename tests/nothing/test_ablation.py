"""`author ablate` with simulated costs: what each arm asks, its replay, and transcripts of other arms."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tensorop.author.llm import transcript
from tensorop.commands import ablation
from tests.nothing.test_revising import ANSWERS, Model, model
from tests.support import commands

_ = model  # the fixture
WORDS = ("author", "ablate", "gemm", "--platform", "generic", "--runner", "null", "--dtype", "f32", "--shapes",
         "24x24x24", "--trials", "60")  # fmt: skip
CALLS = ("--author-calls", f"{len(ANSWERS)}")


def asked(out: Path, arm: str) -> list[str]:
    """Each question's whole text."""
    calls = transcript.calls(transcript.place(out / arm))
    return ["\n".join(message.text for message in call.request.messages) for call in calls]


@pytest.mark.extended
def test_each_arm_asks_without_its_part_and_is_replayed(model: Model, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = json.loads(commands.tensorop(*WORDS, *CALLS, "--out", out, "--format", "json", cwd=tmp_path).stdout)
    assert [one["name"] for one in found] == list(ablation.ARMS)
    assert {one["calls"] for one in found} == {len(ANSWERS)}
    assert len({one["trials"] for one in found if one["name"] != "configurations"}) == 1  # it has one template less
    for one in found:
        assert one["accepted"] == 3 - (one["name"] == "configurations")
        assert one["over_shipped"] == pytest.approx(one["shipped"] / one["best"] - 1)
    everything = asked(out, "everything")
    assert "## The core" in everything[0]
    assert "## Hint: tiling" in everything[0]
    assert "Your best template so far" in everything[1]
    for arm in ablation.ARMS[:-1]:
        texts = asked(out, arm)
        assert ("## The core" in texts[0]) == (arm != "no-facts")
        assert ("## Hint" in texts[0]) == (arm != "no-hints")
        assert ("Your best template so far" in texts[1]) == (arm not in ("no-feedback", "configurations"))
        assert ("Which other configurations" in texts[1]) == (arm == "configurations")
        left_out = transcript.head(transcript.place(out / arm)).left_out
        assert left_out == (arm.removeprefix("no-") if arm.startswith("no-") else "")

    again = (*WORDS, "--author", "replay", "--transcript", out, "--out", tmp_path / "again", "--format", "json")
    assert json.loads(commands.tensorop(*again, cwd=tmp_path).stdout) == found
    assert len(model.asked) == len(ANSWERS) * len(ablation.ARMS)


@pytest.mark.covers("command author ablate")
def test_a_transcript_counts_in_its_own_arm_alone(model: Model, tmp_path: Path) -> None:
    out = tmp_path / "out"
    one = (*WORDS, *CALLS, "--arm", "no-hints", "--out", out)
    shown = commands.tensorop(*one, cwd=tmp_path).stdout
    assert "no-hints" in shown
    assert not any(arm in shown for arm in ablation.ARMS if arm != "no-hints")
    shutil.copytree(out / "no-hints", tmp_path / "moved" / "everything")
    assert "add --transcript DIR" in commands.refused(*WORDS, "--author", "replay", "--out", out, cwd=tmp_path)
    words = (*WORDS, "--author", "replay", "--transcript", tmp_path / "moved", "--out", tmp_path / "x")
    assert "recorded in the arm 'no-hints', and count there alone" in commands.refused(
        *words, "--arm", "everything", cwd=tmp_path
    )
