"""The emulator in the cache, the sysroots, and the baselines loaded and run on them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tensorop.model.architecture import ARCHITECTURES, host_arch
from tensorop.provision import baseline, check, libc, prewarm, qemu, zig
from tensorop.provision.baseline import PeerLibrary

FOREIGN = [a for a in ARCHITECTURES if a != host_arch() and a != "x86_64"]
CPU = {"riscv64": "rv64,v=true,vext_spec=v1.0,vlen=256,elen=64", "aarch64": "cortex-a53"}

ENVIRONMENT = r"""
#include <stdio.h>
extern char **environ;
int main(void) { for (char **e = environ; *e; e++) puts(*e); return 0; }
"""

# Loads the library named, prints its core, multiplies ones(4,4) by 0..15.
PRODUCT = r"""
#include <dlfcn.h>
#include <stdio.h>
typedef void (*gemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
int main(int argc, char **argv) {
    void *lib = dlopen(argv[1], RTLD_NOW);
    if (!lib) { puts(dlerror()); return 1; }
    gemm sgemm = (gemm)dlsym(lib, argv[2]);
    char *(*core)(void) = (char *(*)(void))dlsym(lib, argv[3]);
    float a[16], b[16], c[16];
    for (int i = 0; i < 16; i++) { a[i] = 1; b[i] = i; c[i] = -1; }
    sgemm(101, 111, 111, 4, 4, 4, 1, a, 4, b, 4, 0, c, 4);
    printf("%s %g %g\n", core(), c[0], c[15]);
    return 0;
}
"""


def _compile(text: str, folder: Path, flags: list[str], link: tuple[str, ...] | None, arch: str) -> Path:
    (folder / "p.c").write_text(text)
    first = [*zig.zig_cc(), *flags, "-O2", "p.c", "-o", "p"]
    if link is not None:
        first = [*zig.zig_cc(), "-target", ARCHITECTURES[arch].static_triple, "-O2", "-c", "p.c", "-o", "p.o"]
    for argv in (first, link):
        if argv:
            done = subprocess.run(argv, cwd=folder, env=zig.zig_environment(), capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    return folder / "p"


@pytest.mark.parametrize("arch", FOREIGN)
def test_the_unpacked_emulator_keeps_the_guests_environment(arch: str, tmp_path: Path) -> None:
    """Its libraries must not show in the guest: the size of the environment moves modelled cycles."""
    emulator = qemu.unpacked(arch)
    assert qemu.qemu_version(emulator).startswith("7.2")
    program = _compile(ENVIRONMENT, tmp_path, [], libc.static_link(arch).argv(("p.o",), "p"), arch)
    for given in ({}, {"PWD_": "x", "A": "1"}):
        done = subprocess.run([emulator, program], env=given, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(done.stdout.split()) == sorted(f"{k}={v}" for k, v in given.items())


def _run_product(library: PeerLibrary, folder: Path, coretype: str) -> list[str]:
    arch = library.arch
    program = _compile(PRODUCT, folder, ["-target", f"{arch}-linux-gnu.2.38"], None, arch)
    argv = [
        str(qemu.qemu(arch)), "-cpu", CPU[arch], "-L", str(qemu.sysroot(arch)),
        "-E", "LD_LIBRARY_PATH=" + ":".join(map(str, library.library_path)), "-E", f"OPENBLAS_CORETYPE={coretype}",
        "-E", "OPENBLAS_NUM_THREADS=1", str(program), str(library.path), f"{library.prefix}cblas_sgemm{library.suffix}",
        f"{library.prefix}openblas_get_corename{library.suffix}",
    ]  # fmt: skip
    done = subprocess.run(argv, env={}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("arch", "name", "coretype"),
    [("riscv64", "openblas", "RISCV64_ZVL256B"), ("riscv64", "openblas@0.3.29", "RISCV64_ZVL256B"),
     ("aarch64", "openblas", "CORTEXA53"), ("aarch64", "openblas@0.3.29", "CORTEXA53")],
)  # fmt: skip
def test_openblas_runs_on_the_emulated_target(arch: str, name: str, coretype: str, tmp_path: Path) -> None:
    if arch == host_arch():
        pytest.skip(f"{arch} is this machine: nothing to emulate")
    core, first, last = _run_product(baseline.baseline(name, arch).bring(), tmp_path, coretype)
    assert core.replace("_", "").lower() in coretype.replace("_", "").lower()
    assert (float(first), float(last)) == (24.0, 36.0)


@pytest.mark.parametrize("arch", FOREIGN)
def test_prewarm_brings_all_that_a_job_needs(arch: str) -> None:
    shared = f"{arch}-linux-gnu.2.31"
    assert set(prewarm.jobs(arch, shared=shared)) == {"libc", "openblas", "qemu", "sysroot", "product", "objdump"}
    prewarm.bring(arch, shared=shared)
    assert [p for p in check.pieces([arch]) if p.status != "ok" and not p.optional] == []
