"""Numbers without rounding. A primitive's meaning is evaluated with them, so its value is rounded once, at the end.

Every finite binary floating-point number is mantissa * 2 ** exponent with integers. Sums and products of such numbers
have the same form. Zeros have a sign; infinities and NaN behave as in IEEE 754.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tensorop.model.number import NUMBERS


@dataclass(slots=True)  # not frozen: a check makes millions, and freezing doubles the time of all computations
class Exact:
    """mantissa * 2 ** exponent, a signed zero, an infinity or NaN."""

    mantissa: int = 0
    exponent: int = 0
    negative: bool = False  # the sign, which is read only if mantissa is 0
    special: float | None = None  # an infinity or NaN; the other fields have no meaning then

    @staticmethod
    def of(value: object) -> Exact:
        """The exact value of a float or an integer; an Exact is returned as it is."""
        if isinstance(value, Exact):
            return value
        number = float(value)  # type: ignore[arg-type]
        if not math.isfinite(number):
            return Exact(special=number)
        mantissa, two_to = number.as_integer_ratio()
        return Exact(mantissa, 1 - two_to.bit_length(), math.copysign(1.0, number) < 0)

    def _stand_in(self) -> float:
        """A float of the same class (zero, finite, infinity, NaN) and sign."""
        if self.special is not None:
            return self.special
        if self.mantissa == 0:
            return -0.0 if self.negative else 0.0
        return 1.0 if self.mantissa > 0 else -1.0

    def __add__(self, other: object) -> Exact:
        that = Exact.of(other)
        if self.special is not None or that.special is not None:
            return Exact(special=self._stand_in() + that._stand_in())
        low = min(self.exponent, that.exponent)
        total = (self.mantissa << (self.exponent - low)) + (that.mantissa << (that.exponent - low))
        both_zero = self.mantissa == 0 == that.mantissa
        return Exact(total, low, self.negative and that.negative if both_zero else total < 0)

    def __mul__(self, other: object) -> Exact:
        that = Exact.of(other)
        if self.special is not None or that.special is not None:
            return Exact(special=self._stand_in() * that._stand_in())
        return Exact(self.mantissa * that.mantissa, self.exponent + that.exponent, self.negative != that.negative)

    def __neg__(self) -> Exact:
        if self.special is not None:
            return Exact(special=-self.special)
        return Exact(-self.mantissa, self.exponent, not self.negative)

    def __sub__(self, other: object) -> Exact:
        return self + -Exact.of(other)

    def __rsub__(self, other: object) -> Exact:
        return Exact.of(other) + -self

    def __gt__(self, other: object) -> bool:
        return (self - other)._stand_in() > 0  # False for NaN, also the difference of equal infinities

    __radd__ = __add__
    __rmul__ = __mul__

    def __abs__(self) -> Exact:
        if self.special is not None:
            return Exact(special=abs(self.special))
        return Exact(abs(self.mantissa), self.exponent)

    def rounded(self, number: str) -> float:
        """The number rounded to a number format, as a Python float; see Number.rounded."""
        if self.special is not None:
            return self.special
        if self.mantissa == 0:
            return -0.0 if self.negative and not NUMBERS[number].whole else 0.0
        return NUMBERS[number].rounded(self.mantissa, self.exponent)


@dataclass(slots=True)
class Group(Exact):
    """Several integers packed into one element. The product of two groups is the dot product of their parts."""

    parts: tuple[int, ...] = ()  # integers of consecutive steps of k

    @staticmethod
    def of_bits(value: int, size: int, count: int) -> Group:
        """Splits a signed integer of `size` bytes into `count` signed parts; the first part has the lowest bits."""
        bits = 8 * size // count
        unsigned = [value >> bits * i & ((1 << bits) - 1) for i in range(count)]
        return Group(value, 0, value < 0, None, tuple(x - (x >> bits - 1 << bits) for x in unsigned))

    def __mul__(self, other: object) -> Exact:
        if isinstance(other, Group):
            return Exact.of(sum(a * b for a, b in zip(self.parts, other.parts, strict=True)))
        return Exact.__mul__(self, other)

    def __abs__(self) -> Exact:
        return Exact(abs(self.mantissa))
