"""The C of a primitive by which threads exchange elements of C, executed on this machine's processor."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import pytest

from tensorop.cuda import kernels
from tensorop.provision.zig import zig_cc, zig_environment
from tensorop.specs import platforms
from tests.support.device_products import GEMM, SUPPORT


@pytest.mark.parametrize(
    ("width", "spoil"),
    [
        (32, ("", "")),
        (16, ("", "")),
        (16, ("place + i > 0", "true")),
        (16, ("place == 3 ? before : pair", "pair")),
        (16, ("here > 2 && place == 3", "false")),
    ],
    ids=["four", "two", "element-of-another-tile", "pair-of-other-columns", "last-element-missing"],
)
@pytest.mark.one_in(5)
def test_odd_rows_are_stored_by_words(width: int, spoil: tuple[str, str], tmp_path: Path) -> None:
    text = kernels._function(kernels.primitives(platforms.load("cuda-sm80"))["row_pairs_put"][0])
    text = kernels._rendered(GEMM, text, {"warp_n": width})
    assert spoil[0] in text
    (tmp_path / "primitive.inc").write_text(text.replace(*spoil) if spoil[0] else text)
    command = [
        *zig_cc(),
        "-std=c++17",
        "-fno-exceptions",
        "-O1",
        "-w",
        "-fno-strict-aliasing",
        "-shared",
        "-fPIC",
        f"-I{tmp_path}",
    ]
    command += [f"-DWARP_N={width}", str(SUPPORT / "row_pairs_on_cpu.cpp"), "-o", str(tmp_path / "run.so")]
    subprocess.run(command, check=True, env={**os.environ, **zig_environment()})
    assert (ctypes.CDLL(str(tmp_path / "run.so")).run() == 0) is (spoil[0] == "")
