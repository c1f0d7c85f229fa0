"""Number formats: how a value of each looks in C and NumPy, and what rounding to it does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Number:
    """A format. c: the C type a value is kept in; storage: NumPy's type of the same size, which may hold bits alone.

    precision: bits of a significand, 0 of an integer; smallest, overflow: binary exponents of the least denormal and
    of the first power of two that is too large.
    """

    name: str
    c: str
    storage: type[np.generic]
    precision: int = 0
    smallest: int = 0
    overflow: int = 0

    @property
    def size(self) -> int:
        """Bytes."""
        return np.dtype(self.storage).itemsize

    @property
    def whole(self) -> bool:
        """Integers, whose arithmetic is modulo a power of two."""
        return self.precision == 0

    @property
    def unit(self) -> float:
        """The largest relative error of one rounding; 0 of integers."""
        return 0.0 if self.whole else 2.0**-self.precision

    @property
    def tiny(self) -> float:
        return 0.0 if self.whole else 2.0**self.smallest

    @property
    def _bits_alone(self) -> bool:
        """A floating-point format that NumPy does not have: the upper bits of a float32."""
        return not self.whole and not issubclass(self.storage, np.floating)

    def decoded(self, stored: Array) -> Array:
        """The values of stored elements, exactly, in a type NumPy computes with."""
        if not self._bits_alone:
            return stored
        return (stored.astype(np.uint32) << np.uint32(32 - 8 * self.size)).view(np.float32)

    def encoded(self, values: Array) -> Array:
        """Values as they are stored: rounded to nearest, integers modulo their power of two."""
        if self.whole:
            wide = values.astype(np.int64)
            return wide.astype(self.storage)
        if not self._bits_alone:
            with np.errstate(over="ignore", invalid="ignore"):
                return values.astype(self.storage)
        with np.errstate(over="ignore", invalid="ignore"):
            bits = values.astype(np.float32).view(np.uint32)
        shift = 32 - 8 * self.size
        half = np.uint32((1 << (shift - 1)) - 1)
        rounded = bits + half + ((bits >> np.uint32(shift)) & np.uint32(1))
        special = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)  # NaN stays NaN, an infinity itself
        return (np.where(special, bits, rounded) >> np.uint32(shift)).astype(self.storage)

    def poison(self, size: int, rng: np.random.Generator) -> Array:
        """What no computation should read: quiet NaNs with random signs and payloads; of integers, random bits."""
        bits = np.dtype(f"u{self.size}").type
        pattern: Array = rng.integers(0, np.iinfo(bits).max, size, dtype=bits, endpoint=True)
        if not self.whole:
            exponent, fraction = 8 * self.size - self.precision, self.precision - 1
            pattern = pattern | bits(((1 << exponent) - 1) << fraction | 1 << (fraction - 1))
        return pattern.view(self.storage)

    def rounded(self, mantissa: int, exponent: int) -> float:
        """mantissa * 2 ** exponent (mantissa not 0) to the nearest of this format, ties to even, as a Python float;
        beyond the largest an infinity, of integers the remainder between the two extremes."""
        if self.whole:
            value = mantissa << exponent if exponent >= 0 else mantissa >> -exponent
            span = 1 << (8 * self.size)
            return float((value + span // 2) % span - span // 2)
        size = abs(mantissa)
        unit = max(exponent + size.bit_length() - self.precision, self.smallest)
        if unit > exponent:
            shift = unit - exponent
            half, rest = 1 << (shift - 1), size & ((1 << shift) - 1)
            size >>= shift
            size += rest > half or (rest == half and size & 1)
        else:
            size <<= exponent - unit
        if unit + size.bit_length() > self.overflow:
            return -math.inf if mantissa < 0 else math.inf
        return math.copysign(math.ldexp(size, unit), -1 if mantissa < 0 else 1)


NUMBERS: Mapping[str, Number] = {
    number.name: number
    for number in (
        Number("f64", "double", np.float64, 53, -1074, 1024),
        Number("f32", "float", np.float32, 24, -149, 128),
        Number("f16", "uint16_t", np.float16, 11, -24, 16),  # C has no type for it everywhere: its bits
        Number("bf16", "uint16_t", np.uint16, 8, -133, 128),
        Number("i8", "int8_t", np.int8),
        Number("i16", "int16_t", np.int16),
        Number("i32", "int32_t", np.int32),
    )
}
