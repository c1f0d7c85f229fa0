"""The shell blocks of the tutorial, one after the other in one folder, as a newcomer runs them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support import docs

BUDGET = ("--budget 1m", "--budget 1s")  # the page's, and the test's
PRINTED = (  # what each block prints
    "library: build/gemm-native/lib/libtensorop_gemm.so\n",
    "libtensorop_gemm.so",
    "status 0: 4 5 10 11\n",
    "100% tests passed, 0 tests failed out of 2",
    "('f32',) True\n",
    "100x1x1000",
)


@pytest.mark.covers("example docs/tutorial.md")
def test_the_blocks_of_the_tutorial(tmp_path: Path) -> None:
    if any(shutil.which(tool) is None for tool in ("pkg-config", "cc", "cmake", "ctest")):
        pytest.skip("pkg-config, cc or cmake is not installed")
    blocks = docs.blocks("docs/tutorial.md")
    assert BUDGET[0] in blocks[0]
    for block, printed in zip(blocks, PRINTED, strict=True):
        done = docs.run(block.replace(*BUDGET), tmp_path, tmp_path)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        assert printed in done.stdout, f"{block}\n{done.stdout}"
