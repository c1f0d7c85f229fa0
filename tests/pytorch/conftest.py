"""One attention library of this machine for all modules, made as users make it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import tensorop

SHAPES = "b1h4g2s40t72d24,b1h4g1s1t300d64,b2h2g2s130t130d32"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    words = ("attention", "--platform", "native", "--dtype", "f32,bf16,f16", "--shapes", SHAPES, "--trials", "4")
    ended = tensorop(*words, "--out", "made", cwd=folder)
    assert ended.status == 0, ended.stderr
    return folder / "made"
