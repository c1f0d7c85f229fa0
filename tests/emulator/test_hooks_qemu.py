"""Operators on gemm's loops, where vectors have any length and no masks are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import hooked
from tests.support.variants import verdict


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", hooked.NAMES)
def test_tiles_of_long_vectors_are_right(name: str) -> None:
    found = verdict(hooked.load(name), "rvv", "outer", "f32", hooked.PACKED)
    assert found.ok, found.outcome


def test_all_hooks_together_with_a_kernel_by_lanes(tmp_path: Path) -> None:
    found = verdict(
        hooked.with_every_hook(tmp_path), "neon", "lanes", "f32", {**hooked.PACKED, "halves": 1, "fetch": 8}
    )
    assert found.ok, found.outcome
