"""Numbers without rounding. A primitive's meaning is evaluated with them, so its value is rounded once, at the end.

Every finite binary floating-point number is mantissa * 2 ** exponent with integers. Sums and products of such numbers
have the same form. Quotients and powers of e are cut off far below the last bit of every format, and a lowest bit that
is 1 stands for the rest, so that they round as the exact value does. Zeros have a sign; infinities and NaN behave as in
IEEE 754.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass, replace

from tensorop.model.number import NUMBERS

_BITS = 160  # of a quotient or a power, at least; no format has more than 53, nor its denormals
_DIGITS = decimal.Context(prec=60)
_FAR = 1 << 14  # powers of two beyond it are infinite or zero in every format


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

    def __truediv__(self, other: object) -> Exact:
        that = Exact.of(other)
        negative = math.copysign(1.0, self._stand_in()) != math.copysign(1.0, that._stand_in())
        if math.isnan(self._stand_in()) or math.isnan(that._stand_in()) or self._class() == that._class() != 1:
            return Exact(special=math.nan)
        if self._class() > that._class():
            return Exact(special=-math.inf if negative else math.inf)
        if self._class() < that._class():
            return Exact(negative=negative)
        shift = max(_BITS + abs(that.mantissa).bit_length() - abs(self.mantissa).bit_length(), 0)
        whole, rest = divmod(abs(self.mantissa) << shift, abs(that.mantissa))
        size = whole << 1 | (rest > 0)
        return Exact(-size if negative else size, self.exponent - that.exponent - shift - 1, negative)

    def _class(self) -> int:
        """0: a zero, 1: another finite number, 2: infinity or NaN."""
        return 2 if self.special is not None else min(abs(self.mantissa), 1)

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

    def __lt__(self, other: object) -> bool:
        return Exact.of(other) > self

    def exp(self) -> Exact:
        """e to its power."""
        if self.special is not None:
            return Exact() if self.special == -math.inf else self
        if self.mantissa == 0:
            return Exact(1)
        size = abs(self.mantissa)
        if self.exponent + size.bit_length() > _FAR.bit_length():
            size, exponent = _FAR, 0
        else:
            exponent = self.exponent
        power = _DIGITS.multiply(size if self.mantissa > 0 else -size, _DIGITS.power(2, exponent))
        value = _DIGITS.exp(power)  # irrational, so never between two floats of any format
        top, bottom = value.as_integer_ratio()
        shift = _BITS + bottom.bit_length() - top.bit_length()
        size = (top << shift) // bottom if shift >= 0 else top // (bottom << -shift)
        return Exact(size << 1 | 1, -shift - 1)

    def ldexp(self, power: object) -> Exact:
        """Times 2 to a power; NaN for a power that is no integer."""
        by = Exact.of(power)
        whole, rest = divmod(by.mantissa, 1 << max(-by.exponent, 0))
        if by.special is not None or rest:
            return Exact(special=math.nan)
        far = max(min(whole << min(max(by.exponent, 0), _FAR), _FAR), -_FAR)
        return replace(self, exponent=self.exponent + far)

    __radd__ = __add__
    __rmul__ = __mul__

    def __abs__(self) -> Exact:
        if self.special is not None:
            return Exact(special=abs(self.special))
        return Exact(abs(self.mantissa), self.exponent)

    def distance(self, found: float, number: str) -> float:
        """How far a float is from it, in units of the last place that it has in a floating-point format (ulp).

        An infinity counts as the first power of two beyond the format, and as near to everything farther away. The
        distance from zero and from infinities is infinite, as it is with another sign and where only one is NaN.
        """
        kind = NUMBERS[number]
        if self.special is not None or self.mantissa == 0 or math.isnan(found):
            plain = self._stand_in()
            return 0.0 if found == plain or (math.isnan(found) and math.isnan(plain)) else math.inf
        if (math.copysign(1.0, found) < 0) != (self.mantissa < 0):
            return math.inf
        beyond = Exact(1, kind.overflow)
        apart = abs(self - found) if math.isfinite(found) else beyond - abs(self)
        top = min(self.exponent + abs(self.mantissa).bit_length(), kind.overflow)
        return max(apart.ldexp(-max(top - kind.precision, kind.smallest)).rounded("f64"), 0.0)

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
