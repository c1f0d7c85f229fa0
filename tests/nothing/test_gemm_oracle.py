"""gemm's oracle and bound: every honest order of summation passes, every deviation beyond rounding is found."""

from __future__ import annotations

import inspect
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorop.model.call import Access, Call, Placement
from tensorop.model.matrix import Matrix
from tensorop.model.number import NUMBERS
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind
from tensorop.model.verdict import Seed
from tests.support.operators import gemm

reference = gemm().reference

problems = st.builds(
    lambda dtype, m, n, k, **options: Problem.of("gemm", dtype, {"m": m, "n": n, "k": k}, options),
    st.sampled_from(["f32", "f64"]),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(0, 24),
    layout=st.sampled_from(["row", "col"]),
    ta=st.integers(0, 1),
    tb=st.integers(0, 1),
    alpha=st.sampled_from(["0", "1", "-1", "0.7", "3"]),
    beta=st.sampled_from(["0", "1", "-1", "-1.3", "2"]),
    lda_pad=st.integers(0, 3),
    ldb_pad=st.integers(0, 3),
    ldc_pad=st.integers(0, 3),
)
distributions = st.sampled_from(reference.DISTRIBUTIONS)
seeds = st.integers(0, 2**32).map(lambda public: Seed(public, 7))


def at(matrix: Matrix, storage: np.ndarray, i: int, j: int) -> np.floating:
    """An element by the textbook's index, not by Matrix.view."""
    outer, inner = (j, i) if matrix.transposed else (i, j)
    return storage[outer * matrix.ld + inner]


def honest(problem: Problem, call: Call, order: np.ndarray, blocks: int = 1) -> np.ndarray:
    """gemm in its own dtype, one rounding an operation, k in the given order, split over partial sums."""
    p = reference.product(problem)
    kind = NUMBERS[p.dtype].storage
    a, b, c = (buffer.data for buffer in call.buffers)
    out = c.copy()
    alpha, beta = kind(p.alpha), kind(p.beta)
    with np.errstate(all="ignore"):
        for i in range(p.m):
            for j in range(p.n):
                total = kind(0)
                if p.alpha != 0:
                    for part in np.array_split(order, blocks):
                        partial = kind(0)
                        for q in part:
                            partial = kind(partial + kind(at(p.a, a, i, q) * at(p.b, b, q, j)))
                        total = kind(total + partial)
                old = at(p.c, c, i, j)
                p.c.view(out)[i, j] = alpha * total if p.beta == 0 else kind(alpha * total) + kind(beta * old)
    return out


@settings(deadline=None, max_examples=60)
@given(problems, distributions, seeds, st.integers(1, 4))
def test_every_order_of_summation_passes(problem: Problem, distribution: str, seed: Seed, blocks: int) -> None:
    call = reference.call(problem, seed.stream(1), distribution)
    order = seed.stream(2).permutation(int(problem.dims["k"]))
    judged = reference.judge(problem, call, {"C": honest(problem, call, order, blocks)})
    assert judged.ok, judged.message
    assert judged.worst <= 1


@settings(deadline=None, max_examples=60)
@given(problems, st.sampled_from(["integer", "normal", "wide"]), seeds)
def test_an_error_beyond_the_bound_is_named_by_its_index(problem: Problem, distribution: str, seed: Seed) -> None:
    call = reference.call(problem, seed.stream(1), distribution)
    want, bound = reference.expected(problem, call)["C"]
    out = honest(problem, call, np.arange(int(problem.dims["k"])))
    p = reference.product(problem)
    i, j = int(seed.stream(3).integers(p.m)), int(seed.stream(4).integers(p.n))
    grown = np.abs(want[i, j]) * (1 + 8 * float(np.finfo(out.dtype).eps)) + 3 * bound[i, j]
    p.c.view(out)[i, j] = max(grown, float(np.finfo(out.dtype).tiny))
    judged = reference.judge(problem, call, {"C": out})
    assert judged.kind is Kind.WRONG
    assert f"C[{i},{j}]" in judged.message
    assert judged.worst > 1


