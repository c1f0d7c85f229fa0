"""The gemm library of fixed winners, used as its users do: Python, C through CMake and pkg-config, threads, fork."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tensorop
from tensorop.build import library as building
from tensorop.errors import UsageError
from tensorop.package.card import read_card
from tensorop.provision import targets
from tests.support import products

pytestmark = pytest.mark.skipif(targets.host_arch() != "x86_64", reason="loads products for x86-64")

EXAMPLE = Path(__file__).parents[2] / "examples" / "c"


def _runs(platform: str) -> bool:
    flags = Path("/proc/cpuinfo").read_text().split()
    return {"avx512": "avx512vl", "avx2": "avx2", "generic": "fpu"}[platform] in flags


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return products.install("avx2", tmp_path_factory.mktemp("product") / "avx2")


def _tolerance(k: int, dtype: type) -> float:
    return 8 * (k + 8) * float(np.finfo(dtype).eps)


@pytest.mark.parametrize("platform", ["generic", "avx2", "avx512"])
def test_products_compute_right(platform: str, tmp_path: Path) -> None:
    if not _runs(platform):
        pytest.skip(f"this CPU cannot run {platform}")
    library = tensorop.load(products.install(platform, tmp_path / "out"))
    assert library.dtypes == ("f32", "f64")
    rng = np.random.default_rng(1)
    for number in range(120):
        m, n, k = (int(x) for x in rng.integers(1, (9, 40, 150)[number % 3], 3))
        dtype = (np.float32, np.float64)[number % 2]
        flip_a, flip_b = bool(number & 4), bool(number & 8)
        a = rng.uniform(-1, 1, (k, m) if flip_a else (m, k)).astype(dtype)
        b = rng.uniform(-1, 1, (n, k) if flip_b else (k, n)).astype(dtype, order="F" if number & 16 else "C")
        c = rng.uniform(-1, 1, (m, n)).astype(dtype, order="F" if number & 32 else "C")
        exact = 1.5 * (a.T if flip_a else a).astype(float) @ (b.T if flip_b else b).astype(float) - 0.5 * c
        library.gemm(a, b, c, alpha=1.5, beta=-0.5, transpose_a=flip_a, transpose_b=flip_b)
        assert np.abs(c - exact).max() <= _tolerance(k, dtype)


def test_dtypes_whose_operands_are_widened(tmp_path: Path) -> None:
    library = tensorop.load(products.install("generic", tmp_path / "out", ("i8", "bf16", "f16")))
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((17, 90), (90, 21)))
    exact = a.astype(np.int64) @ b.astype(np.int64)
    c = library.gemm(a, b)
    assert c.dtype == np.int32
    assert (c == exact).all()
    library.gemm(a.T, b.T, c, alpha=1 << 20, beta=-3, transpose_a=True, transpose_b=True)  # modulo 2^32
    assert (c == ((exact << 20) - 3 * exact).astype(np.int32)).all()
    x, y = rng.standard_normal((17, 90)).astype(np.float16), rng.standard_normal((90, 21)).astype(np.float16)
    assert np.abs(library.gemm(x, y) - x.astype(float) @ y.astype(float)).max() < 1e-4
    bits = [(v.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for v in (x, y)]
    wide = [(v.astype(np.uint32) << 16).view(np.float32).astype(float) for v in bits]
    assert np.abs(library.gemm(*bits) - wide[0] @ wide[1]).max() < 1e-4
    with pytest.raises(TypeError, match="it must be int32"):
        library.gemm(a, b, np.empty((17, 21), np.int8))
    names = building.facts(tmp_path / "out/lib/libtensorop_cblas.so").exports
    assert not [name for name in names if "gemm" in name]


def test_strided_and_misshapen_operands(prefix: Path) -> None:
    library = tensorop.load(prefix)
    rng = np.random.default_rng(2)
    big = rng.uniform(-1, 1, (60, 80))
    a, b = big[3:20, 5:30], big[::2, ::3][:25, :9]
    out = np.full((34, 40), 7.0)
    c = out[::2, 3:12]
    assert library.gemm(a, b, c) is c
    np.testing.assert_allclose(c, a @ b, atol=1e-12)
    assert np.count_nonzero(out != 7.0) == c.size
    np.testing.assert_allclose(library.gemm(a[:0], b), np.empty((0, 9)))
    assert not library.gemm(np.empty((3, 0)), np.empty((0, 4))).any()
    for wrong in (
        lambda: library.gemm(a, b.T),
        lambda: library.gemm(a[0], b),
        lambda: library.gemm(a, b, beta=1.0),
        lambda: library.gemm(a, b, np.empty((3, 3))),
        lambda: library.gemm(big[:9, :9], big[:9, :9], big[:9, :9]),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            wrong()
    with pytest.raises(TypeError, match="holds float32, float64"):
        library.gemm(a.astype(np.int32), b)
    with pytest.raises(TypeError, match="one dtype"):
        library.gemm(a.astype(np.float32), b)


def test_only_public_names_are_visible(prefix: Path) -> None:
    both = {"tensorop_set_num_threads", "tensorop_get_num_threads", "tensorop_card"}
    ours = {"tensorop_sgemm", "tensorop_dgemm", "tensorop_gemm_f32_variant", "tensorop_gemm_f64_variant", *both}
    blas = {"cblas_sgemm", "cblas_dgemm", "sgemm_", "dgemm_", "xerbla_", "cblas_xerbla"}
    gemm, cblas = (building.facts(prefix / f"lib/libtensorop_{name}.so") for name in ("gemm", "cblas"))
    assert (gemm.exports, gemm.soname) == (ours, "libtensorop_gemm.so.0")
    assert (cblas.exports, cblas.soname) == (blas, "libtensorop_cblas.so.0")
    assert "libtensorop_gemm.so.0" in cblas.needed
    floor = json.loads((prefix / "share/tensorop/manifest.json").read_text())["glibc"]
    for facts in (gemm, cblas):
        assert [int(x) for x in facts.glibc.split(".")] <= [int(x) for x in floor.split(".")]


def test_a_library_of_one_dtype_has_no_names_of_the_other(tmp_path: Path) -> None:
    out = products.install("generic", tmp_path / "out", ("f32",))
    names = (
        building.facts(out / "lib/libtensorop_gemm.so").exports
        | building.facts(out / "lib/libtensorop_cblas.so").exports
    )
    assert "cblas_sgemm" in names
    assert not [name for name in names if "dgemm" in name or "f64" in name]
    assert "dgemm" not in (out / "include/tensorop/gemm.h").read_text()
    with pytest.raises(TypeError, match="holds float32"):
        tensorop.load(out).gemm(np.ones((2, 2)), np.ones((2, 2)))


def test_card_and_manifest_agree(prefix: Path) -> None:
    manifest = json.loads((prefix / "share/tensorop/manifest.json").read_text())
    files = manifest.pop("files")
    for name in ("lib/libtensorop_gemm.so", "lib/libtensorop_gemm.a"):
        assert read_card(prefix / name) == manifest
    assert tensorop.load(prefix).card == manifest
    assert manifest["facts"] == products.FACTS
    assert [v["point"]["nr"] for v in manifest["dtypes"]["f64"]["variants"]] == [4, 6]
    assert "lib/libtensorop_gemm.so.0.1.0" in files
    assert str(prefix.parent) not in json.dumps(manifest)


def test_same_winners_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = products.product("avx2")
    monkeypatch.setattr("tensorop.paths.cache_dir", _elsewhere(tmp_path / "another" / "cache"))
    other = products.product("avx2")
    assert one.files.keys() == other.files.keys()
    assert [name for name in one.files if one.files[name] != other.files[name]] == []


def _elsewhere(cache: Path):  # type: ignore[no-untyped-def]
    """A fresh build cache; zig's own, which takes a minute to fill, stays."""
    from tensorop.paths import cache_dir as usual

    def cache_dir(*parts: str) -> Path:
        if parts[:1] != ("build",):
            return usual(*parts)
        folder = cache.joinpath(*parts)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    return cache_dir


