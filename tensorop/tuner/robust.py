"""Choosing by what a model does not know: costs over the ranges of its assumed constants."""

from __future__ import annotations

from collections.abc import Sequence

from tensorop.measure import statistics

GAIN = 0.01  # of the cost: what a change of constants must bring before another choice counts as better


def mean_costs(cycles: Sequence[Sequence[float]]) -> list[float]:
    """Each candidate's geometric mean over the choices of assumed constants. cycles: by candidate, by choice."""
    return [statistics.geomean(of_one) for of_one in cycles]


def overturned(cycles: Sequence[Sequence[float]], constants: Sequence[str], chosen: int) -> dict[str, float]:
    """Constants that alone make another candidate better than the chosen one, and the share it gains then.

    cycles: by candidate: the best fit, then each of `constants` at its low and at its high end.
    """
    found: dict[str, float] = {}
    for number, name in enumerate(constants):
        for choice in (1 + 2 * number, 2 + 2 * number):
            gain = 1 - min(of_one[choice] for of_one in cycles) / cycles[chosen][choice]
            if gain > max(GAIN, found.get(name, 0.0)):
                found[name] = gain
    return found
