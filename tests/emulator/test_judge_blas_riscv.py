"""`judge --blas` of RISC-V libraries under QEMU, at each vector length of the platform."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from tensorop.cli.judge_command import judge as command
from tensorop.provision import baseline, pypi
from tensorop.toolchain import tool
from tests.support.commands import ROOT

SOURCE = ROOT / "tests/support/faulty_blas.c"
OPENBLAS_0_3_33 = pypi.Wheel(
    "scipy-openblas32",
    "0.3.33.0.0",
    "manylinux_2_39_riscv64",
    "419f5422d7c6b99c7df0a7754196761ef3fbe4b02d9380a3446c2906d245931a",
)


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
    head = findings["dsyrk"][0]["program"].splitlines()[:2]
    assert re.search(r", at VLEN (?!256)\d+\.$", head[0])
    assert "&& OPENBLAS_CORETYPE=RISCV64_ZVL256B ./a.out" in head[1]


@pytest.mark.extended
def test_dsyrk_of_openblas_0_3_33_writes_the_other_half(tmp_path: Path) -> None:
    """At VLEN 256, for which its kernels are; all of level 3 is judged."""
    pypi.unpacker([OPENBLAS_0_3_33], ["scipy_openblas32/lib/*.so*"], hint="")(tmp_path)
    names = "dgemm,dsymm,dsyrk,dsyr2k,dtrmm,dtrsm"
    words = ("--platform", "spacemit-k1", "--routines", names, "--budget", "1s")
    status, findings = found(tmp_path / "libscipy_openblas.so", *words)
    assert status == 1
    at_256 = {
        name: [one["fault"] for one in faults if "VLEN=256" in one["smallest"]] for name, faults in findings.items()
    }
    assert at_256["dsyrk"] == ["wrote memory that is not its own"]


def test_the_readme_names_the_library_that_is_fetched() -> None:
    path = baseline.baseline("openblas", "riscv64", 1).path
    assert str(Path(*path.parts[-3:])) in (ROOT / "README.md").read_text(encoding="utf-8")
