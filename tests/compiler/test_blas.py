"""The product of `tensorop blas`: its routines before the judge, by each interface; wrong ones are found."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorop
from tensorop.blas import binding, recorder
from tensorop.blas.routines import functions
from tensorop.package import card
from tensorop.toolchain import shared_library, tool
from tests.support import commands, products
from tests.support.judged_blas import ROUTINES, judged, texts, wide

EVERY = ",".join(ROUTINES)
pytestmark = pytest.mark.filterwarnings("ignore:.*is not verified:UserWarning")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A product for any x86-64 CPU."""
    return products.install("generic", tmp_path_factory.mktemp("product") / "blas", operator="blas")


@pytest.fixture(scope="module")
def library(prefix: Path) -> Path:
    """Its standard names."""
    return prefix / "lib/libtensorop_cblas.so"


def test_each_routine_has_all_of_its_names(prefix: Path, library: Path) -> None:
    names = [letter + name for letter in "sd" for name in ROUTINES]
    standard = {one.symbol(*functions()[name]) for one in recorder.INTERFACES for name in names}
    assert shared_library.facts(library).exports == standard
    exports = shared_library.facts(prefix / "lib/libtensorop_blas.so").exports
    assert {f"tensorop_{name}" for name in names} < exports
    assert {*card.read_card(prefix / "lib/libtensorop_blas.so")["routines"]} == {*ROUTINES}


@pytest.mark.covers("dtype blas/*")
@pytest.mark.parametrize("names", ["dtrsm", pytest.param(EVERY, marks=pytest.mark.extended)])
def test_the_judge_finds_nothing(names: str, library: Path) -> None:
    found = judged(binding.find(library), names, threads=2 if names == EVERY else 1)
    assert not texts(found)
    every = {letter + name for letter in "sd" for name in ROUTINES}
    assert {one.function for one in found.functions} == (every if names == EVERY else {*names.split(",")})


@pytest.mark.parametrize("names", ["sger", pytest.param("gemm,syrk,trsm,gemv", marks=pytest.mark.extended)])
def test_the_judge_finds_nothing_by_names_with_64_bit_integers(names: str, library: Path) -> None:
    assert not texts(judged(wide(library), names))


@pytest.mark.parametrize("names", ["dsymm", pytest.param("gemmtr,symm,syr2k,trmm,ger", marks=pytest.mark.extended)])
def test_cblas_reports_the_numbers_of_wrong_arguments(names: str, library: Path) -> None:
    assert not texts(judged(replace(binding.find(library), fortran=None), names))


# A file of the product, what is changed in it, and a function that is wrong then.
MUTANTS = {
    "the other half is written": ("diagonal_f64_tuned.c", "upper ? j + 1 : n", "n", "dsyrk"),
    "beta counts for each block": ("symmetric_f64.c", "kept = p ? 1 : beta", "kept = beta", "dsymm"),
    "the other half is read": ("triangular_f64.c", "upper == across", "upper != across", "dtrsm"),
    "a product has no diagonal": ("diagonal_f64_tuned.c", "t->lower ? p + unit : 0", "t->lower ? p + 1 : 0", "dtrmm"),
    "solutions are added": ("triangular_f64.c", "of_needed, -1, across", "of_needed, 1, across", "dtrsm"),
    "steps below 0 are not taken": ("vector_f64.c", "i * -(size_t)increment", "i", "dgemv"),
    "a leading dimension is not checked": ("blas_f64.c", "trans == TENSOROP_NO_TRANS ? n : k", "1", "dsyrk"),
}


@pytest.mark.one_in(7)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_routine_is_found(name: str, prefix: Path, tmp_path: Path) -> None:
    file, old, new, function = MUTANTS[name]
    source = prefix / "share/tensorop/src"
    text = (source / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new))
    path = tmp_path / "libwrong.so"
    flags = ("-O2", "-shared", "-fPIC", "-w", "-I", str(source), "-I", str(source / "include"))
    files = (str(tmp_path / file), str(source / "cblas.c"), str(prefix / "lib/libtensorop_blas.a"))
    argv = tool.cc(*flags, *files, "-lpthread", "-ldl", "-lm", "-o", str(path))
    subprocess.run(argv, check=True, cwd=tmp_path)
    assert {one.function for one in judged(binding.find(path), function).findings} == {function}


