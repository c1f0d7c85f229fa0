"""The direct variant of the smallest products: right in every layout, by itself and as the library takes it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tensorop
from tensorop.model.architecture import host_arch
from tensorop.model.verdict import Seed, Verdict
from tensorop.render import adapting
from tensorop.runners.native import Native
from tensorop.runners.protocol import TargetLibrary
from tensorop.runners.session import Guest
from tensorop.specs import platforms
from tensorop.verify import grid
from tensorop.verify.subject import Subject
from tests.support import products
from tests.support.classes import each_once, extended
from tests.support.templates import operator, verdicts

pytestmark = pytest.mark.skipif(host_arch() != "x86_64", reason="the plain platform is one of x86-64")

POINTS = [
    {"mr_vectors": 2, "nr": 4, "partial_sums": 8, "ahead": 0, "narrow": 1},
    {"mr_vectors": 1, "nr": 6, "partial_sums": 1, "ahead": 1, "narrow": 0},
]


def _lacks(platform: str) -> bool:
    with open("/proc/cpuinfo") as info:
        flags = next((set(line.split(":")[1].split()) for line in info if line.startswith("flags")), set())
    return not set(platforms.load(platform).requires) <= flags


@pytest.mark.covers("platform {platform}")
@pytest.mark.parametrize(
    ("platform", "point", "dtype"),
    each_once(["generic", "avx2", "avx512"], POINTS, ["f32", "f64"]),
    ids=lambda v: v if isinstance(v, str) else "ahead" if v["ahead"] else "partial_sums",
)
def test_it_is_right_by_itself(platform: str, point: dict[str, int], dtype: str) -> None:
    if _lacks(platform):
        pytest.skip(f"this CPU cannot run {platform}")
    for verdict in verdicts(platform, "direct", dtype, point):
        assert verdict.ok, verdict.outcome


def judged(library: Path, dtype: str) -> Verdict:
    """Small shapes by the library's own choice."""
    seed = Seed.draw()
    guest = Guest(libraries=(TargetLibrary(str(library), "tensorop", dtype),))
    program = adapting.program(platforms.load("generic"), operator).path
    cases = operator.reference.smallest_grid(dtype, seed.stream(0), 300)
    return grid.check(operator.reference, Subject(Native(), program, guest), cases, 0, seed)


@pytest.mark.parametrize("platform", [extended("generic"), "avx2", extended("avx512")])
def test_the_library_takes_it_and_is_right(platform: str, tmp_path: Path) -> None:
    if _lacks(platform):
        pytest.skip(f"this CPU cannot run {platform}")
    library = products.install(platform, tmp_path / "out", found=products.with_direct()) / "lib/libtensorop_gemm.so"
    for dtype in ("f32", "f64"):
        verdict = judged(library, dtype)
        assert verdict.ok, verdict.outcome


BITS = """
import sys, numpy as np, tensorop
library = tensorop.load(sys.argv[1])
rng = np.random.default_rng(1)
for m, n, k in ((2, 2, 100), (1, 10, 50), (4, 4, 32), (4, 4, 33)):
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    first, again = library.gemm(a, b), library.gemm(a, b)
    print(m * n * k, (first == again).all(), first.tobytes().hex())
"""


