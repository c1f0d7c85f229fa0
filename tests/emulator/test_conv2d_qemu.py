"""conv2d under a board model: gathers, planes and depthwise loops on long vectors."""

from __future__ import annotations

from pathlib import Path

from tests.support.commands import tensorop

SHAPES = "n1c8h14w14k16r3s3p1,n1c3h24w24k8r7s7u2p3,n1c16h14w14k16r3s3u2p1g16"


def test_a_job_under_a_board_model(tmp_path: Path) -> None:
    words = ("conv2d", "--platform", "spacemit-k1", "--shapes", SHAPES, "--dtype", "f32", "--trials", "3")
    ended = tensorop(*words, "--format", "json", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    rows = ended.json()["bench"]["results"]
    assert [row["shape"] for row in rows] == SHAPES.split(",")
    assert all(row["ours"] > 0 and row["ratio"]["im2col+openblas"] > 1 for row in rows)
    assert all(verdict == "ok" for row in rows for verdict in row["verdict"].values())
    assert "instructions" not in ended.stderr  # the model knows all of them
