"""Choosing over the ranges of a model's assumed constants."""

from __future__ import annotations

import pytest

from tensorop.dispatch.robust import mean_costs, overturned, worst_costs

NAMES = ("latency", "ports")
STEADY = (100.0, 100.0, 100.0, 100.0, 100.0)
FRAGILE = (98.0, 98.0, 140.0, 98.0, 98.0)  # ahead at the best fit, far behind where the latency is high


def test_the_mean_counts_every_choice_of_constants() -> None:
    steady, fragile = mean_costs([STEADY, FRAGILE])
    assert steady == pytest.approx(100)
    assert fragile > steady


def test_the_worst_alternative_decides_and_the_mean_where_there_is_none() -> None:
    assert worst_costs([STEADY, FRAGILE], [(150.0, 120.0), (140.0, 180.0)]) == [150, 180]
    assert worst_costs([STEADY, FRAGILE], [(), ()]) == mean_costs([STEADY, FRAGILE])


def test_constants_that_change_the_choice_are_named_with_what_the_other_gains() -> None:
    assert overturned([STEADY, (100.0, 100.0, 90.0, 98.0, 100.0)], NAMES, 0) == {
        "latency": pytest.approx(0.1),
        "ports": pytest.approx(0.02),
    }
    # what it gains at the best fit already is no constant's doing
    assert overturned([STEADY, FRAGILE], NAMES, 0) == {}
    assert overturned([FRAGILE, (150.0, 150.0, 160.0, 150.0, 150.0)], NAMES, 0) == {}


def test_a_gain_below_one_per_cent_changes_nothing() -> None:
    assert overturned([STEADY, (100.5, 99.5, 101.0, 101.0, 101.0)], NAMES, 0) == {}
