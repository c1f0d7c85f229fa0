"""A whole job with a platform, primitive set and tuner of a user's own folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import tensorop as package
from tests.support import plugins
from tests.support.commands import ROOT, refused, tensorop


def test_a_whole_job_with_plugins_of_ones_own(tmp_path: Path) -> None:
    own = plugins.write(tmp_path / "own", ROOT)
    words = ("gemm", "--plugins", own, "--platform", "my-board", "--tuner", "backwards", "--dtype", "f32")
    ended = tensorop(*words, "--shapes", "24x17x33", "--jobs", "1", "--trials", "4", "--out", "out", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    manifest = json.loads((tmp_path / "out/share/tensorop/manifest.json").read_text())
    assert manifest["platform"]["name"] == "my-board"
    assert manifest["operators"]["gemm"]["facts"]["tuner"] == "backwards"
    a, b = np.ones((5, 7), np.float32), np.full((7, 3), 2, np.float32)
    assert np.array_equal(package.load(tmp_path / "out").gemm(a, b), np.full((5, 3), 14, np.float32))


def test_an_operator_without_controls_is_not_tuned(tmp_path: Path) -> None:
    """Its judge was never seen to refuse anything."""
    own = plugins.write(tmp_path / "own", ROOT)
    message = refused("axpy", "--plugins", own, "--shapes", "100", "--trials", "4", "--out", "out", cwd=tmp_path)
    assert f"{own}/templates/axpy/controls holds no kernels" in message


def test_primitives_of_ones_own_are_checked_on_the_target(tmp_path: Path) -> None:
    own = plugins.write(tmp_path / "own", ROOT)
    ended = tensorop("primitives", "check", plugins.WORDS, "--plugins", own, cwd=tmp_path)
    assert ended.status == 0, ended.stdout + ended.stderr