@settings(deadline=None, max_examples=40)
@given(problems, st.sampled_from(["integer", "normal", "wide"]), seeds)
def test_the_oracle_is_right(problem: Problem, distribution: str, seed: Seed) -> None:
    """Against rational arithmetic: its error is a small part of what it allows others."""
    call = reference.call(problem, seed.stream(1), distribution)
    p = reference.product(problem)
    want, bound = reference.expected(problem, call)["C"]
    a, b, c = (buffer.data for buffer in call.buffers)
    for i in range(p.m):
        for j in range(p.n):
            exact = Fraction(0)
            if p.alpha != 0:
                products = (Fraction(float(at(p.a, a, i, q))) * Fraction(float(at(p.b, b, q, j))) for q in range(p.k))
                exact = Fraction(p.alpha) * sum(products, Fraction(0))
            if p.beta != 0:
                exact += Fraction(p.beta) * Fraction(float(at(p.c, c, i, j)))
            got = sum((Fraction(float(part)) for part in _parts(want[i, j])), Fraction(0))
            assert abs(got - exact) <= Fraction(float(bound[i, j])) / 256


def _parts(x: np.floating) -> tuple[float, float]:
    """A long double as two doubles, without loss."""
    high = float(x)
    return high, float(x - type(x)(high))


@settings(deadline=None, max_examples=40)
@given(problems, distributions, seeds)
def test_a_gap_written_is_found_whatever_the_bits(problem: Problem, distribution: str, seed: Seed) -> None:
    p = reference.product(problem)
    call = reference.call(problem, seed.stream(1), distribution)
    out = honest(problem, call, np.arange(p.k))
    gap = np.ones(out.size, bool)
    p.c.view(gap)[...] = False
    places = np.flatnonzero(gap)
    if not places.size:
        return
    bits = out.view(f"u{out.itemsize}")
    bits[seed.stream(5).choice(places)] ^= 1
    assert "gap" in reference.judge(problem, call, {"C": out}).message


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_what_is_not_read_is_poisoned(dtype: str) -> None:
    call = reference.call(_problem(dtype, alpha="0", beta="0"), Seed(1, 2).stream(0))
    assert [bool(np.isnan(buffer.data).all()) for buffer in call.buffers] == [True] * 3
    call = reference.call(_problem(dtype, lda_pad=3), Seed(1, 2).stream(0))
    assert np.isnan(call.buffers[0].data).sum() == 2 * 3  # none after the last of three lines
    assert [b.access for b in call.buffers] == [Access.IN, Access.IN, Access.INOUT]
    with_workspace = reference.call(_problem(dtype), Seed(1, 2).stream(0), workspace=10)
    assert with_workspace.buffers[3].access is Access.SCRATCH
    assert np.isnan(with_workspace.buffers[3].data).sum() == 10


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_go_through(dtype: str, value: float) -> None:
    problem = _problem(dtype, beta="1")
    call = reference.call(problem, Seed(1, 2).stream(0), "normal")
    call.buffers[2].data[7] = value
    out = honest(problem, call, np.arange(5))
    assert reference.judge(problem, call, {"C": out}).ok
    out[7] = 0
    assert reference.judge(problem, call, {"C": out}).worst == np.inf


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_whole_numbers_must_come_out_exactly(dtype: str) -> None:
    problem = _problem(dtype, alpha="3", beta="-2")
    call = reference.call(problem, Seed(1, 2).stream(0), "integer")
    out = honest(problem, call, np.arange(5))
    assert reference.judge(problem, call, {"C": out}).worst == 0
    out[0] = np.nextafter(out[0], np.inf, dtype=out.dtype)
    assert reference.judge(problem, call, {"C": out}).worst == np.inf


@pytest.mark.parametrize("distribution", reference.DISTRIBUTIONS)
def test_the_result_depends_on_every_input_row_and_on_the_seed(distribution: str) -> None:
    """A constant, a stale or a remembered output cannot pass."""
    problem = _problem("f64", m=6, n=7)
    results = []
    for public in (1, 2):
        call = reference.call(problem, Seed(public, 3).stream(0), distribution)
        results.append(np.nan_to_num(reference.expected(problem, call)["C"][0].astype(float), nan=1e300))
    assert len(np.unique(results[0], axis=0)) == 6
    assert len(np.unique(results[0], axis=1).T) == 7
    assert not np.array_equal(results[0], results[1])


def test_cancellation_and_scales() -> None:
    problem = _problem("f32", m=20, n=20, k=40)
    call = reference.call(problem, Seed(1, 2).stream(0), "wide", Placement.START)
    want, bound = reference.expected(problem, call)["C"]
    gamma = 42 * 2.0**-24
    assert np.median(np.abs(want) / (bound / gamma)) < 0.05  # the sums are far smaller than what was summed
    assert np.abs(want).max() / np.abs(want).min() > 2.0**40
    assert np.isfinite(want.astype(np.float32)).all()
    assert call.placement is Placement.START


