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
from tensorop.model.architecture import host_arch
from tensorop.model.verdict import Seed
from tensorop.package.card import read_card
from tensorop.provision import qemu, zig
from tensorop.specs import platforms
from tests.support import docs, products
from tests.support.classes import extended

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


def _compile(source: str, arch: str, out: Path, *words: str) -> Path:
    """A program or library of one C file."""
    argv = [zig.zig(), "cc", "-target", f"{arch}-linux-gnu.2.31", "-O1", ROOT / source, *words]
    subprocess.run([*argv, "-o", out], env=zig.zig_environment(), check=True, timeout=300)
    return out


def _linked(prefix: Path) -> list[str]:
    lib = prefix / "lib"
    return [f"-I{prefix}/include", f"-L{lib}", "-ltensorop_gemm", f"-Wl,-rpath,{lib}", "-lm"]


def _run(program: Path, arch: str, cpu: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    given = [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
    argv = [qemu.qemu(arch), "-cpu", cpu, "-L", qemu.sysroot(arch), *given, program, *words]
    return subprocess.run(list(map(str, argv)), env={}, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module", params=["rvv", extended("neon")])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """Platform, prefix, the example linked to its shared library; a prefix of another architecture comes first."""
    platform = request.param
    if ARCH[platform] == host_arch():
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


@pytest.mark.extended
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
    arch, program = ARCH[platform], tmp_path / "arithmetic"
    _compile("tests/support/arithmetic.c", arch, program, "-frounding-math", *_linked(prefix))
    done = _run(program, arch, CPUS[platform][0], "163", "2", "1", "2")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("platform", [extended("rvv"), "neon"])
@pytest.mark.extended
def test_calls_fit_into_the_least_stack_of_a_thread(platform: str, tmp_path: Path) -> None:
    arch = ARCH[platform]
    if arch == host_arch():
        pytest.skip("this machine's own architecture is tested without an emulator")
    out = products.install(platform, tmp_path / "out", found=products.of_all_templates(("f64",)))
    words = (
        "-target",
        platforms.load(platform).compiler.shared_target,
        "-O1",
        products.STACK,
        f"-I{out}/include",
        f"-L{out}/lib",
    )
    command = [zig.zig(), "cc", *words, "-ltensorop_cblas", "-ltensorop_gemm", "-lpthread", "-o", tmp_path / "stack"]
    built = subprocess.run([*map(str, command)], env=zig.zig_environment(), capture_output=True, text=True, timeout=120)
    assert built.returncode == 0, built.stderr
    for cpu in {CPUS[platform][0], CPUS[platform][-1]}:
        done = _run(tmp_path / "stack", arch, cpu, LD_LIBRARY_PATH=f"{out}/lib", TENSOROP_NUM_THREADS="3")
        assert done.returncode == 0, (cpu, done.stdout, done.stderr[-300:])
        assert int(done.stdout.split()[0]) <= products.MOST_STACK, (cpu, done.stdout)


def test_python_refuses_it_and_its_card_is_read(built: tuple[str, Path, Path]) -> None:
    platform, prefix, _ = built
    with pytest.raises(UsageError, match=f"is for {ARCH[platform]}"):
        tensorop.load(prefix)
    assert read_card(prefix / "lib/libtensorop_gemm.so")["platform"]["name"] == platform


@pytest.mark.extended
def test_each_vector_length_is_served_by_its_tree(tmp_path: Path) -> None:
    if host_arch() == "riscv64":
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
    verdicts = list(verify.verify(*products.reached(prefix), Seed.draw(), threads=(2,)))
    assert {verdict.vlen for verdict in verdicts} == {128, 256, 512, 1024}
    assert all(verdict.ok for verdict in verdicts)


def test_a_core_without_vectors_is_served_by_plain_c(tmp_path: Path) -> None:
    if host_arch() == "riscv64":
        pytest.skip("needs an emulated core")
    program = _example(products.install("rvv", tmp_path / "prefix"), "riscv64", tmp_path / "build")
    done = _run(program, "riscv64", "rv64,v=false", TENSOROP_VERBOSE="1")
    assert done.returncode == 0, done.stderr
    assert "this CPU lacks v" in done.stderr
    assert "plain C" in done.stderr


LETTER = str(1 << 21)


@pytest.mark.parametrize("built", ["rvv"], indirect=True)
def test_hwprobe_is_believed_before_the_letter(built: tuple[str, Path, Path], tmp_path: Path) -> None:
    """TOLD_*: what the library's own calls are answered (tests/support/told.c)."""
    _, _, program = built
    told = str(_compile("tests/support/told.c", "riscv64", tmp_path / "told.so", "-shared", "-fPIC"))

    def lacks_v(cpu: str, letter: str, **answers: str) -> bool:
        words = {"LD_PRELOAD": told, "TOLD_HWCAP": letter, "TENSOROP_VERBOSE": "1", **answers}
        done = _run(program, "riscv64", cpu, "33", "34", "35", **words)
        assert done.returncode == 0, done.stderr
        assert ("plain C serves, since this CPU lacks v" in done.stderr) != ("by variant 1" in done.stderr)
        return "plain C" in done.stderr

    vectors, none = VECTOR.format(128), "rv64,v=false"
    assert not lacks_v(vectors, LETTER, TOLD_HWPROBE="none")  # an emulator or a kernel before 6.4, with V 1.0
    assert lacks_v(vectors, "0", TOLD_HWPROBE="none")
    for cpu in (vectors, none):
        assert lacks_v(cpu, LETTER, TOLD_HWPROBE="0x3b")  # a draft's letter
        assert lacks_v(cpu, "0", TOLD_HWPROBE="0x3f", TOLD_VECTORS="1")  # refused to this process
    assert not lacks_v(vectors, LETTER, TOLD_HWPROBE="0x3f")
    assert not lacks_v(vectors, "0", TOLD_HWPROBE="0x3f", TOLD_VECTORS="2")  # allowed to it later


@pytest.mark.extended
def test_arm_cores_have_what_the_kernel_reports(tmp_path: Path) -> None:
    if host_arch() == "aarch64":
        pytest.skip("needs an emulated core")
    linked = _linked(products.install("neoverse-n1", tmp_path / "prefix", ("f64",)))
    program = _compile("examples/c/main.c", "aarch64", tmp_path / "example", *linked)
    told = str(_compile("tests/support/told.c", "aarch64", tmp_path / "told.so", "-shared", "-fPIC"))

    def said(cpu: str, **words: str) -> str:
        done = _run(program, "aarch64", cpu, TENSOROP_VERBOSE="1", **words)
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "plain C" not in said("neoverse-n1")
    assert "lacks atomics asimdhp asimdrdm asimddp\n" in said("cortex-a53")
    every = 1 << 8 | 1 << 10 | 1 << 12 | 1 << 20
    assert "plain C" not in said("neoverse-n1", LD_PRELOAD=told, TOLD_HWCAP=str(every))
    assert "lacks asimddp\n" in said("neoverse-n1", LD_PRELOAD=told, TOLD_HWCAP=str(every ^ 1 << 20))


def test_x86_cores_have_what_they_and_the_system_report(tmp_path: Path) -> None:
    emulator = shutil.which("qemu-x86_64")
    if emulator is None or host_arch() != "x86_64" or shutil.which("cc") is None:
        pytest.skip("needs cc, an x86-64 C library and qemu-x86_64")
    avx2 = {"Haswell": "by variant 1", "Nehalem": "lacks fma", "Haswell,-fma": "lacks fma\n"}
    avx2["Haswell,-xsave"] = "lacks fma avx f16c avx2\n"  # an operating system that saves no YMM
    avx512 = {"Haswell": "lacks avx512f avx512dq avx512cd avx512bw avx512vl\n"}
    for platform, cpus in (("avx2", avx2), ("avx512", avx512)):
        linked = _linked(products.install(platform, tmp_path / platform, ("f64",)))
        program = tmp_path / f"on-{platform}"
        subprocess.run(["cc", ROOT / "examples/c/main.c", *linked, "-o", program], check=True, timeout=120)
        for cpu, said in cpus.items():
            given = ["-cpu", cpu, "-E", "TENSOROP_VERBOSE=1", program, "33", "34", "35"]
            done = subprocess.run([emulator, *given], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
            assert said in done.stderr


def test_a_core_with_less_than_the_kernels_need(tmp_path: Path) -> None:
    """Shorter vectors, or another extension than V that hwprobe does not name."""
    if host_arch() == "riscv64":
        pytest.skip("needs an emulated core")
    program = _example(products.install("spacemit-k1", tmp_path / "prefix"), "riscv64", tmp_path / "build")
    long, short = (_run(program, "riscv64", VECTOR.format(v), TENSOROP_VERBOSE="1") for v in (256, 128))
    assert (long.returncode, short.returncode) == (0, 0), long.stderr + short.stderr
    assert "plain C" not in long.stderr
    assert "vectors of 256 bits (it has 128)" in short.stderr
    told = str(_compile("tests/support/told.c", "riscv64", tmp_path / "told.so", "-shared", "-fPIC"))
    for probed, said in (("0x1f", "by variant 0"), ("0x17", "lacks zba\n"), ("0xf", "lacks zbb\n")):
        words = {"LD_PRELOAD": told, "TOLD_HWCAP": LETTER, "TOLD_HWPROBE": probed, "TENSOROP_VERBOSE": "1"}
        done = _run(program, "riscv64", VECTOR.format(256), **words)
        assert done.returncode == 0, done.stderr
        assert said in done.stderr


def test_the_lines_of_the_docs_build_and_run(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    if host_arch() == "riscv64":
        pytest.skip("nothing to emulate")
    prefix = products.install("rvv", tmp_path / "prefix", ("f32",))
    done = docs.run(docs.blocks("docs/how-to/use-the-library.md")[3], prefix, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "100% tests passed, 0 tests failed out of 2" in done.stdout
    command, cache = done.stdout.splitlines()[0], (tmp_path / "build/riscv64/CMakeCache.txt").read_text()
    assert f"CMAKE_CROSSCOMPILING_EMULATOR:STRING={command}\n" in cache
    plain = docs.run(docs.blocks("docs/how-to/use-the-library.md")[4], prefix, tmp_path)
    assert plain.returncode == 0, plain.stdout + plain.stderr
    assert "max error" in plain.stdout


@pytest.mark.extended
@pytest.mark.parametrize("platform", ["rvv", "neon"])
def test_sources_cross_build_alone(platform: str, tmp_path: Path) -> None:
    arch = ARCH[platform]
    if arch == host_arch():
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
