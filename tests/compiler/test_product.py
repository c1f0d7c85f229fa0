"""The gemm library of fixed winners, used as its users do: Python, C through CMake and pkg-config, threads, fork."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import json
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import tensorop
from tensorop.blas import recorder
from tensorop.blas.routines import functions
from tensorop.errors import UsageError
from tensorop.model.architecture import host_arch
from tensorop.model.trial import Kind
from tensorop.package.card import read_card
from tensorop.render import adapting
from tensorop.runners import session
from tensorop.runners.native import Native
from tensorop.runners.protocol import Check, Entry, TargetLibrary, Time
from tensorop.runners.session import Guest
from tensorop.space import problems
from tensorop.specs import platforms
from tensorop.toolchain import shared_library
from tests.support import docs, products, shared_objects
from tests.support.classes import extended
from tests.support.operators import gemm

pytestmark = pytest.mark.skipif(host_arch() != "x86_64", reason="loads products for x86-64")

EXAMPLE = Path(__file__).parents[2] / "examples" / "c"
ARITHMETIC = Path(__file__).parents[1] / "support" / "arithmetic.c"


def _runs(platform: str) -> bool:
    flags = Path("/proc/cpuinfo").read_text().split()
    return {"avx512": "avx512vl", "avx2": "avx2", "generic": "fpu"}[platform] in flags


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return products.install("avx2", tmp_path_factory.mktemp("product") / "avx2")


def _tolerance(k: int, dtype: type) -> float:
    return 8 * (k + 8) * float(np.finfo(dtype).eps)


@pytest.mark.parametrize("platform", [extended("generic"), "avx2", extended("avx512")])
def test_products_compute_right(platform: str, tmp_path: Path) -> None:
    if not _runs(platform):
        pytest.skip(f"this CPU cannot run {platform}")
    library = tensorop.load(products.install(platform, tmp_path / "out"))
    assert library.dtypes == ("f32", "f64")
    _require_negative_sizes_refused(tmp_path / "out", {"f32": "tensorop_sgemm", "f64": "tensorop_dgemm"})
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


def _require_negative_sizes_refused(prefix: Path, names: dict[str, str]) -> None:
    """Both C functions of each dtype return the number of a negative m, n or k, and write nothing.

    names: by dtype, the function that takes numbers; the other takes a struct, and is the one that Python calls.
    """
    library = ctypes.CDLL(str(prefix / "lib/libtensorop_gemm.so"))
    for dtype, name in names.items():
        real = {"f64": ctypes.c_double, "i8": ctypes.c_int32}.get(dtype, ctypes.c_float)
        struct = type("Call", (ctypes.Structure,), {"_fields_": [
            *((word, ctypes.c_int) for word in ("layout", "transa", "transb")), ("alpha", real), ("beta", real),
            *((size, ctypes.c_int64) for size in ("m", "n", "k", "lda", "ldb", "ldc"))]})  # fmt: skip
        a, c = ctypes.create_string_buffer(256), ctypes.create_string_buffer(b"\1" * 255)
        two = ctypes.c_int64(2)
        for number, sizes in {4: (-1, 2, 2), 5: (2, -1, 2), 6: (2, 2, -1)}.items():
            numbers = map(ctypes.c_int64, sizes)
            assert library[name](101, 111, 111, *numbers, real(1), a, two, a, two, real(0), c, two) == number
            call = struct(101, 111, 111, 1, 0, *sizes, 2, 2, 2)
            assert library[f"tensorop_gemm_{dtype}_call"](ctypes.byref(call), a, a, c) == number
        assert c.raw == b"\1" * 255 + b"\0"


def test_dtypes_whose_operands_are_widened(tmp_path: Path) -> None:
    library = tensorop.load(products.install("generic", tmp_path / "out", ("i8", "bf16", "f16")))
    _require_negative_sizes_refused(tmp_path / "out", {of: f"tensorop_gemm_{of}" for of in library.dtypes})
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
    names = shared_library.facts(tmp_path / "out/lib/libtensorop_cblas.so").exports
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
    for said, wrong in (
        ("must agree", lambda: library.gemm(a, b.T)),
        ("a has 1 dimensions", lambda: library.gemm(a[0], b)),
        ("c must be given", lambda: library.gemm(a, b, beta=1.0)),
        (r"c must be an array .* shape \(17, 9\); got float64 \(3, 3\)", lambda: library.gemm(a, b, np.empty((3, 3)))),
        ("overlaps", lambda: library.gemm(big[:9, :9], big[:9, :9], big[:9, :9])),
        ("threads is 2.0: it must be an integer of 32 bits", lambda: setattr(library, "threads", 2.0)),
        ("threads is True: it must be an integer of 32 bits", lambda: setattr(library, "threads", True)),
        ("threads is 4294967297: it must be", lambda: setattr(library, "threads", (1 << 32) + 1)),
    ):
        with pytest.raises(ValueError, match=said):
            wrong()
    with pytest.raises(TypeError, match="holds float32, float64"):
        library.gemm(a.astype(np.int32), b)
    with pytest.raises(TypeError, match="one dtype"):
        library.gemm(a.astype(np.float32), b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_may_lie_in_any_way(prefix: Path, dtype: type) -> None:
    """Each way twice: what a first call works out is kept for the next."""
    library = tensorop.load(prefix)
    rng = np.random.default_rng(6)

    def lying(rows: int, columns: int) -> list[np.ndarray]:
        filled = rng.integers(-8, 9, (3 * rows, 2 * columns)).astype(dtype)  # sums of such are exact
        unaligned = np.frombuffer(bytearray(rows * columns * filled.itemsize + 1), np.uint8)[1:].view(dtype)
        unaligned = unaligned.reshape(rows, columns)
        unaligned[...] = filled[:rows, :columns]
        plain = np.ascontiguousarray(filled[:rows, :columns])
        gaps, columns_with_gaps = filled[:rows, 1 : columns + 1], np.asfortranarray(filled)[1 : rows + 1, :columns]
        return [plain, np.asfortranarray(plain), gaps, columns_with_gaps, filled[::3, ::2], plain[::-1], unaligned]

    for m, n, k in ((5, 7, 6), (1, 9, 4), (8, 1, 1)):
        for a in lying(m, k):
            for b in lying(k, n):
                exact = a @ b
                for c in (None, *lying(m, n)):
                    for transposes in ((False, False), (True, True)) * 2:
                        x, y = (v.T if turned else v for v, turned in zip((a, b), transposes, strict=True))
                        words = {"transpose_a": transposes[0], "transpose_b": transposes[1]}
                        if c is not None:
                            before = c.copy()
                            library.gemm(x, y, c, alpha=2, beta=-3, **words)
                            assert np.array_equal(c, 2 * exact - 3 * before)
                        assert np.array_equal(library.gemm(x, y, c, **words), exact)


def test_a_result_over_its_operands_is_refused(prefix: Path) -> None:
    library = tensorop.load(prefix)
    big = np.zeros((12, 12))
    a, b = big[:4, :4], np.ones((4, 4))
    below = big[3:7, 4:8]  # to a's right, from its last row on
    apart = (big[4:8, :4], big[6:10, 6:10].T, np.ones((4, 4)), np.ones((4, 4)).T, big[:4, 4:8], below, big[:4, 8:])
    over = (a, a.T, big[1:5, 1:5], big[::2, ::2][:4, :4], big[3:7, :4], big[:4, 3:7], big[2:6, 1:5].T)
    for _ in range(2):
        for c in apart:
            library.gemm(a, b, c)
            library.gemm(b.T, a.T, c)
        for c in over:
            for x, y in ((a, b), (b, a), (a.T, b)):
                with pytest.raises(ValueError, match=r"c overlaps [ab]"):
                    library.gemm(x, y, c)
    rng, seen, room = np.random.default_rng(3), {True: 0, False: 0}, np.zeros(500)

    def lying(rows: int, columns: int) -> np.ndarray:
        apart = 8 * int(rng.integers(6, 40))
        strides = (apart, 8) if rng.integers(2) else (8, apart)
        return np.lib.stride_tricks.as_strided(room[rng.integers(0, 240) :], (rows, columns), strides)

    for _ in range(2000):  # leading dimensions that differ, and transposed ones: as NumPy's exact test has it
        m, n, k = map(int, rng.integers(1, 7, 3))
        c, x = lying(m, n), lying(m, k)
        seen[over := np.shares_memory(c, x)] += 1
        with pytest.raises(ValueError, match=r"c overlaps [ab]") if over else contextlib.nullcontext():
            library.gemm(x, np.ones((k, n)), c)
    assert min(seen.values()) > 200
    blocks = np.arange(12 * 12, dtype=float).reshape(12, 12)  # the step of a blocked factorization, within one array
    exact = blocks[4:, 4:] - blocks[4:, :4] @ blocks[:4, 4:]
    assert np.array_equal(library.gemm(blocks[4:, :4], blocks[:4, 4:], blocks[4:, 4:], alpha=-1, beta=1), exact)
    spread = np.zeros((4, 16))
    library.gemm(spread[:, ::2][:, :4], b, spread[:, 1::2][:, :4])  # copied, and yet apart
    with pytest.raises(ValueError, match=r"c overlaps [ab]"):
        library.gemm(spread[:, ::2][:, :4], b, spread[:, 2::2][:, :4])
    row = np.zeros(16)
    for strides in ((0, 8), (8, 0), (8, 8), (16, 8), (-8, 16)):
        with pytest.raises(ValueError, match="c must be an array that does not overlap itself"):
            library.gemm(b, b, np.lib.stride_tricks.as_strided(row[8:], (4, 4), strides))
    nothing = np.empty((0, 0))
    assert library.gemm(nothing, nothing, nothing) is nothing
    fixed = np.ones((4, 4))
    library.gemm(a, b, fixed)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="c is read-only"):
        library.gemm(a, b, fixed)


def test_coefficients_are_those_of_each_call(prefix: Path) -> None:
    library = tensorop.load(prefix)
    a, b, c = np.eye(3), np.full((3, 3), 2.0), np.full((3, 3), np.nan)
    for alpha in (1, 0.5, np.float32(0.25), np.array(2.0), -1.0, 0.0, 1):
        assert np.array_equal(library.gemm(a, b, alpha=alpha), float(alpha) * b)
    library.gemm(a, b, c, beta=0.0)
    library.gemm(a, b, c, alpha=0, beta=2)
    assert np.array_equal(c, 2 * b)
    assert np.isnan(library.gemm(a, b, alpha=np.nan)).all()
    assert np.array_equal(library.gemm(a, b), b)


def test_coefficients_that_are_none(prefix: Path) -> None:
    library, a, c = tensorop.load(prefix), np.eye(3), np.zeros((3, 3))
    for value in ("2", None, 1j, np.complex128(1), np.ones(2), np.ones(1), [1.0], b"1", True, np.True_, np.array("1")):
        for name in ("alpha", "beta"):
            with pytest.raises(TypeError, match=f"{name} is .*: it must be a real number"):
                library.gemm(a, a, c, **{name: value})
    for value in ("T", None, 2, 0.5, np.ones(2), [True]):
        for name in ("transpose_a", "transpose_b"):
            with pytest.raises(TypeError, match=f"{name} is .*: it must be True or False"):
                library.gemm(a, a, c, **{name: value})
    assert np.array_equal(library.gemm(a, a, alpha=np.array(2.0), transpose_a=np.True_, transpose_b=1), 2 * a)
    assert np.array_equal(library.gemm(a, a, alpha=1e300), 1e300 * a)
    single = a.astype(np.float32)
    for value, of in ((1e300, single), (-3.5e38, single), (10**400, single), (10**400, a)):
        for name in ("alpha", "beta"):
            with pytest.raises(ValueError, match=rf"{name} is .*: it must be at most .*, the largest number of"):
                library.gemm(of, of, np.zeros((3, 3), of.dtype), **{name: value})
    assert np.isinf(library.gemm(single, single, alpha=np.inf)[0, 0])
    assert library.gemm(single, single, alpha=np.finfo(np.float32).max)[0, 0] == np.finfo(np.float32).max


def test_a_library_travels_as_the_path_of_its_product(prefix: Path, tmp_path: Path) -> None:
    """To a process that starts anew, in a copy, and to where its product is not."""
    a = np.arange(12.0).reshape(3, 4)
    (tmp_path / "here").symlink_to(prefix)
    for path, plugins in ((tmp_path / "here", ()), (prefix / "lib/libtensorop_gemm.so", (str(tmp_path),))):
        library = tensorop.load(path, plugins)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert np.array_equal(pool.apply(_product, (library, a)), a @ a.T)
        again = copy.deepcopy({"held": library})["held"]
        assert (again.folder, again.dtypes, repr(again)) == (library.folder, library.dtypes, repr(library))
        assert np.array_equal(again.gemm(a, a, transpose_b=True), a @ a.T)
    held = pickle.dumps(tensorop.load(tmp_path / "here"))
    assert len(held) < 1000
    (tmp_path / "here").unlink()
    with pytest.raises(UsageError, match=r"is the path of its product, and .*here does not exist here") as caught:
        pickle.loads(held)
    assert "call tensorop.load in this process" in str(caught.value.hint)


def _product(library: tensorop.Library, a: np.ndarray) -> np.ndarray:
    return library.gemm(a, a, transpose_b=True)


def test_more_shapes_than_are_kept(prefix: Path) -> None:
    library = tensorop.load(prefix)
    for n in range(1, 1300):
        assert library.gemm(np.ones((1, 2)), np.ones((2, n))).sum() == 2 * n


def test_only_public_names_are_visible(prefix: Path) -> None:
    both = {"tensorop_set_num_threads", "tensorop_get_num_threads", "tensorop_card"}
    ours = {"tensorop_sgemm", "tensorop_dgemm", *both}
    ours |= {f"tensorop_gemm_{dtype}_{kind}" for dtype in ("f32", "f64") for kind in ("variant", "call")}
    blas = {one.symbol(*functions()[name]) for one in recorder.INTERFACES for name in ("sgemm", "dgemm")}
    gemm, cblas = (prefix / f"lib/libtensorop_{name}.so" for name in ("gemm", "cblas"))
    assert (shared_library.facts(gemm).exports, shared_objects.soname(gemm)) == (ours, "libtensorop_gemm.so.0")
    assert (shared_library.facts(cblas).exports, shared_objects.soname(cblas)) == (blas, "libtensorop_cblas.so.0")
    assert "libtensorop_gemm.so.0" in shared_library.facts(cblas).needed
    floor = json.loads((prefix / "share/tensorop/manifest.json").read_text())["glibc"]
    for library in (gemm, cblas):
        assert shared_objects.glibc(library) <= tuple(map(int, floor.split(".")))


def test_a_library_of_one_dtype_has_no_names_of_the_other(tmp_path: Path) -> None:
    out = products.install("generic", tmp_path / "out", ("f32",))
    names = (
        shared_library.facts(out / "lib/libtensorop_gemm.so").exports
        | shared_library.facts(out / "lib/libtensorop_cblas.so").exports
    )
    assert "cblas_sgemm" in names
    assert not [name for name in names if "dgemm" in name or "f64" in name]
    assert "dgemm" not in (out / "include/tensorop/gemm.h").read_text()
    with pytest.raises(TypeError, match="holds float32"):
        tensorop.load(out).gemm(np.ones((2, 2)), np.ones((2, 2)))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_jailed_library_takes_the_threads_that_are_checked(prefix: Path, threads: int) -> None:
    """As finalists, sensitivity and verification open it: nothing of what it does at its first call is refused."""
    operator = gemm()
    program = adapting.program(platforms.load("generic"), operator).path
    call = operator.reference.call(problems.of(operator, "f64", (300,) * 3), np.random.default_rng(0), "normal")
    guest = Guest(
        libraries=(TargetLibrary(str(prefix / "lib/libtensorop_gemm.so"), "tensorop", "f64"),), threads=threads
    )
    timed, checked = session.run(Native(), program, [Time(call, (Entry(),), rounds=3), Check(call)], guest=guest)
    assert (timed.outcome.kind, checked.outcome.kind) == (Kind.OK, Kind.OK), (timed.outcome, checked.outcome)


def test_what_runs_unconfined_says_what_it_is(prefix: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"is not verified.*in this process, confined by nothing"):
        tensorop.load(prefix)
    shutil.copytree(prefix, tmp_path / "copy", symlinks=True)
    path = tmp_path / "copy/share/tensorop/manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"results": {"verification": [{"outcome": "ok"}]}}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensorop.load(tmp_path / "copy")
        tensorop.load(tmp_path / "copy/lib/libtensorop_gemm.so")
    manifest["operators"]["gemm"]["dtypes"]["f64"]["variants"][0]["author"] = "m-1"
    path.write_text(json.dumps(manifest | {"results": {"verification": [{"outcome": "ok"}]}}))
    with pytest.warns(UserWarning, match=r"holds kernels that a model wrote \(m-1\)"):
        tensorop.load(tmp_path / "copy")
    with (tmp_path / "copy/lib/libtensorop_gemm.so").open("ab") as file:
        file.write(b"\0")
    with pytest.warns(UserWarning, match="is not verified"):
        tensorop.load(tmp_path / "copy/lib/libtensorop_gemm.so")


def test_card_and_manifest_agree(prefix: Path) -> None:
    manifest = json.loads((prefix / "share/tensorop/manifest.json").read_text())
    files = manifest.pop("files")
    held = manifest.pop("operators")
    assert list(held) == ["gemm"]
    variants = [variant for of_dtype in held["gemm"]["dtypes"].values() for variant in of_dtype["variants"]]
    ids = [(variant.pop("id"), variant.pop("kernel")) for variant in variants]
    assert len(set(ids)) == len(ids)
    for name in ("lib/libtensorop_gemm.so", "lib/libtensorop_gemm.a"):
        assert read_card(prefix / name) == {**manifest, **held["gemm"], "operator": "gemm", "schema": 1}
    assert tensorop.load(prefix).card == read_card(prefix / "lib/libtensorop_gemm.so")
    assert held["gemm"]["facts"] == products.FACTS
    assert [v["point"]["nr"] for v in held["gemm"]["dtypes"]["f64"]["variants"]] == [4, 6]
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


CANCELLED = """
#include <pthread.h>
#include <stdlib.h>
#include <tensorop/gemm.h>
#include <unistd.h>

