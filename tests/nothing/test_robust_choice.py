"""Close variants: which of them the dispatch is to take, by what each costs under the model's alternatives."""

from __future__ import annotations

import pytest

from tensorop.dispatch.choice import CostRow
from tensorop.dispatch.robust import CLOSE, CloseVariants, weigh
from tensorop.model.problem import Problem

PROBLEM = Problem.of("gemm", "f32", {"m": 1})
SAME = (100.0, 100.0, 100.0)


def contest(under: tuple[tuple[float, ...], ...], best: tuple[float, ...] = (100.0, 101.0, 102.0)) -> CloseVariants:
    return CloseVariants(256, "a problem", (0, 2, 3), tuple((cost, *SAME) for cost in best), under)


def test_the_one_whose_worst_alternative_is_best_costs_least() -> None:
    row = CostRow(PROBLEM, (100.0, 250.0, 101.0, 102.0, 104.0))
    found = contest(((180.0, 120.0), (150.0, 151.0), (110.0, 152.0)))
    weighed = weigh(row, found)
    assert weighed.costs[0] == CLOSE * 100  # far behind in its worst alternative, but never behind who is not close
    assert weighed.costs[2] == 100
    assert weighed.costs[3] == pytest.approx(100 * 152 / 151)
    assert (weighed.costs[1], weighed.costs[4]) == (250, 104)
    assert found.chosen == 1
    assert found.given_up == pytest.approx(1 - 100 / 101)


def test_what_was_not_counted_keeps_its_costs() -> None:
    row = CostRow(PROBLEM, (100.0, 101.0))
    assert weigh(row, None) is row


def test_without_alternatives_the_mean_over_the_constants_decides() -> None:
    assert contest(((), (), ())).chosen == 0
    assert contest(((), (), ()), best=(103.0, 101.0, 100.0)).chosen == 2
