"""Draws random test data: log-uniform sizes, and magnitudes whose products and sums stay within a number format."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tensorop.model.number import Array, Number

TERMS = 20  # sums of drawn magnitudes have at most 2^TERMS terms


def strata(count: int, rng: np.random.Generator) -> list[float]:
    """One random number in each of `count` equal parts of [0, 1), in random order."""
    return [float(part) for part in (rng.permutation(count) + rng.random(count)) / max(count, 1)]


def between(low: int, high: int, part: float) -> int:
    """A size from low (1 or more) to high, both included; log-uniform if `part` is uniform in [0, 1)."""
    return max(low, min(high, int(low * ((high + 1) / low) ** part)))


def spare(number: Number) -> int:
    """The largest magnitude of a sum of exponents e of factors in [1, 2) times 2^e that are multiplied.

    Within it, sums of 2^TERMS products stay finite, and the difference of two products is no denormal.
    """
    return min(number.overflow - TERMS - 8, -(number.smallest + 2 * number.precision))


def normal(number: Number) -> int:
    """The largest |e| for which all numbers in [1, 2) times 2^e are normal in the format."""
    return min(number.overflow - 1, -(number.smallest + number.precision - 1))


def exponents(most: int, own: Mapping[str, int], first: str, part: float, rng: np.random.Generator) -> dict[str, int]:
    """An integer exponent for each factor, uniform in its range, with each sum of them within `most` in magnitude.

    own: factor -> limit of its exponent's magnitude
    first: the factor that is drawn first, at `part` ([0, 1)) of its range
    """
    names = list(own)
    order = [first, *(name for name in (names[i] for i in rng.permutation(len(names))) if name != first)]
    sums, chosen = [0], {}
    for name in order:
        low = max(-own[name], -most - min(sums))
        high = min(own[name], most - max(sums))
        at = part if name == first else float(rng.random())
        chosen[name] = low + int((high - low + 1) * at)
        sums += [chosen[name] + total for total in sums]
    return chosen


def scaled(shape: tuple[int, ...] | int, exponent: int, rng: np.random.Generator) -> Array:
    """Values in [1, 2) times 2^exponent, of either sign."""
    values = rng.uniform(-1, 1, shape)
    return np.ldexp(values + np.copysign(1, values), exponent)