enum { N = 192 };
static double *a;

static void product(void) {
    double *c = calloc(N * N, sizeof *c);
    tensorop_dgemm(TENSOROP_ROW_MAJOR, TENSOROP_NO_TRANS, TENSOROP_NO_TRANS, N, N, N, 1, a, N, a, N, 0, c, N);
    free(c);
}

static void *again(void *unused) {
    for (;;) {
        product();
        pthread_testcancel();
    }
    return unused;
}

int main(void) {
    a = calloc(N * N, sizeof *a);
    tensorop_set_num_threads(4);
    alarm(60); /* a lock that is never given back */
    for (int i = 0; i < 40; ++i) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, again, NULL))
            return 2;
        usleep(500 + 311 * i);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        product();
    }
    return 0;
}
"""


def test_a_thread_cancelled_in_a_call_locks_no_later_one(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "cancel.c").write_text(CANCELLED)
    lib = prefix / "lib"
    words = (f"-I{prefix}/include", f"-L{lib}", "-ltensorop_gemm", f"-Wl,-rpath,{lib}", "-lpthread")
    built = _built(tmp_path / "cancel.c", tmp_path / "cancel", *words)
    assert built.returncode == 0, built.stderr
    assert subprocess.run([tmp_path / "cancel"], timeout=120, check=False).returncode == 0


def test_every_thread_computes_as_its_caller_does(prefix: Path, tmp_path: Path) -> None:
    """Rounding, flushing, exceptions, traps and pages opened on demand, chosen when the pool is there."""
    lib = prefix / "lib"
    words = (f"-I{prefix}/include", f"-L{lib}", "-ltensorop_gemm", f"-Wl,-rpath,{lib}", "-lm")
    built = _built(ARITHMETIC, tmp_path / "arithmetic", "-O1", "-frounding-math", *words)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([tmp_path / "arithmetic", "200", "4", "20", "7"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "")


ROUNDED = """
import ctypes, sys, threading
import numpy as np
import tensorop

