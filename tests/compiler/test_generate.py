"""tensorop_generate(): kernels tuned as part of a user's own CMake build."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tensorop.model.architecture import host_arch

ROOT = Path(__file__).parents[2]

LISTS = """
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES C)
include({root}/cmake/TensorOpGenerate.cmake)
tensorop_generate(kernels OPERATOR gemm PLATFORM generic TRIALS 2 SEED 1 DTYPES f64 SHAPES 16x16x16 32x32x32)
add_executable(user {root}/examples/c/main.c)
target_link_libraries(user PRIVATE kernels m)
"""


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
@pytest.mark.skipif(host_arch() != "x86_64", reason="the generic platform is x86-64")
def test_a_build_tunes_its_kernels_once(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(LISTS.format(root=ROOT))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}

    def cmake(*words: str | Path) -> str:
        done = subprocess.run(
            ["cmake", *map(str, words)], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=400
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    cmake("-S", ".", "-B", "build", f"-DTENSOROP_COMMAND={sys.executable};-m;tensorop")
    assert "Tuning gemm for generic" in cmake("--build", "build")
    assert "Tuning" not in cmake("--build", "build")
    done = subprocess.run([tmp_path / "build/user"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "max error" in done.stdout
