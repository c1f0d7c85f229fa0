"""Choosing by what a model does not know: its alternatives, and the ranges of its assumed constants."""

from __future__ import annotations

from collections.abc import Sequence

from tensorop.measure import statistics

GAIN = 0.01  # of the cost: what a change of constants must bring before another choice counts as better


def mean_costs(cycles: Sequence[Sequence[float]]) -> list[float]:
    """Each candidate's geometric mean over the choices of assumed constants. cycles: by candidate, by choice."""
    return [statistics.geomean(of_one) for of_one in cycles]


def standing(cycles: Sequence[Sequence[float]], under: Sequence[Sequence[float]]) -> list[float]:
    """What candidates that are close at the best fit are chosen by, the least first: each one's most cycles under any
    alternative of the model; its mean over the constants where the model has none.

    cycles: by candidate, by choice of constants; under: by candidate, by alternative.
    """
    return [max(of_one) for of_one in under] if all(under) else mean_costs(cycles)


def overturned(cycles: Sequence[Sequence[float]], constants: Sequence[str], chosen: int) -> dict[str, float]:
    """Constants that alone make another candidate better than the chosen one, and the share it gains then beyond what
    it gains at the best fit.

    cycles: by candidate: the best fit, then each of `constants` at its low and at its high end.
    """
    found: dict[str, float] = {}
    given = 1 - min(of_one[0] for of_one in cycles) / cycles[chosen][0]
    for number, name in enumerate(constants):
        for choice in (1 + 2 * number, 2 + 2 * number):
            gain = 1 - min(of_one[choice] for of_one in cycles) / cycles[chosen][choice] - given
            if gain > max(GAIN, found.get(name, 0.0)):
                found[name] = gain
    return found
