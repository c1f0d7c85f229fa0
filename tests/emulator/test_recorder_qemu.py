"""The recorder for another architecture: `record --library` makes it, and it counts a program's calls there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tensorop.provision import qemu, zig
from tests.compiler.test_recorder import BLAS, PROGRAM, kinds
from tests.support.commands import tensorop

pytestmark = pytest.mark.extended


@pytest.mark.parametrize(("platform", "arch", "cpu"), [("rvv", "riscv64", "rv64"), ("neon", "aarch64", "max")])
def test_a_program_of_another_architecture_is_recorded(platform: str, arch: str, cpu: str, tmp_path: Path) -> None:
    made = tensorop("record", "--platform", platform, "--library", "lib/libtensorop_record.so", cwd=tmp_path)
    assert made.status == 0, made.stderr
    cc = [*map(str, zig.zig_cc()), "-target", f"{arch}-linux-gnu.2.31", "-w", "-O1"]
    for name, text, words in (
        ("libblas.so", BLAS, ["-shared", "-fPIC"]),
        ("program", PROGRAM, ["libblas.so", f"-Wl,-rpath,{tmp_path}", "-lpthread"]),
    ):
        (tmp_path / f"{name}.c").write_text(text)
        argv = [*cc, f"{name}.c", *words, "-o", name]
        subprocess.run(argv, cwd=tmp_path, env=zig.zig_environment(), check=True, timeout=120)
    argv = [str(qemu.qemu(arch)), "-cpu", cpu, "-L", str(qemu.sysroot(arch))]
    for variable in (f"LD_PRELOAD={tmp_path}/lib/libtensorop_record.so", "TENSOROP_RECORD=calls.txt"):
        argv += ["-E", variable]
    ended = subprocess.run([*argv, "./program"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (7, "")
    found = kinds(tmp_path / "calls.txt")
    assert found["dgemm layout=col transa=N transb=T m=4 n=4 k=4"] == 6 * 500
    assert found["ddot n=1 incx=1 incy=-1"] == 1
