"""The numbers meanings are evaluated in: no rounding on the way, one at the end, IEEE 754's special cases."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorop.commands.exact_number import Exact

doubles = st.floats(width=64)
finite = st.floats(width=64, allow_nan=False, allow_infinity=False)
singles = st.floats(width=32)


def same(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


@given(doubles)
def test_a_double_comes_back(x: float) -> None:
    assert same(Exact.of(x).rounded("f64"), x)


@given(doubles, doubles)
def test_one_operation_is_the_processors(x: float, y: float) -> None:
    a, b = Exact.of(x), Exact.of(y)
    with np.errstate(all="ignore"):
        assert same((a + b).rounded("f64"), x + y)
        assert same((a - b).rounded("f64"), x - y)
        assert same((a * b).rounded("f64"), x * y)
        assert same((-a).rounded("f64"), -x)
        assert same(abs(a).rounded("f64"), abs(x))


@given(doubles)
def test_to_single_is_numpys(x: float) -> None:
    with np.errstate(all="ignore"):
        assert same(Exact.of(x).rounded("f32"), float(np.float32(x)))


@given(singles, singles)
def test_products_of_singles_round_once(x: float, y: float) -> None:
    with np.errstate(all="ignore"):
        assert same((Exact.of(x) * Exact.of(y)).rounded("f32"), float(np.float32(x) * np.float32(y)))


@given(finite, finite, finite)
def test_nothing_is_rounded_before_the_end(x: float, y: float, z: float) -> None:
    total = Fraction(x) + Fraction(y) * Fraction(z)
    found = Exact.of(x) + Exact.of(y) * Exact.of(z)
    assert Fraction(found.mantissa) * Fraction(2) ** found.exponent == total
    try:
        wanted = float(total)
    except OverflowError:
        wanted = math.inf if total > 0 else -math.inf
    assert found.rounded("f64") == wanted


@pytest.mark.parametrize(
    ("acc", "v", "s", "result"),
    [
        (-0.0, -0.0, 1.0, -0.0),
        (-0.0, 0.0, 1.0, 0.0),
        (-1.0, 1.0, 1.0, 0.0),
        (0.0, -0.0, 1.0, 0.0),
        (1.0, math.inf, 0.0, math.nan),
        (-math.inf, math.inf, 1.0, math.nan),
        (1.0, -math.inf, 2.0, -math.inf),
        (math.nan, 1.0, 1.0, math.nan),
        (0.0, -5e-324, 0.5, -0.0),  # underflows to a zero with its sign
        (0.0, 1e308, 10.0, math.inf),
        (-1e308, 1e308, 1.5, 5e307),
    ],
)
def test_fused_multiply_add(acc: float, v: float, s: float, result: float) -> None:
    assert same((Exact.of(acc) + Exact.of(v) * Exact.of(s)).rounded("f64"), result)


def test_arrays_of_them_work_in_numpy() -> None:
    v = np.array([Exact.of(x) for x in (1e16, 1.0, -1e16)], dtype=object)
    assert np.sum(v).rounded("f64") == 1.0
    assert (2 * v + np.zeros(3))[1].rounded("f64") == 2.0
    assert (1 - v)[1].rounded("f64") == 0.0
