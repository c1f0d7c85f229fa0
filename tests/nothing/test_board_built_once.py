"""The board model's plug-in is built once, however many ask for it at a time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tensorop import backends
from tensorop.measure import board
from tensorop.specs import platforms


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """By build, the scenarios it has room for."""
    found: list[int] = []

    def build(compiler: str, lanes: int, sources: list[Path], path: Path) -> None:
        time.sleep(0.05)
        found.append(lanes)
        path.write_bytes(b"")

    monkeypatch.setattr(board, "cache_dir", lambda name: tmp_path)
    monkeypatch.setattr(board.shutil, "which", lambda cc: f"/bin/{cc}")
    monkeypatch.setattr(board, "output_of", lambda compiler, *words: "1")
    monkeypatch.setattr(board, "_build", build)
    return found


def test_several_that_ask_at_once_wait_for_one_build(built: list[int]) -> None:
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(lambda _: board.plugin(3), range(4)))
    assert len(paths) == 1
    assert built == [4]


def test_what_a_job_uses_is_there_beforehand(built: list[int], tmp_path: Path) -> None:
    target = backends.reach(platforms.load("rvv"), None)
    model = getattr(target, "model")  # noqa: B009
    board.bring(model)
    before = len(built)
    assert before >= 2
    for kind in ("best", "interval", "sensitivity"):
        board.prepare(model, 128, tmp_path, scenarios=kind, alternatives=kind != "best")
    assert len(built) == before
