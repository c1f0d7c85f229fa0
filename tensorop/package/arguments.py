"""Checks of what a caller in Python gives to a library's function."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
LARGEST = {32: float(np.finfo(np.float32).max), 64: float(np.finfo(np.float64).max)}  # real number, by its bits
_MOST_WORK = 10_000  # solutions that NumPy tries before it gives up, in milliseconds


def _scalar(value: Any) -> Any:
    """The number itself, of an array without dimensions or a scalar of NumPy or PyTorch."""
    return value.item() if hasattr(value, "item") and not getattr(value, "ndim", 0) else value


def whole(name: str, value: Any, bits: int = 64, error: type[Exception] = ValueError) -> int:
    """An integer of that many bits. Raises `error`, also for True and False."""
    given = _scalar(value)
    try:
        found = operator.index(given)
    except TypeError:
        found = 1 << bits
    if isinstance(given, bool) or not -(1 << bits - 1) <= found < 1 << bits - 1:
        raise error(f"{name} is {value!r:.80}: it must be an integer of {bits} bits")
    return found


def real(name: str, value: Any, bits: int = 64, error: type[Exception] = ValueError) -> float:
    """A real number that is computed with in that many bits; infinities and NaN pass.

    Raises `error` for what is no number, such as a text or True, and ValueError for a finite number that becomes
    infinite in so many bits.
    """
    given, found = _scalar(value), None
    if hasattr(given, "__float__") and not isinstance(given, bool) and not getattr(given, "ndim", 0):
        try:
            found = float(given)
        except OverflowError:  # an integer
            found = math.inf
        except (TypeError, ValueError):
            pass
    if found is None:
        raise error(f"{name} is {value!r:.80}: it must be a real number")
    if abs(found) > LARGEST[bits] and (math.isfinite(found) or given != found):
        most = f"at most {LARGEST[bits]:.6g}, the largest number of {bits} bits"
        raise ValueError(f"{name} is {value!r:.80}: it must be {most}, since the call computes with those")
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


def require_output(
    name: str, given: Any, like: tuple[tuple[int, ...], Any], lies: Callable[[Array], bool], form: str
) -> None:
    """Raises TypeError if an argument is no array, ValueError if a result cannot be written to it.

    like: shape and dtype of the result. lies: whether the library can write to the array as it lies in memory; form:
    such an array, in words.
    """
    if not isinstance(given, np.ndarray):
        raise TypeError(f"{name} is {type(given).__name__}; it is written in place, so it must be an array")
    if (given.shape, given.dtype) != like or not lies(given):
        got = f"{given.dtype} {given.shape}, strides {given.strides}"
        raise ValueError(f"{name} must be {form} of {like[1]} and shape {like[0]}; got {got}")
    if not given.flags.writeable:
        raise ValueError(f"{name} is read-only: give a writable array")


def overlaps_itself(shape: Sequence[int], strides: Sequence[int], element: int = 1) -> bool:
    """Whether lines may share an element, since their distances are shorter than they are long.

    strides, element: distances and the size of an element, both in bytes or in elements
    """
    reach = element
    for stride, size in sorted((abs(stride), size) for stride, size in zip(strides, shape, strict=True)):
        if size > 1 and stride < reach:
            return all(shape)
        reach += (size - 1) * stride
    return False


def leading(shape: Sequence[int], strides: Sequence[int]) -> tuple[bool, int] | None:
    """(rows are contiguous, their leading dimension) of a matrix, else those of columns; None if neither are.

    strides: in elements. The leading dimension of a single line is 0.
    """
    for by_row, (lines, length), (step, within) in ((True, shape, strides), (False, shape[::-1], strides[::-1])):
        if (within == 1 or length <= 1) and (step >= length or lines <= 1):
            return by_row, step if lines > 1 else 0
    return None


def require_apart(name: str, written: Array, others: Mapping[str, Array | None]) -> None:
    """Raises ValueError if an array that is written shares an element with another one.

    Elements count, not the stretches of memory from first to last. Arrays whose strides make that test too long are
    refused too.
    """
    for other, array in others.items():
        try:
            if array is not None and np.shares_memory(written, array, max_work=_MOST_WORK):  # type: ignore[arg-type]
                raise ValueError(f"{name} overlaps {other}: give an array with memory of its own")
        except np.exceptions.TooHardError:
            raise ValueError(
                f"{name} may overlap {other}: it takes too long to tell from the strides {written.strides} and "
                f"{array.strides}; give an array with memory of its own"  # type: ignore[union-attr]
            ) from None