PROGRAM = """
#include <stdio.h>
#include <tensorop/blas.h>
#include <tensorop/cblas.h>

void dger_64_(const int64_t *, const int64_t *, const double *, const double *, const int64_t *, const double *,
              const int64_t *, double *, const int64_t *);

int main(void) {
    double a[] = {2, 1, 0, 4}, x[] = {2, 9}, c[4] = {0, 0, 0, 0}, one = 1;
    const int64_t two = 2, step = 1;
    int wrong = tensorop_dtrsm(TENSOROP_COL_MAJOR, TENSOROP_LEFT, TENSOROP_LOWER, TENSOROP_NO_TRANS,
                               TENSOROP_NON_UNIT, 2, 1, 1, a, 1, x, 2);
    wrong += 100 * tensorop_dtrsm(TENSOROP_COL_MAJOR, TENSOROP_LEFT, TENSOROP_LOWER, TENSOROP_NO_TRANS,
                                  TENSOROP_NON_UNIT, 2, 1, 1, a, 2, x, 2);
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasNoTrans, 2, 2, 1, a, 2, 0, c, 2);
    dger_64_(&two, &two, &one, x, &step, x, &step, c, &two);
    printf("%d: %g %g: %g %g %g %g\\n", wrong, x[0], x[1], c[0], c[1], c[2], c[3]);
    return 0;
}
"""


def test_a_program_calls_each_interface(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(PROGRAM)
    flags = ("-I", str(prefix / "include"), "-L", str(prefix / "lib"), f"-Wl,-rpath,{prefix}/lib")
    argv = tool.cc(*flags, "main.c", "-ltensorop_cblas", "-ltensorop_blas", "-o", "main")
    subprocess.run(argv, check=True, cwd=tmp_path)
    ran = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True)
    assert ran.stdout == "10: 1 2: 6 6 2 20\n"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_routines_are_called_from_python_without_a_copy(dtype: type[Any], prefix: Path) -> None:
    library, rng = tensorop.load(prefix), np.random.default_rng(3)
    for order, right, lower, transpose in itertools.product("CF", *3 * [(False, True)]):

        def made(*shape: int, order: str = order) -> Any:
            return np.array(rng.normal(size=shape), dtype, order=order)  # type: ignore[call-overload]

        a = made(9, 9, order="C" if lower else "F") / 20 + np.eye(9, dtype=dtype)
        one, two, x = made(9, 5), made(9, 5), made(5)
        _triangular(library, a, two.T.copy(order) if right else two, right, lower, transpose)
        _triangle(library, one, two, made(9, 9), lower, transpose)
        y = np.zeros(18, dtype)[::-2]
        library.gemv(one.T if transpose else one, x[::-1], y, transpose=transpose)
        assert np.allclose(y, one @ x[::-1], atol=1e-4)
        assert np.allclose(library.ger(y, x[::-1], one.copy("K")), one + np.outer(y, x[::-1]), atol=1e-4)
        assert np.allclose(library.gemm(one, two, transpose_b=True), one @ two.T, atol=1e-4)


def _triangular(library: tensorop.Library, a: Any, b: Any, right: bool, lower: bool, transpose: bool) -> None:
    half = np.tril(a) if lower else np.triu(a)
    op, x = half.T if transpose else half, b.copy("K")
    assert library.trsm(a, x, alpha=2, lower=lower, right=right, transpose=transpose) is x
    assert np.allclose(x @ op if right else op @ x, 2 * b, atol=1e-4)
    library.trmm(a, x, lower=lower, right=right, transpose=transpose)
    assert np.allclose(x, 2 * b, atol=1e-4)
    whole = half + half.T - np.diag(np.diag(half))
    product = library.symm(a, b, lower=lower, right=right)
    assert np.allclose(product, b @ whole if right else whole @ b, atol=1e-4)