def test_threads_give_the_right_result_and_the_same_each_time(prefix: Path) -> None:
    library = tensorop.load(prefix)
    rng = np.random.default_rng(3)
    a, b = rng.uniform(-1, 1, (331, 257)), rng.uniform(-1, 1, (257, 349))
    wide = rng.uniform(-1, 1, (7, 2000)), rng.uniform(-1, 1, (2000, 3001))
    before = library.threads
    try:
        for threads in (1, 2, 3, 4, 7):
            library.threads = threads
            assert library.threads == threads
            for x, y in ((a, b), wide):
                first = library.gemm(x, y)
                assert np.abs(first - x @ y).max() <= _tolerance(x.shape[1], np.float64)
                assert np.array_equal(first, library.gemm(x, y))
    finally:
        library.threads = before


def test_concurrent_callers_do_not_disturb_each_other(prefix: Path) -> None:
    library = tensorop.load(prefix)
    library.threads = 3
    rng = np.random.default_rng(4)
    jobs = [(rng.uniform(-1, 1, (200 + 9 * i, 150)), rng.uniform(-1, 1, (150, 220))) for i in range(4)]
    alone = [library.gemm(a, b) for a, b in jobs]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(10):
            if not np.array_equal(library.gemm(*jobs[i]), alone[i]):
                wrong.append(i)

    callers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    library.threads = 0
    assert wrong == []


