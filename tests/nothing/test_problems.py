"""Which shapes a search measures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorop.backends.qemu import Backend
from tensorop.model.budget import CLOCK, Budgets
from tensorop.model.problem import Problem
from tensorop.space import problems
from tests.support.operators import gemm

BUDGETS = Backend.budgets
SHAPES = st.lists(st.tuples(*[st.integers(1, 4096)] * 3), min_size=1, max_size=30, unique=True).map(tuple)


@given(SHAPES, st.floats(0, 1e11))
def test_chosen_shapes_fit_together_and_keep_their_order(shapes: tuple[tuple[int, ...], ...], most: float) -> None:
    chosen = problems.spread(shapes, math.prod, most, problems.distance)
    assert chosen == tuple(shape for shape in shapes if shape in chosen)
    assert min(map(math.prod, shapes)) in map(math.prod, chosen)
    assert len(chosen) == 1 or sum(map(math.prod, chosen)) <= most
    if sum(map(math.prod, shapes)) <= most:
        assert chosen == shapes


def test_far_shapes_go_before_near_ones() -> None:
    shapes = ((8, 8, 8), (9, 9, 9), (10, 10, 10), (64, 8, 8), (8, 64, 8))
    assert problems.spread(shapes, lambda shape: 1, 3, problems.distance) == ((8, 8, 8), (64, 8, 8), (8, 64, 8))


def test_the_quick_suite_is_searched_whole_but_for_what_is_too_large() -> None:
    operator = gemm()
    quick = operator.suites["quick"]
    searched = problems.for_search(operator, "f32", quick, BUDGETS)
    asked = list(dict.fromkeys(problems.proxy(operator, "f32", shape, BUDGETS) for shape in quick))
    assert [tuple(p.dims.values()) for p in searched[: len(asked)]] == asked
    assert asked[:4] == list(quick[:4])


def test_the_layout_that_is_asked_for_is_searched_first() -> None:
    operator = gemm()
    for number, layout in enumerate(operator.layouts):
        led = problems.led_by(operator, number)
        found = problems.for_search(led, "f32", operator.suites["quick"], BUDGETS)
        usual = problems.for_search(operator, "f32", operator.suites["quick"], BUDGETS)
        largest = max(usual, key=operator.reference.work)
        assert found[0].options == problems.of(operator, "f32", (16, 16, 16), number).options
        assert {one.options for one in found if one.dims == largest.dims} == {found[0].options}
        assert led.layouts[0] == layout
        assert sorted(map(str, led.layouts)) == sorted(map(str, operator.layouts))
        assert len(found) == len(usual)


def test_finalists_are_tried_on_large_shapes_that_lie_apart() -> None:
    operator = gemm()
    full, asked = operator.suites["full"], partial(problems.asked, operator, "f32")
    large = [tuple(p.dims.values()) for p in problems.final(operator, (), asked(full), BUDGETS)]
    flops = [problems.work(operator, "f32", shape) for shape in large]
    assert len(large) >= 3
    assert sum(flops) <= BUDGETS.finalists_flops
    assert all(BUDGETS.problem_flops < f <= BUDGETS.compared_flops for f in flops)
    assert not problems.final(operator, (), asked([(8, 8, 8)]), BUDGETS)


@pytest.mark.parametrize("budgets", [BUDGETS, CLOCK], ids=["model", "clock"])
def test_a_trial_has_problems_of_each_class_and_layout_at_a_third_of_the_cost(budgets: Budgets) -> None:
    operator = gemm()
    shapes = (*operator.suites["quick"], *operator.probes)
    whole = problems.for_search(operator, "f32", shapes, budgets)
    sketch = problems.sketch(operator, whole, budgets)
    assert set(sketch) < set(whole)
    of_class = problems.classes(operator, whole)
    assert {of_class[one.label] for one in sketch} == set(of_class.values())
    assert {str(one.options) for one in sketch} == {str(one.options) for one in whole}

    def cost(found: Sequence[Problem]) -> float:
        each = budgets.fixed_units["problem"]
        return sum(each + operator.reference.work(one) / budgets.flops_per_unit for one in found)

    assert 0.15 < cost(sketch) / cost(whole) <= 0.41
    few = whole[:5]
    assert problems.sketch(operator, few, budgets) == few


def test_finalists_get_what_trials_left_out_and_a_part_of_it_in_little_time() -> None:
    operator = gemm()
    whole = problems.for_search(operator, "f32", operator.suites["quick"], BUDGETS)
    left = [one for one in whole if one not in problems.sketch(operator, whole, BUDGETS)]
    assert set(left) <= set(problems.final(operator, left, (), BUDGETS, 60.0))
    some = problems.final(operator, left, (), BUDGETS, 2.0)
    assert 1 <= len(some) < len(left)
    assert sum(map(operator.reference.work, some)) <= 2.0 * BUDGETS.flops_per_s


@given(st.tuples(*[st.integers(1, 8192)] * 3))
def test_a_proxy_is_affordable_and_of_the_same_form(shape: tuple[int, ...]) -> None:
    operator = gemm()
    small = problems.proxy(operator, "f32", shape, BUDGETS)
    assert problems.work(operator, "f32", small) <= BUDGETS.problem_flops
    if problems.work(operator, "f32", shape) <= BUDGETS.problem_flops:
        assert small == shape
    else:
        assert 3 * problems.work(operator, "f32", small) > BUDGETS.problem_flops or max(small) < 64
        assert all(less <= side for less, side in zip(small, shape, strict=True))
