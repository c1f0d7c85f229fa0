"""Number formats: what encoding, decoding and rounding do, against NumPy and against arithmetic by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorop.model.number import NUMBERS

BF16 = NUMBERS["bf16"]


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_what_is_stored_comes_back(name: str) -> None:
    number = NUMBERS[name]
    bits = np.arange(1 << 16, dtype=np.uint16)
    stored = bits.astype(np.uint8).view(np.int8) if number.size == 1 else np.resize(bits, 4096 * number.size // 2)
    stored = stored.view(number.storage)
    values = number.decoded(stored)
    again = number.encoded(values)
    same = (number.decoded(again) == values) | (values != values)
    assert same.all()
    assert ((values != values) == (number.decoded(again) != values)).all()


@given(st.floats(width=32, allow_nan=False))
def test_bfloat16_is_rounded_to_nearest_even(x: float) -> None:
    stored = BF16.encoded(np.array([x], np.float32))
    got = float(BF16.decoded(stored)[0])
    if x == 0 or math.isinf(x):
        assert got == x
    else:
        mantissa, exponent = math.frexp(x)
        assert got == BF16.rounded(int(math.ldexp(mantissa, 53)), exponent - 53)


@given(st.integers(-(2**70), 2**70), st.sampled_from(["i8", "i16", "i32"]))
def test_integers_wrap(value: int, name: str) -> None:
    number = NUMBERS[name]
    got = NUMBERS[name].rounded(value, 0) if value else 0.0
    info = np.iinfo(number.storage)  # type: ignore[type-var]
    assert info.min <= got <= info.max
    assert (value - int(got)) % (1 << 8 * number.size) == 0


@pytest.mark.parametrize("name", ["f64", "f32", "f16", "bf16"])
def test_poison_is_no_number(name: str) -> None:
    number = NUMBERS[name]
    poison = number.poison(1000, np.random.default_rng(0))
    assert np.isnan(number.decoded(poison)).all()
    assert len(np.unique(poison.view(f"u{number.size}"))) > 50