library, libm = tensorop.load(sys.argv[1]), ctypes.CDLL("libm.so.6")
library.threads = 3
rng = np.random.default_rng(1)
a, b = (rng.uniform(-1, 1, (200, 200)).astype(np.float32) for _ in range(2))
found, modes = {}, (0, 0x400, 0x800, 0xC00)  # as <fenv.h> has them on x86

def work(mode):
    assert libm.fesetround(mode) == 0
    found[mode] = {library.gemm(a, b).tobytes() for _ in range(40)}

def run(*modes):
    callers = [threading.Thread(target=work, args=(mode,)) for mode in modes]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()

library.gemm(a, b)
for mode in modes:
    run(mode)
alone = dict(found)
run(*modes)
assert all(len(bits) == 1 for bits in alone.values()), {mode: len(bits) for mode, bits in alone.items()}
assert len(set.union(*alone.values())) == len(modes)
assert found == alone
"""


def test_callers_who_round_differently_share_the_pool(prefix: Path) -> None:
    done = _python(ROUNDED, str(prefix))
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


CPUID = """
#include <stdint.h>
static unsigned saved, lacks[4]; /* XCR0; leaf, sub-leaf, register and bit that this CPU has not */
static int __get_cpuid_count(unsigned leaf, unsigned sub, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d) {
    uint32_t *const word[] = {a, b, c, d};
    *a = *b = *c = *d = ~0u;
    if (leaf == lacks[0] && sub == lacks[1])
        *word[lacks[2]] &= ~(1u << lacks[3]);
    return 1;
}
static int __get_cpuid(unsigned leaf, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d) {
    return __get_cpuid_count(leaf, 0, a, b, c, d);
}
#define __asm__
#define volatile(...) low = saved, high = 0 /* xgetbv */
"""
LACKING = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "cpu.c" /* whose <cpuid.h>, the one above, comes after theirs */
struct tensorop_settings tensorop_gemm_environment = {0, -1, 1, 1};
const struct tensorop_settings *tensorop_gemm_read_environment(void) { return &tensorop_gemm_environment; }
int main(int count, char **word) {
    const struct tensorop_isa all = {(0 TENSOROP_ISA_LIST(ALL)), 0};
    saved = strtoul(word[1], 0, 0);
    for (int i = 2; i < count; ++i)
        lacks[i - 2] = strtoul(word[i], 0, 0);
    return tensorop_gemm_cpu_has(&all);
}
"""


