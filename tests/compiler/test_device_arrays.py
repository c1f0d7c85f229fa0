"""gemm of a product for a device from Python, on arrays that only tell of themselves by a protocol."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorop
from tensorop.cuda import product
from tensorop.package import publish
from tensorop.provision import zig
from tensorop.specs import platforms
from tensorop.toolchain import tool
from tests.support.commands import ROOT
from tests.support.device_products import driver, made


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A product and, above it, a driver."""
    root = tmp_path_factory.mktemp("device") / "gemm"
    content, _ = made(platforms.load("cuda-sm90"), most=3)
    publish.publish(publish.stage(product.product(content), root), root)
    driver(root.parent)
    return root


def test_arrays_are_taken_as_they_lie_on_the_callers_stream(root: Path) -> None:
    there = {**os.environ, "LD_LIBRARY_PATH": str(root.parent), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "tests.support.device_arrays", str(root)]
    done = subprocess.run(words, env=there, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "as expected\n"


@pytest.mark.extended
def test_an_epilogue_is_applied_to_arrays_as_they_lie(root: Path) -> None:
    with_epilogue = root.with_name("finishing")
    content, _ = made(platforms.load("cuda-sm90"), 3, epilogue=True)
    publish.publish(publish.stage(product.product(content), with_epilogue), with_epilogue)
    there = {**os.environ, "LD_LIBRARY_PATH": str(root.parent), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "tests.support.device_epilogues", str(with_epilogue), str(root)]
    done = subprocess.run(words, env=there, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "as expected\n"), done.stderr


def test_a_product_that_was_never_run_says_so(root: Path) -> None:
    with pytest.warns(UserWarning, match="is not verified"):
        library = tensorop.load(root / "lib" / "libtensorop_gemm_cuda.so")
    assert library.dtypes == ("bf16", "f16")
    with pytest.raises(TypeError, match=r"a is in the host's memory: move it to the GPU first.*\(status 1\)"):
        library.gemm(np.zeros((2, 2), np.float16), None)


HUNG = "int cuInit(unsigned flags) { for (volatile int on = 1; on;) flags++; return (int)flags; }\n"
ASK = """
from tensorop.cuda import attached
attached._ANSWER_S = 0.5
print(attached.attached({"least": 90, "most": 90}))
"""


def test_a_driver_that_does_not_answer_is_none(tmp_path: Path) -> None:
    (tmp_path / "hung.c").write_text(HUNG)
    words = [*tool.cc("-shared", "-nostdlib", str(tmp_path / "hung.c"), "-o", str(tmp_path / "libcuda.so.1"))]
    subprocess.run(words, check=True, env=zig.zig_environment())
    there = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", ASK], env=there, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "None\n")
    assert "the driver of the GPU does not answer within 0.5 s" in done.stderr
