"""The new board of docs/how-to/describe-a-platform.md, resolved and modelled with its own caches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tensorop.backends import reach
from tensorop.backends.qemu import Backend
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.specs import platforms
from tests.support import kernels

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "describe-a-platform.md"
LINE = 64
KIB_48 = 48 * 1024  # of both operands: more than rvv's level 1 of 32 KiB, less than the board's 64


@pytest.fixture
def plugins(tmp_path: Path) -> tuple[Path, ...]:
    text = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert text is not None
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "my-board.yaml").write_text(text[1])
    return (tmp_path,)


def test_the_documented_board_is_modelled_with_its_own_caches(plugins: tuple[Path, ...], tmp_path: Path) -> None:
    program = kernels.program(kernels.AXPY, tmp_path / "work", arch="riscv64")
    call = kernels.axpy_call(KIB_48 // 8)
    misses = {}
    for name in ("my-board", "rvv"):
        platform = platforms.load(name, plugins)
        target = reach(platform, None)
        assert isinstance(target, Backend)
        (measured,) = target.measure(MeasureRequest(program, [call], purpose=Purpose.CHOICE, vlen=512))
        counted = measured.samples
        misses[target.model.name] = counted.counters["misses.l1"]
    small, large = misses["generic-inorder-rvv"], misses["my-board, after generic-inorder-rvv 6"]
    assert large < 10 < KIB_48 / LINE <= small  # least recently used first: who walks over more misses all of it
    board = platforms.load("my-board", plugins)
    assert board.modelled_caches == ("l1", "l2")
    assert list(board.caches) == ["l1", "l2", "l3"]
