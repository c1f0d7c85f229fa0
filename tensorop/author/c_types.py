"""C's integer types: their names, limits and conversions."""

from __future__ import annotations

from typing import NamedTuple

LARGEST = 1 << 62  # limit of a number that is compared or divided
KEPT = 1 << 58  # limit of a counter in every iteration


class Type(NamedTuple):
    """A C integer type."""

    signed: bool
    bits: int


SIZE, INT, SIGNED_SIZE = Type(False, 64), Type(True, 32), Type(True, 64)
TYPES = {
    **dict.fromkeys(("size_t", "uint64_t", "unsigned long", "unsigned long long", "unsigned long int"), SIZE),
    **dict.fromkeys(("ptrdiff_t", "int64_t", "long", "long long", "long int", "signed long"), SIGNED_SIZE),
    **dict.fromkeys(("int", "int32_t", "signed", "signed int"), INT),
    **dict.fromkeys(("unsigned", "unsigned int", "uint32_t"), Type(False, 32)),
    **dict.fromkeys(("short", "int16_t", "short int", "signed short"), Type(True, 16)),
    **dict.fromkeys(("unsigned short", "uint16_t"), Type(False, 16)),
    **dict.fromkeys(("signed char", "int8_t"), Type(True, 8)),
    **dict.fromkeys(("unsigned char", "uint8_t", "bool"), Type(False, 8)),
}


def limits_of(kind: Type, most: int = LARGEST) -> tuple[int, int]:
    if kind.bits == 64:
        return (-most if kind.signed else 0), most
    return (-(1 << kind.bits - 1), (1 << kind.bits - 1) - 1) if kind.signed else (0, (1 << kind.bits) - 1)


def common(a: Type, b: Type) -> Type:
    """The common type of two operands, by C's usual arithmetic conversions."""
    a, b = (INT if one.bits < 32 else one for one in (a, b))
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return Type(a.signed and b.signed, a.bits)
