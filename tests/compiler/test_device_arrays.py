"""gemm of a product for a device from Python, on arrays that only tell of themselves by a protocol."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorop
from tensorop.backends.cuda_parts import product
from tensorop.package import publish
from tensorop.specs import platforms
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


def test_a_product_that_was_never_run_says_so(root: Path) -> None:
    with pytest.warns(UserWarning, match="is not verified"):
        library = tensorop.load(root / "lib" / "libtensorop_gemm_cuda.so")
    assert library.dtypes == ("bf16", "f16")
    with pytest.raises(TypeError, match=r"a is in the host's memory: move it to the GPU first.*\(status 1\)"):
        library.gemm(np.zeros((2, 2), np.float16), None)
