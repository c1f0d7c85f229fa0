"""Draws of a run: log-uniform sizes, and magnitudes whose products and sums stay within a number format."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tensorop.model.number import Array, Number

TERMS = 20  # binary exponent of the most terms in a sum of drawn magnitudes


def strata(count: int, rng: np.random.Generator) -> list[float]:
    """A number in each of `count` equal parts of [0, 1), in random order."""
    return [float(part) for part in (rng.permutation(count) + rng.random(count)) / max(count, 1)]


def between(low: int, high: int, part: float) -> int:
    """A size from low (1 or more) to high, both included, whose logarithm is uniform where `part` is, of [0, 1)."""
    return max(low, min(high, int(low * ((high + 1) / low) ** part)))


def spare(number: Number) -> int:
    """Factors in [1, 2) times 2^e may be multiplied where no sum of these e is beyond this, either way: sums of
    2^TERMS such products stay finite, and a difference of two is no denormal."""
    return min(number.overflow - TERMS - 8, -(number.smallest + 2 * number.precision))


def normal(number: Number) -> int:
    """For |e| up to this all of [1, 2) times 2^e is normal in the format."""
    return min(number.overflow - 1, -(number.smallest + number.precision - 1))


def exponents(most: int, own: Mapping[str, int], first: str, part: float, rng: np.random.Generator) -> dict[str, int]:
    """An exponent of each factor, whole and uniform in what it may be, of which no sum is beyond `most`, either way.

    own: each one's limit; first: the factor that is drawn before the others bind it, where `part` of [0, 1) says.
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