def test_vectors_count_where_the_system_saves_their_registers(prefix: Path, tmp_path: Path) -> None:
    """The library's own question, by a CPU and an operating system that answer as they are told."""
    source = prefix / "share/tensorop/src"
    (tmp_path / "cpuid.h").write_text(CPUID)
    (tmp_path / "main.c").write_text(LACKING)
    all_bits = "-DALL(bit, ...)=| (uint64_t)1 << bit"
    built = _built(tmp_path / "main.c", tmp_path / "main", f"-I{tmp_path}", f"-I{source}", all_bits, "-lpthread")
    assert built.returncode == 0, built.stderr

    def lacking(*words: str) -> set[str]:
        said = subprocess.run([tmp_path / "main", *words], capture_output=True, text=True).stderr
        return set(said.partition("lacks")[2].split())

    listed = [line.split(",") for line in (source / "isa.h").read_text().splitlines() if "X(" in line and '"' in line]
    names = {row[2].strip().strip('"'): [word.strip(" )\\u") for word in row[3:]] for row in listed}
    avx512 = {name for name in names if name.startswith("avx512")}
    avx = {name for name in names if name.startswith("avx")} | {"fma", "f16c"}
    assert {"avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512_vnni", "avx512_bf16", "avx512_fp16"} <= avx512
    for saved in ("0", "0x3", "0x5", "0xe3"):  # none; x87 and SSE; without either half of YMM
        assert lacking(saved) == avx
    for saved in ("0x7", "0xc7", "0xa7", "0x67"):  # each of the three states of AVX-512 left out
        assert lacking(saved) == avx512
    assert lacking("0xe7") == set()
    assert lacking("0xe7", "1", "0", "2", "27") == avx  # no OSXSAVE
    for name, bit in names.items():
        assert lacking("0xe7", *bit) == {name}


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
    done = _python(script + "library.gemm(np.eye(9), np.eye(9))\n", str(prefix), TENSOROP_VARIANT="99")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("TENSOROP_VARIANT=99 is ignored: this library has variants 0 to ") == 1
    done = _python(script, str(prefix), TENSOROP_NUM_THREADS="many")
    assert "TENSOROP_NUM_THREADS=many is ignored" in done.stderr