def _triangle(library: tensorop.Library, a: Any, b: Any, c: Any, lower: bool, transpose: bool) -> None:
    half, x, y = np.tril if lower else np.triu, a.T if transpose else a, b.T if transpose else b
    how = {"beta": 1, "lower": lower}
    made = [c.copy("K") for _ in range(3)]
    assert library.syrk(x, made[0], transpose=transpose, **how) is made[0]
    library.syr2k(x, y, made[1], transpose=transpose, **how)
    library.gemmtr(x, b, made[2], transpose_a=transpose, transpose_b=True, **how)
    for got, product in zip(made, (a @ a.T, a @ b.T + b @ a.T, a @ b.T), strict=True):
        assert np.allclose(got, c + half(product), atol=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda of: of.syrk(np.ones((2, 3)), beta=1), "beta is not 0, so c must be given"),
        (lambda of: of.syrk(np.ones((2, 3)), np.ones((3, 3))), "c must be an array"),
        (lambda of: of.trsm(np.ones((2, 2)), np.ones((3, 2))), "they do not fit"),
        (lambda of: of.trsm(np.ones((2, 2)), np.ones((2, 2), np.float32)), "b is float32, expected as a"),
        (lambda of: of.gemv(np.ones((2, 2)), np.ones((2, 2))), "x has 2 dimensions, expected 1"),
        (lambda of: of.trmm(np.ones((2, 2)), np.ones((2, 8))[:, ::4]), "b must be an array with contiguous"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_arguments_from_python(call: Callable[[tensorop.Library], object], message: str, prefix: Path) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call(tensorop.load(prefix))


WHEELS = """
import numpy as np
from scipy.linalg import blas
a = np.ones((30, 40))
print((a @ a[:20].T).sum(), (a.T @ a).sum(), blas.dtrsm(1.0, 2 * np.eye(3), np.ones((3, 2))).sum())
print((a.astype(complex) @ a.T.astype(complex)).sum().real, np.linalg.solve(np.eye(3), np.ones(3)).sum())
"""


@pytest.mark.covers("command preload")
def test_programs_of_wheels_are_preloaded(prefix: Path, library: Path, tmp_path: Path) -> None:
    """NumPy's names have integers of 64 bits, SciPy's of 32; LAPACK of a wheel is not served."""
    words = [sys.executable, "-m", "tensorop.preload", str(prefix), "--", sys.executable, "-c", WHEELS]
    env = commands.environment({"TENSOROP_VERBOSE": "1"})
    ran = subprocess.run(words, cwd=tmp_path, env=env, check=True, capture_output=True, text=True)
    assert ran.stdout == "24000.0 48000.0 3.0\n36000.0 3.0\n"
    if "scipy" not in np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]:
        pytest.skip("this NumPy is not from a wheel")
    assert "tensorop: dgemm 20x30x40" in ran.stderr
    assert re.search(rf"^3 of \d+ calls of BLAS were served by {library}$", ran.stderr, re.MULTILINE), ran.stderr
    # NumPy makes calls of level 1 too
    assert re.search(r"^served by another BLAS: .*\bzgemm 1\nLAPACK in the BLAS of a wheel", ran.stderr, re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pass", "served no call of BLAS: the program made none by a name that it has; docs/how-to/replace-blas.md"),
        ("import numpy as np; a = np.ones((9, 9), complex); a @ a", "served no call of BLAS: another BLAS served "),
    ],
)
def test_a_program_without_a_served_call_fails(text: str, message: str, prefix: Path, tmp_path: Path) -> None:
    ended = commands.tensorop("preload", prefix, "--", sys.executable, "-c", text, cwd=tmp_path)
    assert (ended.status, ended.stdout) == (1, "")
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.extended
def test_a_program_of_another_machine_is_not_preloaded(prefix: Path, tmp_path: Path) -> None:
    assert "preload needs -- PROGRAM" in commands.refused("preload", prefix, cwd=tmp_path)
    assert "there is no program 'no-such'" in commands.refused("preload", prefix, "--", "no-such", cwd=tmp_path)
    (tmp_path / "a b").symlink_to(prefix)
    assert "has a colon or a space" in commands.refused("preload", "a b", "--", "true", cwd=tmp_path)
    made = products.install("rvv", tmp_path / "rvv", ("f32",))
    assert "is for riscv64, and this machine is" in commands.refused("preload", made, "--", "true", cwd=tmp_path)


