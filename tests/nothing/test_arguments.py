"""What every binding says of numbers and of arrays that overlap: one text for all of them."""

from __future__ import annotations

import decimal
import fractions

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from tensorop.package.arguments import LARGEST, flag, real, require_apart, whole

NO_NUMBERS = ("2", b"2", np.str_("2"), np.array("2"), None, True, np.True_, np.array(True), 1j, np.complex64(1), [1.0],
              np.ones(1), np.ones((1, 1)), np.datetime64(2, "s"), Ellipsis)  # fmt: skip


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_texts_and_booleans_are_no_numbers(value: object) -> None:
    for check, kind in ((real, "a real number"), (whole, "an integer of 64 bits")):
        with pytest.raises(TypeError, match=f"^scale is .*: it must be {kind}"):
            check("scale", value, error=TypeError)


def test_numbers_of_every_kind_are() -> None:
    for value in (2, 2.0, np.float32(2), np.int8(2), np.array(2.0), fractions.Fraction(2), decimal.Decimal(2)):
        assert real("scale", value) == 2
    for value in (2, np.int8(2), np.array(2), np.uint64(2)):
        assert whole("window", value) == 2
    for value in (2.0, np.float32(2), fractions.Fraction(2)):
        with pytest.raises(ValueError, match=r"window is .*: it must be an integer of 64 bits"):
            whole("window", value)
    assert flag("lse", np.True_)


def test_a_number_is_finite_in_the_type_that_is_computed_with() -> None:
    for bits, beyond in ((32, 3.5e38), (32, -1e300), (32, 10**400), (64, 10**400), (64, decimal.Decimal("-1e400"))):
        with pytest.raises(
            ValueError, match=rf"^alpha is .*: it must be at most .*, the largest number of {bits} bits"
        ):
            real("alpha", beyond, bits)
    for bits, most in LARGEST.items():
        assert [real("alpha", one, bits) for one in (most, -most, np.inf, 0.0)] == [most, -most, np.inf, 0.0]
        assert np.isnan(real("alpha", np.nan, bits))
    assert real("alpha", 1e300) == 1e300


@pytest.mark.parametrize(("value", "bits"), [(1 << 31, 32), (-(1 << 31) - 1, 32), (1 << 32, 32), (1 << 63, 64)])
def test_an_integer_is_checked_before_it_is_narrowed(value: int, bits: int) -> None:
    with pytest.raises(ValueError, match=f"it must be an integer of {bits} bits"):
        whole("threads", value, bits)
    assert whole("threads", -(1 << bits - 1), bits) == -(1 << bits - 1)


def test_elements_overlap_not_the_memory_between_them() -> None:
    buffer = np.zeros((6, 8, 10))
    for one, other in (
        (buffer[::2], buffer[1::2]), (buffer[:, :4], buffer[:, 4:]), (buffer[..., ::2], buffer[..., 1::2]),
        (buffer[:, ::3, ::2], buffer[::2, 1::3, ::-3]), (buffer[:0], buffer), (buffer[0].T, buffer[1:]),
    ):  # fmt: skip
        require_apart("out", one, {"q": other, "k": None})
    for one, other in ((buffer, buffer[3, 2:3, 4:5]), (buffer[::2], buffer[::3]), (buffer[0].T, buffer[0, 3:4])):
        with pytest.raises(ValueError, match=r"^out overlaps k: give an array with memory of its own"):
            require_apart("out", one, {"q": None, "k": other})


def test_where_the_test_would_take_too_long_its_strides_are_refused() -> None:
    memory = np.zeros(200_000, np.uint8).view(np.float32)
    one = as_strided(memory, (28, 2, 14, 25), (9092, 4892, 5968, 5044))
    other = as_strided(memory, (8, 24, 4, 13), (3384, 8812, 8992, 8532))
    tried = 0
    for first in range(1, 40):
        try:
            require_apart("out", one, {"q": other})
        except ValueError as error:
            tried += "out may overlap q: it takes too long to tell from the strides (9092" in str(error)
        other = as_strided(memory[first:], (8, 24, 4, 13), (3384, 8812, 8992, 8532))
    assert tried
