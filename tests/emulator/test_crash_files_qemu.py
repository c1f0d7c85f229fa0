"""The same under QEMU, which would write a core of its own where its guest ends by a signal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import crashes


@pytest.mark.skipif(not crashes.may_leave_cores(), reason="no process here may leave a core")
def test_a_crash_under_the_emulator_leaves_no_file(tmp_path: Path) -> None:
    crashes.nothing_is_left("rvv", crashes.made(tmp_path), ("a store",))