def bits(prefix: Path, **variables: str) -> list[list[str]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    done = subprocess.run(
        [sys.executable, "-c", BITS, str(prefix)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_up_to_its_limit_the_library_takes_it_unless_told_otherwise(tmp_path: Path) -> None:
    if _lacks("avx2"):
        pytest.skip("this CPU cannot run avx2")
    prefix = products.install("avx2", tmp_path / "out", found=products.with_direct())
    chosen, direct, other = bits(prefix), bits(prefix, TENSOROP_VARIANT="2"), bits(prefix, TENSOROP_VARIANT="0")
    for own, by_two, by_zero in zip(chosen, direct, other, strict=True):
        small = 2 * int(own[0]) <= operator.direct.always
        assert own[1] == "True"
        assert by_two != by_zero  # another order of summation
        assert (own == by_two) == small


AGAIN = """
import sys, threading, numpy as np, tensorop
library = tensorop.load(sys.argv[1])
rng = np.random.default_rng(2)
shapes = [(m, n, k) for m in (1, 7, 40) for n in (3, 33) for k in (5, 90, 130, 400)] * 2
pairs = [(rng.standard_normal((m, k)), rng.standard_normal((n, k)).T if i % 2 else rng.standard_normal((k, n)))
         for i, (m, n, k) in enumerate(shapes)]
first = [library.gemm(a, b) for a, b in pairs]
wrong = []
def again(seed):
    for i in np.random.default_rng(seed).integers(0, len(pairs), 3000):
        if not np.array_equal(library.gemm(*pairs[i]), first[i]):
            wrong.append(shapes[i])
threads = [threading.Thread(target=again, args=(seed,)) for seed in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(pairs), wrong)
"""


def test_a_choice_that_is_remembered_is_the_one_that_was_made(tmp_path: Path) -> None:
    """More problems than are remembered, from several threads: variants differ in their last bits."""
    prefix = products.install("generic", tmp_path / "out", found=products.with_direct())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", AGAIN, str(prefix)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["48", "[]"], done.stdout + done.stderr


def test_words_about_it_are_heard(tmp_path: Path) -> None:
    prefix = products.install("generic", tmp_path / "out", found=products.with_direct())
    script = "import sys, numpy as np, tensorop; tensorop.load(sys.argv[1]).gemm(np.eye(8), np.eye(8))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TENSOROP_VERBOSE": "1"}
    said = subprocess.run([sys.executable, "-c", script, str(prefix)], env=environment, capture_output=True, text=True)
    assert "by variant 2: direct" in said.stderr
    script = "import sys, numpy as np, tensorop; tensorop.load(sys.argv[1]).gemm(np.ones((3, 50)).T, np.ones((3, 1)))"
    said = subprocess.run([sys.executable, "-c", script, str(prefix)], env=environment, capture_output=True, text=True)
    assert "dgemm 50x1x3" in said.stderr  # a contiguous row of the column-major product is taken as a column
    card = tensorop.load(prefix).card["dtypes"]["f64"]
    assert card["direct"] == {"variant": 2, "most_flops": operator.direct.always}
    assert card["variants"][2]["template"] == "direct"


RIGHT = {1: 101, 2: 111, 3: 112, 4: 3, 5: 4, 6: 5, 9: 5, 11: 5, 14: 4}  # by the argument's number: 3x4x5, B transposed
WRONG = [(1, 103), (1, 100), (2, 110), (2, 114), (3, 0), (4, -1), (5, -1), (6, -1), (9, 4), (9, 0), (9, -(2**63))]
WRONG += [(11, 4), (11, -(2**63)), (14, 3), (14, 0), (14, -1)]


def test_its_own_entry_names_the_first_wrong_argument(tmp_path: Path) -> None:
    """Once a product of this size was computed, calls go to the kernel's own entry, which checks them."""
    prefix = products.install("generic", tmp_path / "out", found=products.with_direct())
    function = ctypes.CDLL(str(prefix / "lib/libtensorop_gemm.so")).tensorop_dgemm
    a, b, c = ((ctypes.c_double * 32)(*[1.0] * 32) for _ in range(3))

    def call(given: dict[int, int]) -> int:
        words = [ctypes.c_int(given[i]) for i in (1, 2, 3)] + [ctypes.c_int64(given[i]) for i in (4, 5, 6)]
        x, y, z = (ctypes.c_int64(given[i]) for i in (9, 11, 14))
        return int(function(*words, ctypes.c_double(2.0), a, x, b, y, ctypes.c_double(0.0), c, z))

    assert call(RIGHT) == 0
    assert list(c) == [10.0] * 12 + [1.0] * 20
    for number, value in WRONG:
        assert call({**RIGHT, number: value}) == number
        assert call({**RIGHT, 14: -5, number: value}) == number
    assert list(c) == [10.0] * 12 + [1.0] * 20
    assert call({**RIGHT, 4: 0}) == call({**RIGHT, 6: 0}) == 0
    assert list(c) == [0.0] * 12 + [1.0] * 20


FEW = """
import sys, itertools, numpy as np, tensorop
library = tensorop.load(sys.argv[1])
rng = np.random.default_rng(3)
for real in (np.float32, np.float64):
    for few, long, k, beta in itertools.product((1, 2, 3, 4, 5), (31, 40, 300, 1100), (15, 16, 33), (0.0, 1.0, -0.5)):
        a, b = rng.standard_normal((k, long)).astype(real), rng.standard_normal((k, few)).astype(real)
        for left, right in ((a, b), (b, a)):
            first = rng.standard_normal((left.shape[1], right.shape[1] + 3)).astype(real)
            c = first.copy()
            if beta == 0:
                c[:, :-3] = np.nan
            library.gemm(left, right, c[:, :-3], beta=beta, transpose_a=True)
            wanted = left.T @ right + beta * first[:, :-3]
            assert np.abs(c[:, :-3] - wanted).max() < 200 * k * np.finfo(real).eps, (real, few, long, k, beta)
            assert (c[:, -3:] == first[:, -3:]).all()
"""


@pytest.mark.extended
@pytest.mark.parametrize("platform", ["avx2", "avx512"])
def test_it_is_right_for_few_rows_and_few_columns(platform: str, tmp_path: Path) -> None:
    """Beside a matrix with contiguous rows, where the transposed product may be computed."""
    if _lacks(platform):
        pytest.skip(f"this CPU cannot run {platform}")
    prefix = products.install(platform, tmp_path / "out", found=products.with_direct())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TENSOROP_VARIANT": "2"}
    done = subprocess.run([sys.executable, "-c", FEW, str(prefix)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
