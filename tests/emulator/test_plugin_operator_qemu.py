"""An operator of a user's own folder under a board model, whose kernels load with strides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import ROOT, tensorop

SHAPES = "b1c2h64t3,b1c2h65t5u2p1"


@pytest.mark.extended
def test_a_job_under_a_board_model(tmp_path: Path) -> None:
    words = ("conv1d", "--plugins", ROOT / "examples" / "operator", "--platform", "spacemit-k1", "--shapes", SHAPES)
    ended = tensorop(*words, "--dtype", "f32", "--trials", "4", "--format", "json", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    rows = ended.json()["bench"]["results"]
    assert [row["shape"] for row in rows] == SHAPES.split(",")
    assert all(row["ours"] > 0 and row["ratio"]["taps+openblas"] > 0 for row in rows)
    assert "instructions" not in ended.stderr  # the model knows all of them
    product = tmp_path / "build" / "conv1d-spacemit-k1"
    against = ("--plugins", ROOT / "examples" / "operator", "--against", "loops", "--shapes", "b1c2h64t3")
    compared = tensorop("bench", product, *against, "--format", "json", cwd=tmp_path)
    assert compared.status == 0, compared.stderr
    (row,) = compared.json()["results"]
    assert row["ratio"]["loops"] > 0  # a baseline over no library
    assert row["verdict"]["loops"] == "ok"