def test_a_product_for_another_machine_is_refused_by_name(prefix: Path, tmp_path: Path) -> None:
    shutil.copytree(prefix, tmp_path / "out", symlinks=True)
    path = tmp_path / "out/share/tensorop/manifest.json"
    path.write_text(path.read_text().replace('"arch": "x86_64"', '"arch": "riscv64"'))
    with pytest.raises(UsageError, match="is for riscv64, and this machine is x86_64"):
        tensorop.load(tmp_path / "out")
    with pytest.raises(UsageError, match="contains no product"):
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


def _built(source: Path, program: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    command = ["cc", "-Wall", "-Werror", source, "-o", program, *words]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)


@pytest.mark.covers("example c")
@pytest.mark.parametrize("dtypes", [extended("f32"), "f64,f32", extended("f64")])
def test_the_example_takes_what_the_library_has(dtypes: str, tmp_path: Path) -> None:
    out = products.install("avx2", tmp_path / "out", tuple(dtypes.split(",")))
    program, lib = tmp_path / "example", out / "lib"
    built = _built(
        EXAMPLE / "main.c", program, f"-I{out}/include", f"-L{lib}", "-ltensorop_gemm", f"-Wl,-rpath,{lib}", "-lm"
    )
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program], env={"TENSOROP_VERBOSE": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert ("dgemm" if "f64" in dtypes else "sgemm") in done.stderr


def test_the_example_says_what_a_library_lacks(tmp_path: Path) -> None:
    out = products.install("generic", tmp_path / "out", ("i8",))
    built = _built(EXAMPLE / "main.c", tmp_path / "example", f"-I{out}/include", f"-L{out}/lib", "-ltensorop_gemm")
    assert "make one with --dtype f32,f64" in built.stderr


CBLAS = """
{includes}
#include <stdio.h>
int main(void) {{
    double a[6] = {{1, 2, 3, 4, 5, 6}}, b[6] = {{1, 0, 0, 1, 1, 1}}, c[4] = {{9, 9, 9, 9}};
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 3, 1, a, 3, b, 2, 0, c, 2);
    printf("%g %g %g %g {more}\\n", c[0], c[1], c[2], c[3]{value});
    return 0;
}}
"""
OTHER = """
#ifndef CBLAS_H
#define CBLAS_H
#include <stddef.h>
typedef enum CBLAS_ORDER { CblasRowMajor = 101, CblasColMajor = 102 } CBLAS_ORDER;
typedef enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 } CBLAS_TRANSPOSE;
static inline int cblas_of_another(void) { return 5; }
void cblas_dgemm(const enum CBLAS_ORDER Order, const enum CBLAS_TRANSPOSE TransA, const enum CBLAS_TRANSPOSE TransB,
                 const int M, const int N, const int K, const double alpha, const double *A, const int lda,
                 const double *B, const int ldb, const double beta, double *C, const int ldc);
#endif
"""


@pytest.mark.parametrize("order", ["ours", "ours, theirs", "theirs, ours"])
def test_cblas_h_beside_that_of_another_library(prefix: Path, tmp_path: Path, order: str) -> None:
    """OTHER has the guard, the enums and the prototypes of OpenBLAS's, and something of its own."""
    lines = {"ours": "#include <tensorop/cblas.h>", "theirs": "#include <cblas.h>"}
    both = order != "ours"
    text = CBLAS.format(
        includes="\n".join(lines[word] for word in order.split(", ")),
        more="%d" if both else "",
        value=", cblas_of_another()" if both else "",
    )
    (tmp_path / "other").mkdir()
    (tmp_path / "other/cblas.h").write_text(OTHER)
    (tmp_path / "main.c").write_text(text)
    flags = [f"-I{prefix}/include", f"-L{prefix}/lib", "-ltensorop_cblas", f"-Wl,-rpath,{prefix}/lib"]
    flags += [f"-I{tmp_path}/other"] if both else []
    built = _built(tmp_path / "main.c", tmp_path / "main", *flags)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True)
    assert done.stdout.split() == ["4", "5", "10", "11", *(["5"] if both else [])]