def test_work_and_traffic() -> None:
    assert reference.work(_problem("f32")) == 2 * 3 * 4 * 5
    assert reference.traffic(_problem("f32", beta="0")) == 4 * (3 * 5 + 5 * 4 + 3 * 4)
    assert reference.traffic(_problem("f64", beta="1")) == 8 * (3 * 5 + 5 * 4 + 2 * 3 * 4)


def test_an_output_that_did_not_come_back_is_wrong() -> None:
    problem = _problem("f32")
    call = reference.call(problem, Seed(1, 2).stream(0))
    assert reference.judge(problem, call, {}).kind is Kind.WRONG
    assert reference.judge(problem, call, {"C": call.buffers[2].data[:-1]}).kind is Kind.WRONG


def test_a_bad_layout_is_refused() -> None:
    with pytest.raises(ValueError, match="layout is one of col, row, not 'diagonal'"):
        reference.known(_problem("f32", layout="diagonal"))


def _problem(dtype: str, m: int = 3, n: int = 4, k: int = 5, **options: int | str) -> Problem:
    return Problem.of("gemm", dtype, {"m": m, "n": n, "k": k}, {"layout": "row", **options})


def test_one_oracle_judges_many_outputs() -> None:
    problem = _problem("f64", m=9, layout="col")
    call = reference.call(problem, Seed(1, 2).stream(0), "integer")
    limits = reference.limits(problem, call)
    out = honest(problem, call, np.arange(5))
    assert reference.judge(problem, call, {"C": out}, within=limits).ok
    out[4] += 1  # C[4,0]
    judged = reference.judge(problem, call, {"C": out}, within=limits)
    assert "C[4,0]" in judged.message
    assert "1 of 36 elements" in judged.message


def test_large_f64_products_are_as_sharply_judged(monkeypatch) -> None:
    """By blocks the oracle is off by less than it says, and its bound is little wider than the slow one's."""
    problem = _problem("f64", m=20, n=30, k=700)
    call = reference.call(problem, Seed(1, 2).stream(0), "normal")
    slow, narrow = reference.expected(problem, call)["C"]
    own = inspect.unwrap(type(reference).expected).__globals__["oracle"]
    monkeypatch.setitem(own.__globals__, "MUCH", 0)
    quick, wide = reference.expected(problem, call)["C"]
    assert (quick != slow).any()
    assert (np.abs(quick - slow) <= wide - narrow).all()
    assert (wide < 1.05 * narrow).all()


def test_workspace_is_for_the_product_that_is_computed() -> None:
    point = {"mc": 32, "kc": 16, "nc": 24}
    small = reference.workspace(_problem("f32", m=5, n=7, k=9, layout="col"), point, lanes=4)
    assert small == 128 + 64 + 64  # 8 x 9 and 7 x 9, each rounded up to 64, and room to align
    assert reference.workspace(_problem("f32", m=7, n=5, k=9, layout="row"), point, lanes=4) == small
    large = reference.workspace(_problem("f32", m=500, n=700, k=900, layout="col"), point, lanes=4)
    assert large == 32 * 16 + 24 * 16 + 64


@pytest.mark.parametrize("dtype", gemm().dtypes)
def test_limits_admit_what_the_judge_admits(dtype):
    """The oracle's own result, and both ends of its bound; not what lies a little beyond."""
    problem = _problem(dtype, m=7, n=5, k=40, layout="row")
    given = reference.call(problem, Seed(1, 2).stream(0))
    limits = reference.limits(problem, given)
    least, most = limits["C"]
    p = reference.product(problem)

    def outputs(c):
        after = given.buffers[2].data.copy()
        p.c.view(after)[...] = c
        return {"C": after}

    for c in (least, most):
        assert reference.judge(problem, given, outputs(c)).ok
        assert reference.judge(problem, given, outputs(c), within=limits).ok
    one = c.dtype.type(1)
    beyond = most + one if p.accumulator.whole else np.nextafter(most, np.inf, dtype=most.dtype)
    wrong = least.copy()
    wrong[3, 2] = beyond[3, 2]
    assert not reference.judge(problem, given, outputs(wrong)).ok
    assert not reference.judge(problem, given, outputs(wrong), within=limits).ok
    wrong[3, 2] = 0 if p.accumulator.whole else np.nan
    assert not reference.judge(problem, given, outputs(wrong), within=limits).ok
    special = reference.call(problem, Seed(1, 2).stream(0), "special")
    want = reference.expected(problem, special)["C"][0]
    assert reference.judge(problem, special, outputs(want), within=reference.limits(problem, special)).ok
    assert p.accumulator.whole or np.isnan(want).any()


