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


@given(doubles, doubles)
def test_a_quotient_is_the_processors(x: float, y: float) -> None:
    with np.errstate(all="ignore"):
        assert same((Exact.of(x) / Exact.of(y)).rounded("f64"), float(np.float64(x) / np.float64(y)))


@given(doubles)
def test_a_power_of_e_is_nearly_the_libraries(x: float) -> None:
    """NumPy's own is within 1 ulp."""
    with np.errstate(all="ignore"):
        found = float(np.exp(x))
    assert Exact.of(x).exp().rounded("f64") == found or Exact.of(x).exp().distance(found, "f64") < 1 or math.isnan(x)


def test_powers_of_e_at_their_ends() -> None:
    for x, want in ((0.0, 1.0), (-0.0, 1.0), (math.inf, math.inf), (-math.inf, 0.0), (1e300, math.inf), (-1e300, 0.0)):
        assert same(Exact.of(x).exp().rounded("f64"), want)
    assert math.isnan(Exact.of(math.nan).exp().rounded("f64"))
    assert Exact.of(709.782712893384).exp().rounded("f64") == math.exp(709.782712893384)
    assert Exact.of(709.7827128933841).exp().rounded("f64") == math.inf
    assert Exact.of(-745.1332191019411).exp().rounded("f64") == 5e-324
    assert Exact.of(-745.1332191019413).exp().rounded("f64") == 0.0


@given(st.floats(0.25, 4), st.integers(-1536, 1536))
def test_scaling_by_a_power_of_two_rounds_once(x: float, power: int) -> None:
    try:
        want = math.ldexp(x, power)
    except OverflowError:
        want = math.inf
    assert same(Exact.of(x).ldexp(float(power)).rounded("f64"), want)


def test_scaling_by_what_is_no_integer() -> None:
    for power in (0.5, math.inf, -math.inf, math.nan):
        assert math.isnan(Exact.of(3.0).ldexp(power).rounded("f64"))
    assert Exact.of(-3.0).ldexp(1e300).rounded("f64") == -math.inf
    assert same(Exact.of(-3.0).ldexp(-1e300).rounded("f64"), -0.0)


@pytest.mark.parametrize(
    ("want", "found", "number", "distance"),
    [
        (1.0, 1.0, "f32", 0.0),
        (1.0, 1 + 2.0**-23, "f32", 1.0),
        (1.0, 1 - 2.0**-24, "f32", 0.5),  # in units of the exact value's last place
        (1.0, 1 + 2.0**-23, "f64", 2.0**29),
        (0.75, 0.75 + 2.0**-24, "f32", 1.0),
        (0.0, 2.0**-149, "f32", math.inf),
        (0.0, 0.0, "f32", 0.0),
        (2.0**-150, 2.0**-149, "f32", 0.5),
        (2.0**-150, 0.0, "f32", 0.5),
        (2.0**-140, 2.0**-140 + 2.0**-148, "f32", 2.0),
        (2.0**128 - 2.0**103, math.inf, "f32", 0.5),
        (2.0**127, math.inf, "f32", 2.0**23),
        (2.0**128, 2.0**128 - 2.0**104, "f32", 1.0),
        (2.0**130, 2.0**128 - 2.0**104, "f32", 3 * 2.0**24 + 1),
        (2.0**130, math.inf, "f32", 0.0),
        (math.inf, 1.0, "f32", math.inf),
        (math.nan, 1.0, "f32", math.inf),
        (1.0, math.nan, "f32", math.inf),
        (math.nan, math.nan, "f32", 0.0),
        (-math.inf, -math.inf, "f32", 0.0),
        (-1.0, 1.0, "f32", math.inf),
        (2.0**-160, -0.0, "f32", math.inf),
    ],
)
def test_the_distance_in_units_of_the_last_place(want: float, found: float, number: str, distance: float) -> None:
    assert Exact.of(want).distance(found, number) == distance
