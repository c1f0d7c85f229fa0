"""Checks of what a caller in Python gives to a library's function."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def whole(name: str, value: Any, bits: int = 64) -> int:
    """An integer of that many bits. Raises ValueError."""
    try:
        found = operator.index(value)  # NumPy's integers have an index
    except TypeError:
        found = 1 << bits
    if isinstance(value, bool) or not -(1 << bits - 1) <= found < 1 << bits - 1:
        raise ValueError(f"{name} is {value!r:.80}: it must be an integer of {bits} bits")
    return found


def flag(name: str, value: Any, error: type[Exception] = ValueError) -> bool:
    """True or False, or a number that equals one of them. Raises `error`."""
    if value is not True and value is not False and (np.ndim(value) or value not in (False, True)):
        raise error(f"{name} is {value!r:.80}: it must be True or False")
    return bool(value)


def dense(given: Any) -> Array:
    """The array itself if it is aligned, in C order and in this machine's byte order, else a copy that is so."""
    array: Array = np.asarray(given)
    if array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative:
        return array
    return np.require(array, array.dtype.newbyteorder("="), ["C", "A"])