FORK = """
import os, sys
import numpy as np
import tensorop

library = tensorop.load(sys.argv[1])
library.threads = 4
a = np.arange(300.0 * 300).reshape(300, 300) % 7
exact = a @ a
assert np.array_equal(library.gemm(a, a), exact)
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        right = all(np.array_equal(library.gemm(a, a), exact) for _ in range(3))
        os._exit(0 if right else 1)
    children.append(child)
assert np.array_equal(library.gemm(a, a), exact)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
"""


def _python(script: str, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    return subprocess.run(
        [sys.executable, "-c", script, *args], env=environment, capture_output=True, text=True, timeout=120
    )


def test_children_of_a_process_with_threads_compute(prefix: Path) -> None:
    done = _python(FORK, str(prefix))
    assert done.returncode == 0, done.stderr


def test_memory_that_cannot_be_had_costs_time_only(prefix: Path) -> None:
    script = """
import resource, sys
import numpy as np
import tensorop
library = tensorop.load(sys.argv[1])
a = np.arange(90.0 * 90).reshape(90, 90) % 7
exact, c = a @ a, np.empty((90, 90))
library.threads = 1
library.gemm(a[:2, :2], a[:2, :2])  # all of Python's own memory
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used, used))
hog = []
try:
    while True:
        hog.append(bytearray(4096))
except MemoryError:
    pass
library.gemm(a, a, c)
del hog
assert np.array_equal(c, exact)
"""
    done = _python(script, str(prefix), OPENBLAS_NUM_THREADS="1", TENSOROP_VARIANT="0")
    assert done.returncode == 0, done.stderr


def test_the_environment_is_heard(prefix: Path) -> None:
    script = """
import sys, numpy as np, tensorop
library = tensorop.load(sys.argv[1])
print(library.threads)
library.gemm(np.eye(9), np.eye(9))
"""
    done = _python(script, str(prefix), TENSOROP_NUM_THREADS="3", TENSOROP_VARIANT="0", TENSOROP_VERBOSE="1")
    assert done.stdout == "3\n"
    assert "dgemm 9x9x9" in done.stderr
    assert "variant 0" in done.stderr
    done = _python(script, str(prefix), TENSOROP_NUM_THREADS="many")
    assert "TENSOROP_NUM_THREADS=many is ignored" in done.stderr


def test_a_product_for_another_machine_is_refused_by_name(prefix: Path, tmp_path: Path) -> None:
    shutil.copytree(prefix, tmp_path / "out", symlinks=True)
    path = tmp_path / "out/share/tensorop/manifest.json"
    path.write_text(path.read_text().replace('"arch": "x86_64"', '"arch": "riscv64"'))
    with pytest.raises(UsageError, match="is for riscv64, this machine is x86_64"):
        tensorop.load(tmp_path / "out")
    with pytest.raises(UsageError, match="holds no product"):
        tensorop.load(tmp_path)


def _cmake(*words: str | Path) -> str:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    done = subprocess.run(["cmake", *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_example_through_cmake_from_a_moved_prefix(prefix: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(prefix, tmp_path / "moved", symlinks=True)
    _cmake("-S", EXAMPLE, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={moved}")
    _cmake("--build", tmp_path / "build")
    for program in ("example", "example_static"):
        done = subprocess.run([tmp_path / "build" / program, "65", "130", "257"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("65x130x257: max error")


def test_example_through_pkg_config(prefix: Path, tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None or shutil.which("cc") is None:
        pytest.skip("pkg-config or cc is not installed")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    words = subprocess.check_output(["pkg-config", "--cflags", "--libs", "tensorop_cblas"], env=environment, text=True)
    program = tmp_path / "example"
    subprocess.run(["cc", EXAMPLE / "main.c", "-o", program, *words.split(), "-lm"], check=True)
    done = subprocess.run([program], env={**environment, "LD_LIBRARY_PATH": str(prefix / "lib")}, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_sources_build_alone(prefix: Path, tmp_path: Path) -> None:
    source = shutil.copytree(prefix / "share/tensorop/src", tmp_path / "src")
    said = _cmake("-S", source, "-B", tmp_path / "build", "-DCMAKE_C_FLAGS=-Wall -Wextra")
    said += _cmake("--build", tmp_path / "build", "-j2")
    assert "warning" not in said
    _cmake("--install", tmp_path / "build", "--prefix", tmp_path / "out")

    def tree(root: Path) -> set[str]:
        return {p.relative_to(root).as_posix() for p in root.rglob("*")}

    assert tree(prefix) - tree(tmp_path / "out") == {"share/tensorop/manifest.json"}
    assert tree(tmp_path / "out") <= tree(prefix)
    shutil.copy(prefix / "share/tensorop/manifest.json", tmp_path / "out/share/tensorop")
    a = np.arange(49.0).reshape(7, 7)
    assert np.array_equal(tensorop.load(tmp_path / "out").gemm(a, a), a @ a)