REFUSED = r"""
#include <tensorop/cblas.h>
#include <stddef.h>
#include <stdio.h>
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *, size_t, size_t);
#ifdef OWN
void xerbla_(const char *routine, const int *info, size_t length)
{
    fprintf(stderr, "own %.*s %d\n", (int)length, routine, *info);
}
void cblas_xerbla(int info, const char *routine, const char *form, ...)
{
    fprintf(stderr, "own %s %d\n", routine, info);
}
#endif
int main(void)
{
    static double x[64], one = 1;
    const int eight = 8, wrong = -1;
    cblas_dgemm(CblasRowMajor, 7, CblasNoTrans, 8, 8, 8, 1, x, 8, x, 8, 0, x, 8);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, -1, 8, 8, 1, x, 8, x, 8, 0, x, 8);
    dgemm_("N", "N", &eight, &wrong, &eight, &one, x, &eight, x, &eight, &one, x, &eight, 1, 1);
    return 0;
}
"""


@pytest.mark.parametrize("how", ["shared", "archive", "static"])
def test_an_illegal_argument_goes_to_the_programs_own_handlers(prefix: Path, tmp_path: Path, how: str) -> None:
    (tmp_path / "main.c").write_text(REFUSED)
    lib = prefix / "lib"
    words = {
        "shared": (f"-L{lib}", "-ltensorop_cblas", f"-Wl,-rpath,{lib}"),
        "archive": (lib / "libtensorop_cblas.a", lib / "libtensorop_gemm.a", "-lpthread"),
        "static": ("-static", lib / "libtensorop_cblas.a", lib / "libtensorop_gemm.a", "-lpthread"),
    }[how]

    def reported(name: str, *more: str) -> str:
        built = _built(tmp_path / "main.c", tmp_path / name, f"-I{prefix}/include", *more, *words)
        assert built.returncode == 0, built.stderr
        assert built.stderr == ""
        return subprocess.run([tmp_path / name], capture_output=True, text=True, check=True).stderr

    assert reported("own", "-DOWN") == "own cblas_dgemm 2\nown DGEMM  4\nown DGEMM  4\n"
    assert reported("plain") == (
        "Parameter 2 to routine cblas_dgemm was incorrect\nIllegal TransA setting, 7\n"
        "Parameter 4 to routine cblas_dgemm  was incorrect\nParameter 4 to routine DGEMM  was incorrect\n"
    )


