"""`judge --blas` of RISC-V libraries under QEMU, at each vector length of the platform."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from tensorop.cli.judge_command import judge as command
from tensorop.provision import baseline
from tensorop.toolchain import tool
from tests.support.commands import ROOT

SOURCE = ROOT / "tests/support/faulty_blas.c"


def found(path: Path, *words: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    """Exit status and findings by function."""
    ran = CliRunner().invoke(command, ["--blas", str(path), *words, "--threads", "1", "--format", "json"])
    return ran.exit_code, {one["function"]: one["findings"] for one in json.loads(ran.stdout)["functions"]}


def test_a_fault_is_found_in_the_emulator(tmp_path: Path) -> None:
    path = tmp_path / "libfaulty.so"
    words = ("-target", "riscv64-linux-gnu.2.31", "-O1", "-shared", "-fPIC", "-DFAULT=DOT_LAST_ELEMENT")
    subprocess.run(tool.cc(*words, str(SOURCE), "-o", str(path)), check=True, cwd=tmp_path)
    status, findings = found(path, "--platform", "spacemit-k1", "--routines", "ddot,dscal", "--budget", "5s")
    assert status == 1
    assert [one["fault"] for one in findings["ddot"]] == ["wrong result"]
    assert "VLEN=" in findings["ddot"][0]["smallest"]  # it is there at each
    assert not findings["dscal"]


@pytest.mark.extended
def test_the_kernels_of_another_vector_length_are_found_wrong() -> None:
    """OpenBLAS 0.3.34 has kernels for VLEN 256 that are wrong at other ones."""
    library = baseline.baseline("openblas", "riscv64", 1).bring().path
    words = ("--platform", "rvv", "--routines", "dsyrk,dscal", "--budget", "20s")
    status, findings = found(library, *words, "--variable", "OPENBLAS_CORETYPE=RISCV64_ZVL256B")
    assert status == 1
    assert findings["dsyrk"]
    assert not findings["dscal"]
