"""Number formats: their types in C and NumPy, conversion, and rounding."""

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
    """A number format."""

    name: str
    c: str  # C type of a stored value
    storage: type[np.generic]  # NumPy type of the same size; for bf16 its bits
    precision: int = 0  # bits of the significand; 0 for integers
    smallest: int = 0  # binary exponent of the least denormal
    overflow: int = 0  # binary exponent of the first power of two that is too large

    @property
    def size(self) -> int:
        """Size in bytes."""
        return np.dtype(self.storage).itemsize

    @property
    def whole(self) -> bool:
        """Whether these are integers; their arithmetic is modulo a power of two."""
        return self.precision == 0

    @property
    def unit(self) -> float:
        """The largest relative error of one rounding; 0 for integers."""
        return 0.0 if self.whole else 2.0**-self.precision

    @property
    def tiny(self) -> float:
        return 0.0 if self.whole else 2.0**self.smallest

    @property
    def _bits_alone(self) -> bool:
        """Whether NumPy lacks this floating-point format; its values are the upper bits of a float32."""
        return not self.whole and not issubclass(self.storage, np.floating)

    def decoded(self, stored: Array) -> Array:
        """The exact values of stored elements, in a type that NumPy computes with."""
        if not self._bits_alone:
            return stored
        return (stored.astype(np.uint32) << np.uint32(32 - 8 * self.size)).view(np.float32)

    def encoded(self, values: Array) -> Array:
        """Converts values to stored elements: rounded to nearest, or integers modulo their power of two."""
        if self.whole:
            wide = values.astype(np.int64)
            return wide.astype(self.storage)
        with np.errstate(over="ignore", invalid="ignore"):
            if not self._bits_alone:
                return values.astype(self.storage)
            bits = values.astype(np.float32).view(np.uint32)
        shift = 32 - 8 * self.size
        half = np.uint32((1 << (shift - 1)) - 1)
        rounded = bits + half + ((bits >> np.uint32(shift)) & np.uint32(1))
        special = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)  # NaN and infinities are not rounded
        return (np.where(special, bits, rounded) >> np.uint32(shift)).astype(self.storage)

    def poison(self, size: int, rng: np.random.Generator) -> Array:
        """Elements that no code should read: quiet NaNs with random signs and payloads; for integers, random bits."""
        bits = np.dtype(f"u{self.size}").type
        pattern: Array = rng.integers(0, np.iinfo(bits).max, size, dtype=bits, endpoint=True)
        if not self.whole:
            exponent, fraction = 8 * self.size - self.precision, self.precision - 1
            pattern = pattern | bits(((1 << exponent) - 1) << fraction | 1 << (fraction - 1))
        return pattern.view(self.storage)

    def rounded(self, mantissa: int, exponent: int) -> float:
        """mantissa * 2 ** exponent (mantissa not 0) in this format, rounded to nearest, ties to even.

        Overflow gives an infinity; integers wrap around.
        """
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
        Number("f16", "uint16_t", np.float16, 11, -24, 16),  # not all C compilers have a type for it: its bits
        Number("bf16", "uint16_t", np.uint16, 8, -133, 128),
        Number("i8", "int8_t", np.int8),
        Number("i16", "int16_t", np.int16),
        Number("i32", "int32_t", np.int32),
    )
}