PROCESS = r"""
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <tensorop/gemm.h>
#include <unistd.h>

enum { SIGNALS = 65, N = 700 };
static struct {
    void (*handler[SIGNALS])(int);
    sigset_t mask;
    char **environment, name[16], locale[64];
    int rounding, traps;
} seen[2];
static double a[N * N], c[N * N];

static void look(int i)
{
    for (int s = 1; s < SIGNALS; ++s) {
        struct sigaction action = { 0 };
        sigaction(s, NULL, &action);
        seen[i].handler[s] = action.sa_handler;
    }
    pthread_sigmask(SIG_SETMASK, NULL, &seen[i].mask);
    prctl(PR_GET_NAME, seen[i].name);
    strcpy(seen[i].locale, setlocale(LC_ALL, NULL));
    seen[i].environment = environ, seen[i].rounding = fegetround(), seen[i].traps = fegetexcept();
}

int main(void)
{
    tensorop_set_num_threads(2);
    look(0);
    for (int n = 1; n <= N; n += 233) {
        errno = 77;
        tensorop_dgemm(TENSOROP_ROW_MAJOR, TENSOROP_NO_TRANS, TENSOROP_TRANS, n, n, n, 1, a, N, a, N, 0, c, N);
        assert(errno == 77);
    }
    look(1);
    assert(memcmp(seen, seen + 1, sizeof *seen) == 0);
    return 0;
}
"""


