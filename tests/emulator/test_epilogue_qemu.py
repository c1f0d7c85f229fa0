"""Epilogues of gemm on vectors of RISC-V and ARM, in the emulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import epilogues


@pytest.mark.extended
@pytest.mark.parametrize("platform", ["rvv", "neon"])
@pytest.mark.parametrize("dtypes", [("f32", "f64"), ("bf16", "f16")], ids="+".join)
def test_calls_with_epilogues_are_right(platform: str, dtypes: tuple[str, ...], tmp_path: Path) -> None:
    epilogues.accepted(platform, tmp_path / "gemm", dtypes)
