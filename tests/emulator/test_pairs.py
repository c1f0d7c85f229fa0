"""What typed actions gain is measured without a language model, under a board model."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from tensorop.author import offline
from tensorop.specs import operators
from tests.support import commands

DATA = Path(__file__).parents[1] / "data" / "transcripts"
GEMM = operators.load("gemm")
IDEAS = {one.name: one.ideas for one in offline.templates(GEMM.folder, "gemm")}


@pytest.mark.extended
def test_a_pair_of_configurations_is_measured_in_both_directions(tmp_path: Path) -> None:
    words = ("author", "pairs", "gemm", "--platform", "cortex-a53", "--trials", 4, "--out", tmp_path / "pairs.jsonl")
    done = commands.tensorop(*words, "--format", "json", cwd=tmp_path)
    assert done.status == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert sum(one["pairs"] for one in done.json()) == len(rows) > 0
    gains = {(row["template"], row["before"], row["after"]): row["gain"] for row in rows}
    for row in rows:
        assert abs(row["gain"] * gains[row["template"], row["after"], row["before"]] - 1) < 1e-3
        assert f"{row['action']} {row['region']}" in {*IDEAS[row["template"]].values()}
        assert (row["reward"] > 0) == (row["gain"] > 1)
        assert row["features"]["in_order"] == 1


@pytest.mark.extended
def test_a_failed_answer_of_a_recorded_dialogue_is_a_row(tmp_path: Path) -> None:
    with tarfile.open(DATA / "spacemit-k1-feedback-2.tar.xz") as archive:
        archive.extractall(tmp_path / "work" / "llm", filter="data")
    words = (
        "author",
        "pairs",
        "gemm",
        "--platform",
        "cortex-a53",
        "--from",
        tmp_path,
        "--out",
        tmp_path / "rows.jsonl",
    )
    done = commands.tensorop(*words, cwd=tmp_path)
    assert done.status == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [(row["action"], row["gain"], row["reward"]) for row in rows] == [("improve", 0.0, -0.8)]


def test_a_platform_that_a_clock_times_is_refused(tmp_path: Path) -> None:
    done = commands.tensorop("author", "pairs", "gemm", "--platform", "native", cwd=tmp_path)
    assert done.status == 2
    assert "platform 'native' is timed by a clock" in done.stderr
    assert "a board model" in done.stderr