@pytest.mark.parametrize("names", ["dtrsm,syrk", pytest.param(EVERY, marks=pytest.mark.extended)])
def test_routines_are_compared_with_openblas(names: str, prefix: Path, tmp_path: Path) -> None:
    """Our results are right after timed calls too; OpenBLAS has all of the names."""
    words = ("bench", prefix, "--routines", names.replace("gemm,", ""), "--shapes", "17x9", "--fast")
    found = commands.tensorop(*words, "--against", "openblas", "--format", "json", cwd=tmp_path).json()
    assert {(row["op"], row["dtype"]) for row in found["results"]} >= {("syrk", "f32"), ("trsm", "f64")}
    assert all(row["verdict"] == {"ours": "ok", "openblas": "ok"} for row in found["results"]), found


def test_explain_shows_the_products_of_a_routine(prefix: Path, tmp_path: Path) -> None:
    """Three blocks of 32 rows lie on the diagonal of C, and three below it."""
    words = ("explain", prefix, "96x8", "--routines", "dsyrk")
    (found,) = commands.tensorop(*words, "--format", "json", cwd=tmp_path).json()
    assert (found["routine"], found["threads"]) == ("syrk", 1)
    made = {one["shape"]: (one["count"], one["variant"]) for one in found["products"]}
    assert made == {"32x32x8": (3 + 3, 1)}
    shown = commands.tensorop(*words, cwd=tmp_path)
    assert shown.stdout.startswith("syrk 96x8 f64 col,trans=N,uplo=L: 6 products\n  6 of 32x32x8 by variant 1: outer")


def test_routines_are_verified_by_the_judge(prefix: Path, tmp_path: Path) -> None:
    ended = commands.tensorop("verify", prefix, "--routines", "dger", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    assert "1 functions, seed 0: no fault was found" in ended.stdout
    assert "did you mean" in commands.refused("verify", prefix, "--routines", "dsyr", cwd=tmp_path)
    of_gemm = products.install("generic", tmp_path / "gemm")
    assert "has one" in commands.refused("bench", of_gemm, "--routines", "dgemm", cwd=tmp_path)


def test_types_without_a_routine_are_refused(tmp_path: Path) -> None:
    assert "unknown dtype of blas 'i8'" in commands.refused("blas", "--dtype", "i8", cwd=tmp_path)


@pytest.mark.extended
def test_a_job_judges_its_routines_before_it_publishes_them(tmp_path: Path) -> None:
    words = ("blas", "--no-search", "--platform", "native", "--dtype", "f64", "--shapes", "16x16x16", "--out", "out")
    ran = commands.tensorop(*words, cwd=tmp_path)
    assert "10 routines passed the judge" in ran.stderr
    assert (tmp_path / "out/include/tensorop/blas.h").is_file()
    page = (tmp_path / "out/share/tensorop/report.html").read_text()
    assert '<tr><td>gemmt</td><td class="w">products beside the diagonal of C</td></tr>' in page


@pytest.mark.extended
def test_a_search_measures_the_tunables_of_routines(tmp_path: Path) -> None:
    words = ("blas", "--trials", "1", "--platform", "native", "--dtype", "f64", "--shapes", "16x16x16", "--out", "out")
    assert "f64: trmm_rows" in commands.tensorop(*words, cwd=tmp_path).stderr
    found = card.read_card(tmp_path / "out/lib/libtensorop_blas.so")["dtypes"]["f64"]["of_routines"]
    text = (tmp_path / "out/share/tensorop/src/triangular_f64.c").read_text()
    assert f"t->solves ? {found['trsm_rows']} : {found['trmm_rows']};" in text
    assert f" trmm_rows={found['trmm_rows']} trsm_rows" in commands.tensorop("inspect", "out", cwd=tmp_path).stdout
