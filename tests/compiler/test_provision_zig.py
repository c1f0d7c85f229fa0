"""The cross compiler and the static C library, with a home that is not there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tensorop.model.architecture import ARCHITECTURES, host_arch
from tensorop.provision import cache, libc, zig

# Threads, formatted floats and the maths library: what a harness takes from its C library.
PROGRAM = r"""
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *half(void *p) { *(double *)p /= 2; return 0; }
int main(int argc, char **argv) {
    double x = argc > 1 ? strtod(argv[1], 0) : 0;
    pthread_t t;
    if (pthread_create(&t, 0, half, &x) || pthread_join(t, 0)) return 1;
    printf("%.17g\n", sqrt(x));
    return 0;
}
"""


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOROP_CACHE", str(cache.entry_path()))
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")


@pytest.fixture(params=ARCHITECTURES)
def arch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_static_program_for_each_architecture(arch: str, tmp_path: Path, homeless: None) -> None:
    environment = zig.zig_environment(local=tmp_path / "objects")
    assert "OPENBLAS_CORETYPE" not in environment
    (tmp_path / "p.c").write_text(PROGRAM)
    link = libc.static_link(arch)
    assert link.origin.startswith("musl")
    compile_ = [*zig.zig_cc(), "-target", ARCHITECTURES[arch].static_triple, "-O2", "-c", "p.c", "-o", "p.o"]
    for argv in (compile_, link.argv(("p.o",), "p")):
        done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    if arch == host_arch():
        assert subprocess.run([tmp_path / "p", "0x1p3"], capture_output=True, text=True).stdout == "2\n"


def test_without_debians_musl_zigs_own_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path))
    link = libc.static_link.__wrapped__(host_arch(), offline=True)
    assert link.origin == f"musl of zig {zig.zig_version()}"
    assert "-nostdlib" not in link.before
    assert link.after == ()


def test_the_hosts_compiler_runs() -> None:
    assert subprocess.run([zig.host_cc(), "--version"], capture_output=True).returncode == 0