@pytest.mark.parametrize("dtype", gemm().dtypes)
def test_second_operands_have_a_product_of_their_own(dtype):
    """Not the first one's rows and columns in other places: all of it must be computed anew."""
    for m, n, k in ((8, 8, 8), (40, 127, 127), (128, 64, 100), (9, 2000, 33)):
        for layout, ta, tb in itertools.product(("row", "col"), (0, 1), (0, 1)):
            problem = _problem(dtype, m=m, n=n, k=k, layout=layout, ta=ta, tb=tb)
            given = reference.call(problem, Seed(1, 2).stream(0))
            both = reference.alternated(problem, given, Seed(1, 2).stream(1))
            assert [b.data.tobytes() for b in both.operands(False).buffers] == [b.data.tobytes() for b in given.buffers]
            assert sum(b.data.nbytes for b in both.buffers) <= 1.25 * sum(b.data.nbytes for b in given.buffers) + 9000
            first, second = (reference.expected(problem, both.operands(which))["C"][0] for which in (False, True))
            known = np.sort(first.ravel())
            at = np.searchsorted(known, second.ravel()).clip(1, known.size - 1)
            near = np.minimum(abs(known[at] - second.ravel()), abs(known[at - 1] - second.ravel()))
            assert np.mean(near <= 1e-12 * abs(second).max()) < 0.2, (m, n, k, layout, ta, tb)
    for k, m in itertools.product(range(1, 70), (1, 5, 70)):  # lines that are short beside one of the cache
        problem = _problem(dtype, m=m, n=700, k=k, layout="row", tb=1)
        given = reference.call(problem, Seed(1, 2).stream(0))
        shifts = [b.shift for b in reference.alternated(problem, given, Seed(1, 2).stream(1)).buffers]
        assert all(shifts[:2])
    accumulating = _problem(dtype, m=8, n=8, k=8, layout="row", beta=1)
    given = reference.call(accumulating, Seed(1, 2).stream(0))
    assert reference.alternated(accumulating, given, Seed(1, 2).stream(1)) is given


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_operands_rounded_on_the_way_are_seen_however_long_the_sum(dtype):
    """An error that the bound would admit is none that exact inputs allow."""
    problem = _problem(dtype, m=3, n=4, k=2300, layout="col")
    p = reference.product(problem)
    for seed in range(4):
        given = reference.call(problem, Seed(1, seed).stream(0), "exact")
        a, b, _ = (x.view(buffer.data) for x, buffer in zip((p.a, p.b, p.c), given.buffers, strict=True))

        def judged(a, b, given=given):
            after = given.buffers[2].data.copy()
            p.c.view(after)[...] = np.einsum("ik,kj->ij", a.astype(np.float64), b.astype(np.float64))
            return reference.judge(problem, given, {"C": after}).ok

        assert judged(a, b)
        assert not judged(_coarse(a), _coarse(b))


def _coarse(x, bits=11):
    """Numbers with so many bits."""
    fraction, exponent = np.frexp(x.astype(np.float64))
    return np.ldexp(np.trunc(fraction * 2**bits) / 2**bits, exponent)


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "bf16"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 2, 5), (7, 9, 4)])
def test_a_counted_call_begins_with_part_of_the_result(dtype, shape):
    """Its first and last element and some more are right, others are not, whatever the operands."""
    problem = _problem(dtype, **dict(zip("mnk", shape, strict=True)))
    given = reference.call(problem, Seed(1, 2).stream(0), "integer")
    counted = reference.counted(problem, given, Seed(1, 2).stream(1))
    assert counted.buffers[:2] == given.buffers[:2]
    p = reference.product(problem)
    start = p.accumulator.decoded(p.c.view(counted.buffers[2].data)).astype(float)
    right = start == reference.expected(problem, given)["C"][0].astype(float)
    assert not right.all()
    assert right.size == 1 or right[0, 0] or right[-1, -1]
    assert right.size < 3 or (right[0, 0] and right[-1, -1])


def test_a_call_that_reads_c_is_counted_as_it_is():
    problem = _problem("f32", m=3, n=4, k=5, beta=2)
    given = reference.call(problem, Seed(1, 2).stream(0))
    assert reference.counted(problem, given, Seed(1, 2).stream(1)) is given
