"""conv2d under a board model: gathers, planes and depthwise loops on long vectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import tensorop
from tests.support.convolutions import PIPELINED, verdict

SHAPES = "n1c8h14w14k16r3s3p1,n1c3h24w24k8r7s7u2p3,n1c16h14w14k16r3s3u2p1g16"


@pytest.mark.extended
def test_a_job_under_a_board_model(tmp_path: Path) -> None:
    words = ("conv2d", "--platform", "spacemit-k1", "--shapes", SHAPES, "--dtype", "f32", "--trials", "3")
    ended = tensorop(*words, "--format", "json", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    rows = ended.json()["bench"]["results"]
    assert [row["shape"] for row in rows] == SHAPES.split(",")
    assert all(row["ours"] > 0 and row["ratio"]["im2col+openblas"] > 1 for row in rows)
    assert all(verdict == "ok" for row in rows for verdict in row["verdict"].values())
    assert "instructions" not in ended.stderr  # the model knows all of them


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("platform", "template", "more"),
    [
        ("spacemit-k1", "outer", {**PIPELINED, "mr_vectors": 2, "nr": 6, "lmul": 2, "pack_b": 0}),
        ("cortex-a53", "lanes", {"ku": 4, "halves": 1, "fetch": 16, "mr_vectors": 3, "nr": 8, "pack_b": 1}),
        ("cortex-a53", "outer", {**PIPELINED, "mr_vectors": 2, "nr": 8, "pack_b": 0}),
    ],
)
def test_a_variant_is_right(platform: str, template: str, more: dict[str, int]) -> None:
    found = verdict(platform, template, "f32", {**more, "pack_a": 1})
    assert found.ok, found.outcome