@pytest.mark.parametrize("threads", ["", "99999999999999999999"])
def test_a_call_leaves_the_process_as_it_was(prefix: Path, tmp_path: Path, threads: str) -> None:
    (tmp_path / "process.c").write_text(PROCESS)
    lib = prefix / "lib"
    words = (f"-I{prefix}/include", f"-L{lib}", "-ltensorop_gemm", f"-Wl,-rpath,{lib}", "-lm")
    built = _built(tmp_path / "process.c", tmp_path / "process", *words)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([tmp_path / "process"], env={"TENSOROP_NUM_THREADS": threads}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("platform", [extended("generic"), "avx2", extended("avx512")])
def test_calls_fit_into_the_least_stack_of_a_thread(platform: str, tmp_path: Path) -> None:
    """Painted, and in PTHREAD_STACK_MIN: by every variant and path, in parts on threads, refused, and with words."""
    if not _runs(platform):
        pytest.skip(f"this CPU cannot run {platform}")
    out = products.install(platform, tmp_path / "out", found=products.of_all_templates(("f64",)))
    words = ("-O1", f"-I{out}/include", f"-L{out}/lib", "-ltensorop_cblas", "-ltensorop_gemm", "-lpthread")
    built = _built(products.STACK, tmp_path / "stack", *words, f"-Wl,-rpath,{out}/lib")
    assert built.returncode == 0, built.stderr
    for verbose in ("0", "1"):
        environment = {"TENSOROP_NUM_THREADS": "3", "TENSOROP_VERBOSE": verbose}
        done = subprocess.run([tmp_path / "stack"], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (done.stdout, done.stderr[-300:])
        assert int(done.stdout.split()[0]) <= products.MOST_STACK, done.stdout


PRINTED = {  # by page: what each of its first blocks prints
    "use-the-library": ("100% tests passed, 0 tests failed out of 2", "127x129x131: max error", "max error"),
    "replace-blas": ("4 5 10 11\n",),
}


@pytest.mark.parametrize(("page", "number"), [(page, n) for page, texts in PRINTED.items() for n in range(len(texts))])
def test_the_lines_of_the_docs(prefix: Path, tmp_path: Path, page: str, number: int) -> None:
    if any(shutil.which(tool) is None for tool in ("pkg-config", "cc", "cmake")):
        pytest.skip("pkg-config, cc or cmake is not installed")
    done = docs.run(docs.blocks(f"docs/how-to/{page}.md")[number], prefix, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert PRINTED[page][number] in done.stdout


def test_a_library_is_loaded_by_its_file(prefix: Path, tmp_path: Path) -> None:
    away = tmp_path / "renamed.so"
    shutil.copy(prefix / "lib/libtensorop_gemm.so", away)
    a = np.arange(9.0).reshape(3, 3)
    for path in (away, str(prefix / "lib/libtensorop_gemm.so.0")):
        library = tensorop.load(path)
        assert np.array_equal(library.gemm(a, a), a @ a)
        assert library.dtypes == ("f32", "f64")
        assert "gemm" in dir(library)
        assert library.folder == Path(path).parent
    with pytest.raises(AttributeError, match="computes gemm, there is no 'conv2d'"):
        library.conv2d  # noqa: B018
    with pytest.raises(UsageError, match="no provenance card") as refused:
        tensorop.load(prefix / "lib/libtensorop_cblas.so")
    assert "lib/libtensorop_<operator>.so" in str(refused.value.hint)
    with pytest.raises(UsageError, match="is a static archive"):
        tensorop.load(prefix / "lib/libtensorop_gemm.a")
    with pytest.raises(UsageError, match="contains no product"):
        tensorop.load(tmp_path / "nothing.so")
    foreign = tmp_path / "foreign.so"
    foreign.write_bytes(away.read_bytes().replace(b'"arch": "x86_64"', b'"arch": "sparc9"'))
    with pytest.raises(UsageError, match="is for sparc9, and this machine is x86_64"):
        tensorop.load(foreign)


LIB = "-DCMAKE_INSTALL_LIBDIR=lib"  # as in products; some systems have lib64 by default


def test_sources_build_alone(prefix: Path, tmp_path: Path) -> None:
    source = shutil.copytree(prefix / "share/tensorop/src", tmp_path / "src")
    said = _cmake("-S", source, "-B", tmp_path / "build", "-DCMAKE_C_FLAGS=-Wall -Wextra", LIB)
    said += _cmake("--build", tmp_path / "build", "-j2")
    assert "warning" not in said
    _cmake("--install", tmp_path / "build", "--prefix", tmp_path / "out")

    def tree(root: Path) -> set[str]:
        return {p.relative_to(root).as_posix() for p in root.rglob("*")}

    assert tree(prefix) - tree(tmp_path / "out") == {"share/tensorop/manifest.json"}
    assert tree(tmp_path / "out") <= tree(prefix)
    shutil.copy(prefix / "share/tensorop/manifest.json", tmp_path / "out/share/tensorop")
    a = np.arange(49.0).reshape(7, 7)
    for built in ("out", "build/libtensorop_gemm.so"):  # which look for other libraries beside them alone
        assert np.array_equal(tensorop.load(tmp_path / built).gemm(a, a), a @ a)
