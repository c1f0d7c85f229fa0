"""The table of BLAS routines against netlib's reference: names, arguments, and the numbers of wrong arguments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tensorop.blas import grid, routines
from tensorop.blas.contract import RoutineContract
from tensorop.blas.routines import BlasInterface, Role
from tensorop.errors import UsageError

# From the argument checks of netlib's Fortran sources: routine -> number of arguments, and INFO of each wrong one.
NETLIB = {
    "dgemm": (13, "transa 1 transb 2 m 3 n 4 k 5 lda 8 ldb 10 ldc 13"),
    "dgemmtr": (13, "uplo 1 transa 2 transb 3 n 4 k 5 lda 8 ldb 10 ldc 13"),
    "dsymm": (12, "side 1 uplo 2 m 3 n 4 lda 7 ldb 9 ldc 12"),
    "zhemm": (12, "side 1 uplo 2 m 3 n 4 lda 7 ldb 9 ldc 12"),
    "dsyrk": (10, "uplo 1 trans 2 n 3 k 4 lda 7 ldc 10"),
    "cherk": (10, "uplo 1 trans 2 n 3 k 4 lda 7 ldc 10"),
    "ssyr2k": (12, "uplo 1 trans 2 n 3 k 4 lda 7 ldb 9 ldc 12"),
    "zher2k": (12, "uplo 1 trans 2 n 3 k 4 lda 7 ldb 9 ldc 12"),
    "dtrmm": (11, "side 1 uplo 2 transa 3 diag 4 m 5 n 6 lda 9 ldb 11"),
    "ctrsm": (11, "side 1 uplo 2 transa 3 diag 4 m 5 n 6 lda 9 ldb 11"),
    "dgemv": (11, "trans 1 m 2 n 3 lda 6 incx 8 incy 11"),
    "dgbmv": (13, "trans 1 m 2 n 3 kl 4 ku 5 lda 8 incx 10 incy 13"),
    "dsymv": (10, "uplo 1 n 2 lda 5 incx 7 incy 10"),
    "zhbmv": (11, "uplo 1 n 2 k 3 lda 6 incx 8 incy 11"),
    "dspmv": (9, "uplo 1 n 2 incx 6 incy 9"),
    "dtrmv": (8, "uplo 1 trans 2 diag 3 n 4 lda 6 incx 8"),
    "dtbsv": (9, "uplo 1 trans 2 diag 3 n 4 k 5 lda 7 incx 9"),
    "ctpsv": (7, "uplo 1 trans 2 diag 3 n 4 incx 7"),
    "dger": (9, "m 1 n 2 incx 5 incy 7 lda 9"),
    "dsyr": (7, "uplo 1 n 2 incx 5 lda 7"),
    "chpr": (6, "uplo 1 n 2 incx 5"),
    "dsyr2": (9, "uplo 1 n 2 incx 5 incy 7 lda 9"),
    "zhpr2": (8, "uplo 1 n 2 incx 5 incy 7"),
}  # fmt: skip
# The reference BLAS has so many functions of each type, without s/dcabs1; scnrm2 and the like count for c and z.
FUNCTIONS = {"s": 38, "d": 36, "c": 40, "z": 40}  # and gemmt, which other libraries have
CHECKED = (Role.FLAG, Role.SIZE, Role.LEADING, Role.INCREMENT)


@pytest.mark.parametrize("name", NETLIB)
def test_arguments_have_the_numbers_of_netlib(name: str) -> None:
    routine, _ = routines.functions()[name]
    count, numbers = NETLIB[name]
    assert len(routine.arguments) == count
    assert " ".join(f"{one.name} {routine.number(one.name)}" for one in routine.of_role(*CHECKED)) == numbers


def test_every_function_of_the_reference_is_there() -> None:
    assert {t: len(routines.functions(t)) for t in routines.TYPES} == FUNCTIONS


def test_an_argument_belongs_to_an_operand() -> None:
    for routine in routines.routines().values():
        names = {one.name for one in routine.of_role(Role.OPERAND)}
        assert names == set(routine.operands)
        assert {one.of for one in routine.arguments if one.of} <= names
        for operand in routine.operands.values():
            values = {"m": 2, "n": 3, "k": 4, **dict.fromkeys(routine.flags("d"), "N")}
            assert len(operand.shape(values, routine.flags("d"))) == {"matrix": 2}.get(operand.kind, 1)


@pytest.mark.parametrize(
    ("name", "interface", "prototype"),
    [
        (
            "dtrsv",
            BlasInterface(True, suffix=""),
            "void cblas_dtrsv(int layout, int uplo, int trans, int diag, int32_t n, const double *a, int32_t lda, "
            "double *x, int32_t incx);",
        ),
        ("cdotc", BlasInterface(True, "scipy_", "64_", True),
         "void scipy_cblas_cdotc_sub64_(int64_t n, const void *x, int64_t incx, const void *y, int64_t incy, "
         "void *result);"),
        ("zdotc", BlasInterface(False), "double _Complex zdotc_(const int32_t *n, const void *x, const int32_t *incx, "
         "const void *y, const int32_t *incy);"),
        ("icamax", BlasInterface(True, suffix=""), "size_t cblas_icamax(int32_t n, const void *x, int32_t incx);"),
        ("cher", BlasInterface(False, suffix="_64_", wide=True),
         "void cher_64_(const char *uplo, const int64_t *n, const float *alpha, const void *x, const int64_t *incx, "
         "void *a, const int64_t *lda);"),
    ],
)  # fmt: skip
def test_prototypes(name: str, interface: BlasInterface, prototype: str) -> None:
    assert interface.prototype(*routines.functions()[name]) == prototype


def test_names_choose_functions() -> None:
    def names(text: str, types: str) -> list[str]:
        return [routine.function(dtype) for routine, dtype in routines.chosen(text, types)]

    assert names("syrk,dtrsm", "sd") == ["ssyrk", "dsyrk", "dtrsm"]
    with pytest.raises(UsageError, match="syrk"):
        routines.chosen("syrx", "sd")
    with pytest.raises(UsageError, match="herk has the types c,z"):
        routines.chosen("herk", "sd")


COMPARED = ("gemmtr", "gemmt", "symm", "syrk", "syr2k", "trmm", "trsm", "gemv", "ger")


@pytest.mark.parametrize("name", COMPARED)
def test_a_compared_call_is_judged_by_every_element(name: str) -> None:
    """Of each layout: the expected outputs pass, one that is off does not, nor one that should stay as it was."""
    reference = RoutineContract.of(routines.routines()[name])
    sizes = dict(zip(reference.shapes.dims, (5, 4), strict=True))
    for letters in itertools.product(*reference.flags.values()):
        problem = reference.problem("f64", sizes, dict(zip(reference.flags, letters, strict=True)))
        call = reference.alternated(
            problem, reference.call(problem, np.random.default_rng(1)), np.random.default_rng(2)
        )
        for second in (False, True):
            given = call.operands(second)
            ((output, (want, bound)),) = reference.expected(problem, given).items()
            before = next(one.data for one in given.buffers if one.name == output)
            right = reference.stored(problem, output, want, before)
            assert reference.judge(problem, given, {output: right}).ok
            for place in np.ndindex(want.shape):
                wrong = want.copy()
                wrong[place] = 3.0 if np.isnan(want[place]) else want[place] + max(1e-9, 2 * bound[place])
                outputs = {output: reference.stored(problem, output, wrong, before)}
                assert not reference.judge(problem, given, outputs).ok, (letters, place)
    assert reference.work(problem) > 0
    assert reference.traffic(problem) > 0


def test_a_compared_call_has_the_meaning_of_the_routine() -> None:
    """By other formulas, where flags change most."""
    reference = RoutineContract.of(routines.routines()["trsm"])
    options = {"layout": "row", "side": "R", "uplo": "U", "transa": "T", "diag": "U"}
    problem = reference.problem("f64", {"m": 3, "n": 4}, options)
    call = reference.call(problem, np.random.default_rng(1))
    values = reference.values(problem, call)
    upper = np.triu(values["a"], 1) + np.eye(4)
    found, _ = reference.expected(problem, call)["b"]
    assert np.allclose(found @ upper.T, values["b"])
    assert reference.work(problem) == 3 * 4 * 4
    assert reference.recorded("dtrsm", {**options, "m": "3", "n": "4"}) == problem
    assert reference.recorded("dgemm", {}) is None


@pytest.mark.parametrize("function", ["strmv", "dtbsv", "ctpsv", "dtrsm", "zgbmv"])
def test_a_special_element_has_a_place_with_every_seed(function: str) -> None:
    """A unit triangle of one row has no element that may be read."""
    ((routine, dtype),) = routines.chosen(function, "sdcz")
    drawn = (case for seed in range(12) for case in grid.cases(routine, dtype, ("col",), seed, 0))
    specials = [(case, name) for case in drawn if not case.wrong for name in case.special]
    assert specials
    assert all(case.places[name].mask.any() for case, name in specials)
