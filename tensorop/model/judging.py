"""Compares the elements of an output with expected values and error bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.model.number import Number
from tensorop.model.trial import Kind
from tensorop.model.verdict import Judgement

Array = NDArray[Any]


def admitted(number: Number, want: Array, bound: Array) -> tuple[Array, Array]:
    """The least and the largest value of an output whose distance to `want` is at most `bound`.

    Both are in the output's format, or for one that NumPy lacks in the type that it is computed with there.
    """
    storage: Any = number.decoded(np.zeros(0, number.storage)).dtype.type
    if number.whole:
        exact = want.astype(storage)
        return exact, exact
    with np.errstate(all="ignore"):
        finite = np.isfinite(want)
        low, high = (np.where(finite, edge, want) for edge in (want - bound, want + bound))
        least, most = low.astype(storage), high.astype(storage)
        infinity = storage(np.inf)
        least = np.where(least < low, np.nextafter(least, infinity), least)
        return least, np.where(most > high, np.nextafter(most, -infinity), most)


def inside(got: Array, least: Array, most: Array) -> bool:
    """Whether every element is from `least` to `most`; false for a NaN."""
    values = got.reshape(least.shape)
    return bool(np.all((values >= least) & (values <= most)))


def compared(what: str, got: Array, want: Array, bound: Array) -> Judgement:
    """Judges every element: NaN and infinities must match, the sign of a zero is ignored.

    what: name of the output, for the message; bound: largest absolute error of each element
    """
    if not want.size:
        return Judgement(Kind.OK, "verify")
    with np.errstate(all="ignore"):
        off = np.array(got, want.dtype, order="C")  # arrays are large: few passes, in memory order and in place
        off -= want
        error = np.abs(off, out=off).astype(np.float64, copy=False)
        ratio = np.divide(error, bound, out=np.zeros_like(error), where=error != 0)
        worst = float(ratio.max())
        if worst <= 1 and np.isfinite(want).all():
            return Judgement(Kind.OK, "verify", worst=worst)
        finite = np.isfinite(want)
        same = (np.isnan(want) & np.isnan(got)) | (want == got)
        ratio = np.where(finite, np.where(np.isnan(ratio), np.inf, ratio), np.where(same, 0.0, np.inf))
    worst = float(ratio.max())
    if worst <= 1:
        return Judgement(Kind.OK, "verify", worst=worst)
    wrong = np.argwhere(ratio > 1)
    at = tuple(int(x) for x in wrong[0])
    allowed = f"{bound[at]:.3g} allowed" if finite[at] and bound[at] else "must be exact"
    message = (
        f"{what}[{','.join(map(str, at))}] is {float(got[at])!r}, should be {float(want[at])!r} "
        f"(error {error[at]:.3g}, {allowed}; "
        f"{len(wrong)} of {want.size} elements wrong, {len(wrong) / want.size:.1%})"
    )
    return Judgement(Kind.WRONG, "verify", message, worst=worst)


def half_done(want: Array, bound: Array, rng: np.random.Generator) -> Array:
    """A result with about half of its elements wrong; the first and the last are correct from 3 elements on."""
    wrong = rng.random(want.shape) < 0.5
    if want.size > 2:
        wrong.flat[0] = wrong.flat[-1] = False
        wrong.flat[rng.integers(1, want.size - 1)] = True
    else:
        wrong[...] = True
    with np.errstate(all="ignore"):
        return np.where(wrong, want + 1 + np.abs(want) + 2 * bound, want)
