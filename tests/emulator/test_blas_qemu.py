"""Products of `tensorop blas` for RISC-V and ARM before the judge, under QEMU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorop import backends
from tensorop.blas import binding
from tensorop.specs import platforms
from tests.support import products
from tests.support.judged_blas import ROUTINES, judged, texts


@pytest.mark.extended
@pytest.mark.parametrize(("platform", "vlen"), [("rvv", 256), ("neon", 0)])
def test_the_judge_finds_nothing(platform: str, vlen: int, tmp_path: Path) -> None:
    prefix = products.install(platform, tmp_path / "blas", operator="blas")
    runner = backends.start(platforms.load(platform), None)
    library = binding.find(prefix / "lib/libtensorop_cblas.so")
    assert not texts(judged(library, ",".join(ROUTINES), runner, vlens=(vlen,)))
