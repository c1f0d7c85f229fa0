"""Products for other architectures: the C example through CMake and the toolchain files, run in the emulator."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tensorop
from tensorop.commands import verify
from tensorop.errors import UsageError
from tensorop.package.card import read_card
from tensorop.provision import qemu, sysroot, targets, zig
from tests.support import docs, products

ROOT = Path(__file__).parents[2]
VECTOR = "rv64,v=true,vext_spec=v1.0,vlen={},elen=64"
CPUS = {"rvv": [VECTOR.format(128), VECTOR.format(256), VECTOR.format(1024)], "neon": ["cortex-a72"]}
ARCH = {"rvv": "riscv64", "spacemit-k1": "riscv64", "neon": "aarch64"}


def _cmake(*words: str | Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    done = subprocess.run(
        ["cmake", *map(str, words)], env=zig.zig_environment(), capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _example(prefix: Path, arch: str, build: Path, *before: Path) -> Path:
    """before: prefixes that CMake meets first."""
    _cmake(
        "-S",
        ROOT / "examples/c",
        "-B",
        build,
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake' / f'{arch}.cmake'}",
        f"-DTENSOROP_PYTHON={sys.executable}",
        f"-DCMAKE_PREFIX_PATH={';'.join(map(str, (*before, prefix)))}",
    )
    _cmake("--build", build)
    return build / "example"


def _run(program: Path, arch: str, cpu: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    given = [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
    argv = [qemu.qemu(arch), "-cpu", cpu, "-L", sysroot.sysroot(arch), *given, program, *words]
    return subprocess.run(list(map(str, argv)), env={}, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module", params=["rvv", "neon"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """Platform, prefix, the example linked to its shared library; a prefix of another architecture comes first."""
    platform = request.param
    if ARCH[platform] == targets.host_arch():
        pytest.skip("this machine's own architecture is tested without an emulator")
    folder = tmp_path_factory.mktemp(platform)
    prefix, other = products.install(platform, folder / "prefix"), products.install("generic", folder / "other")
    return platform, prefix, _example(prefix, ARCH[platform], folder / "build", other)


def test_example_runs_on_every_vector_length(built: tuple[str, Path, Path]) -> None:
    platform, _, program = built
    for cpu in CPUS[platform]:
        done = _run(program, ARCH[platform], cpu, "65", "66", "67", TENSOROP_VERBOSE="1", TENSOROP_NUM_THREADS="1")
        assert done.returncode == 0, done.stderr
        assert "variant 0" in done.stderr or "variant 1" in done.stderr


def test_pkg_config_links_it_beside_another_architecture(built: tuple[str, Path, Path], tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    platform, prefix, _ = built
    arch = ARCH[platform]
    path = ":".join(f"{one}/lib/pkgconfig" for one in (prefix.parent / "other", prefix))
    words = ["pkg-config", "--cflags", "--libs", "--static", f"tensorop_gemm-{arch}"]
    flags = subprocess.check_output(words, env={**os.environ, "PKG_CONFIG_PATH": path}, text=True).split()
    program = tmp_path / "example"
    command = [
        *zig.zig_cc(),
        "-target",
        f"{arch}-linux-gnu.2.31",
        ROOT / "examples/c/main.c",
        *flags,
        "-lm",
        "-o",
        program,
    ]
    done = subprocess.run(list(map(str, command)), env=zig.zig_environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = _run(program, arch, CPUS[platform][0], "5", "6", "7", LD_LIBRARY_PATH=f"{prefix}/lib")
    assert done.returncode == 0, done.stderr


def test_threads_compute_the_same(built: tuple[str, Path, Path]) -> None:
    platform, _, program = built
    said = []
    for threads in ("1", "3"):
        done = _run(
            program,
            ARCH[platform],
            CPUS[platform][0],
            "150",
            "300",
            "300",
            TENSOROP_NUM_THREADS=threads,
            TENSOROP_VERBOSE="1",
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stderr)
    assert "on up to 1 threads" in said[0]
    assert "on up to 1 threads" not in said[1]


def test_every_thread_computes_as_its_caller_does(built: tuple[str, Path, Path], tmp_path: Path) -> None:
    platform, prefix, _ = built
    arch, program, lib = ARCH[platform], tmp_path / "arithmetic", prefix / "lib"
    words = ["-target", f"{arch}-linux-gnu.2.31", "-O1", "-frounding-math", f"-I{prefix}/include", f"-L{lib}"]
    words += ["-ltensorop_gemm", f"-Wl,-rpath,{lib}", "-lm", ROOT / "tests/support/arithmetic.c", "-o", program]
    subprocess.run([zig.zig(), "cc", *words], env=zig.zig_environment(), check=True, timeout=300)
    done = _run(program, arch, CPUS[platform][0], "163", "2", "1", "2")
    assert (done.returncode, done.stdout) == (0, "")


def test_python_refuses_it_and_its_card_is_read(built: tuple[str, Path, Path]) -> None:
    platform, prefix, _ = built
    with pytest.raises(UsageError, match=f"is for {ARCH[platform]}"):
        tensorop.load(prefix)
    assert read_card(prefix / "lib/libtensorop_gemm.so")["platform"]["name"] == platform


def test_each_vector_length_is_served_by_its_tree(tmp_path: Path) -> None:
    if targets.host_arch() == "riscv64":
        pytest.skip("needs an emulated core")
    (fixed,) = products.winners(("f64",))
    prefix = products.install("rvv", tmp_path / "prefix", found=[products.by_vlen(fixed)])
    program = _example(prefix, "riscv64", tmp_path / "build")
    chosen = {}
    for vlen in (128, 256, 512, 1024):
        for side in ("16", "120"):  # either side of the tree's first threshold
            done = _run(program, "riscv64", VECTOR.format(vlen), side, side, side, TENSOROP_VERBOSE="1")
            assert done.returncode == 0, done.stderr
            chosen[vlen, side] = re.findall(r"by variant (-?\d):.*?(for VLEN \d+)?\n", done.stderr)
    assert {vlen: (*chosen[vlen, "16"], *chosen[vlen, "120"]) for vlen, _ in chosen} == {
        128: (("0", ""), ("0", "")),
        256: (("1", ""), ("0", "for VLEN 256")),
        512: (("1", "for VLEN 512"), ("1", "for VLEN 512")),
        1024: (("1", ""), ("1", "")),  # the tree of 512 over the variants for any length
    }
    verdicts = list(verify.verify(prefix, threads=(2,)))
    assert {verdict.vlen for verdict in verdicts} == {128, 256, 512, 1024}
    assert all(verdict.ok for verdict in verdicts)


def test_a_core_without_vectors_is_served_by_plain_c(tmp_path: Path) -> None:
    if targets.host_arch() == "riscv64":
        pytest.skip("needs an emulated core")
    program = _example(products.install("rvv", tmp_path / "prefix"), "riscv64", tmp_path / "build")
    done = _run(program, "riscv64", "rv64,v=false", TENSOROP_VERBOSE="1")
    assert done.returncode == 0, done.stderr
    assert "this CPU lacks v" in done.stderr
    assert "plain C" in done.stderr


def test_a_core_with_shorter_vectors_than_the_kernels_need(tmp_path: Path) -> None:
    if targets.host_arch() == "riscv64":
        pytest.skip("needs an emulated core")
    program = _example(products.install("spacemit-k1", tmp_path / "prefix"), "riscv64", tmp_path / "build")
    long, short = (_run(program, "riscv64", VECTOR.format(v), TENSOROP_VERBOSE="1") for v in (256, 128))
    assert (long.returncode, short.returncode) == (0, 0), long.stderr + short.stderr
    assert "plain C" not in long.stderr
    assert "vectors of 256 bits (it has 128)" in short.stderr


def test_the_lines_of_the_docs_build_and_run(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    if targets.host_arch() == "riscv64":
        pytest.skip("nothing to emulate")
    prefix = products.install("rvv", tmp_path / "prefix", ("f32",))
    done = docs.run(docs.blocks("docs/library.md")[2], prefix, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "100% tests passed, 0 tests failed out of 2" in done.stdout
    command, cache = done.stdout.splitlines()[0], (tmp_path / "build/riscv64/CMakeCache.txt").read_text()
    assert f"CMAKE_CROSSCOMPILING_EMULATOR:STRING={command}\n" in cache


@pytest.mark.parametrize("platform", ["rvv", "neon"])
def test_sources_cross_build_alone(platform: str, tmp_path: Path) -> None:
    arch = ARCH[platform]
    if arch == targets.host_arch():
        pytest.skip("tested without an emulator")
    prefix = products.install(platform, tmp_path / "prefix", ("f64",))
    _cmake(
        "-S",
        prefix / "share/tensorop/src",
        "-B",
        tmp_path / "build",
        f"-DTENSOROP_PYTHON={sys.executable}",
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake' / f'{arch}.cmake'}",
    )
    _cmake("--build", tmp_path / "build", "-j2")
    _cmake("--install", tmp_path / "build", "--prefix", tmp_path / "again")
    program = _example(tmp_path / "again", arch, tmp_path / "example")
    done = _run(program, arch, CPUS[platform][0], TENSOROP_VERBOSE="1")
    assert done.returncode == 0, done.stderr
    assert "plain C" not in done.stderr
