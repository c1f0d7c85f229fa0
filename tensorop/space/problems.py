"""The problems a job tunes for: its shapes in the operator's layouts, few enough for the target."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import TypeVar

import numpy as np
import psutil

from tensorop.errors import SpecError, UsageError
from tensorop.model.budget import Budgets
from tensorop.model.expression import Expression, parse
from tensorop.model.listed import NO_FILES, Listed
from tensorop.model.operator import Operator
from tensorop.model.point import Point, Value
from tensorop.model.problem import Problem

T = TypeVar("T")

LONGEST_S = 3600.0  # seconds; longest run of a whole problem under an emulator
CHEAP = 40  # problems below 1/CHEAP of the budget always fit
# A trial may take this part of the cost of all problems. On 200 recorded blockings (one RISC-V core, f32) such trials
# order the best quarter as all problems do, with Kendall's tau 0.75; tests/nothing/test_race_recorded.py computes it.
SKETCH, THRIFT = 0.35, 0.5
FEW = 12  # so few problems are all measured in each trial


def equal(one: object) -> float:
    """The weight of a problem without files of calls."""
    return 1.0


def of(operator: Operator, dtype: str, shape: tuple[int, ...], layout: int = 0) -> Problem:
    """A shape in one of the operator's layouts."""
    return operator.reference.problem(dtype, operator.shapes.named(shape), operator.layouts[layout])


def asked(
    operator: Operator, dtype: str, shapes: Sequence[tuple[int, ...]], listed: Listed = NO_FILES, layout: int = 0
) -> tuple[Problem, ...]:
    """The problems of shapes: recorded ones as they were called, others in one of the operator's layouts."""
    return tuple(
        operator.reference.problem(dtype, operator.shapes.named(shape), way or operator.layouts[layout])
        for shape in shapes
        for way in listed.ways(shape, dtype)
    )


def numbered(operator: Operator) -> str:
    """The operator's layouts with their numbers, for messages."""
    return ", ".join(f"{number} ({written(layout)})" for number, layout in enumerate(operator.layouts))


def require_layout(operator: Operator, number: int) -> int:
    """The number of a layout. Raises UsageError if there is none."""
    if not 0 <= number < len(operator.layouts):
        what = f"--layout {number} does not exist: {operator.name} has the layouts 0 to {len(operator.layouts) - 1}"
        raise UsageError(what, hint=f"they are {numbered(operator)}")
    return number


def led_by(operator: Operator, number: int) -> Operator:
    """The operator with this one of its layouts as the first. Raises as `require_layout`."""
    first = operator.layouts[require_layout(operator, number)]
    return replace(operator, layouts=(first, *(layout for layout in operator.layouts if layout != first)))


def written(layout: Mapping[str, Value]) -> str:
    """A layout as text: `row`, or with flags that are set `row,FLAG=1`."""
    return ",".join(str(value) if name == "layout" else f"{name}={value}" for name, value in layout.items())


def work(operator: Operator, dtype: str, shape: tuple[int, ...]) -> float:
    """Flops of a shape."""
    return float(operator.reference.work(of(operator, dtype, shape)))


def require_affordable(
    operator: Operator,
    dtypes: Sequence[str],
    shapes: Sequence[tuple[int, ...]],
    a_second: float,
    configurations: int = 1,
) -> None:
    """Raises UsageError for a shape that is too large to run here.

    Its operands take more than half of the free memory, or its run under a board model more than an hour.

    a_second: flops per second; 0: no time limit; configurations: VLENs at which each shape runs
    """
    free = psutil.virtual_memory().available
    for shape in shapes:
        for dtype in dtypes:
            size = operator.reference.traffic(of(operator, dtype, shape))
            if size > free / 2:
                raise UsageError(
                    f"shape {operator.shapes.text(shape)} is too large: its {dtype} operands need {size / 2**30:.3g} "
                    "GiB, more than "
                    f"half of the {free / 2**30:.3g} GiB that are free",
                    hint="tune for a smaller shape; the library still computes any size that fits in memory",
                )
            seconds = configurations * work(operator, dtype, shape) / a_second if a_second else 0.0
            if seconds > LONGEST_S:
                raise UsageError(
                    f"shape {operator.shapes.text(shape)}: a run in {dtype} under the emulator would take about "
                    f"{seconds / 3600:.3g} hours; at most {LONGEST_S / 3600:g} is allowed",
                    hint="use a smaller shape of the same form, or run it on a board with --runner ssh://HOST",
                )


def features(operator: Operator, problem: Problem) -> dict[str, int]:
    """The dispatch features of a problem: those of the reference, and expressions over them."""
    return derived(operator, operator.reference.features(problem), problem)


def derived(operator: Operator, seen: Mapping[str, int], problem: Problem) -> dict[str, int]:
    """The features `seen` of a problem or of a part of it, and expressions over them."""
    found, names = {}, tuple(sorted(seen))
    for name, text in operator.derived.items():
        try:
            found[name] = int(_feature(text, names).value(seen))
        except ZeroDivisionError:
            where = f"{operator.folder / 'operator.yaml'}: key 'features.{name}'"
            raise SpecError(f"{where}: '{text}' divides by zero for {problem.label}") from None
    return {**seen, **found}


def feature(text: str, features: Mapping[str, int]) -> int:
    """The value of a dispatch feature or of an expression over features."""
    return features[text] if text in features else int(_feature(text, tuple(sorted(features))).value(features))


SIZES = 4  # classes of an operator that names none


def classes(operator: Operator, found: Sequence[Problem]) -> dict[str, str]:
    """The class of each problem by its label: the operator's first true expression, or an equal part of the sizes."""
    if not operator.classes:
        ranked = sorted(found, key=operator.reference.work)
        return {problem.label: f"size {SIZES * place // len(ranked) + 1}" for place, problem in enumerate(ranked)}
    named = {}
    for problem in found:
        values = features(operator, problem)
        true = (name for name, text in operator.classes.items() if feature(text, values))
        named[problem.label] = next(true, "other")
    return named


@lru_cache(maxsize=64)
def _feature(text: str, names: tuple[str, ...]) -> Expression:
    return parse(text, dict.fromkeys(names, int))


def within(
    operator: Operator, dtype: str, shapes: tuple[tuple[int, ...], ...], most: float
) -> tuple[tuple[int, ...], ...]:
    """The shapes of at most `most` flops; if there is none, the smallest shape."""
    found = tuple(shape for shape in shapes if work(operator, dtype, shape) <= most)
    return found or (min(shapes, key=lambda s: work(operator, dtype, s)),)


def proxy(operator: Operator, dtype: str, shape: tuple[int, ...], budgets: Budgets) -> tuple[int, ...]:
    """The shape, or a smaller one of the same form (the operator's `proxy`) if it exceeds the budget."""
    while work(operator, dtype, shape) > budgets.problem_flops:
        smaller = operator.reference.proxy(operator.shapes.named(shape))
        if smaller is None:
            break
        shape = operator.shapes.of(smaller)
    return shape


def spread(
    wanted: Sequence[T],
    cost: Callable[[T], float],
    most: float,
    distance: Callable[[T, T], float],
    *,
    first: Sequence[T] = (),
    thrift: float = 1.0,
    weigh: Callable[[T], float] = equal,
) -> tuple[T, ...]:
    """Members that represent all of `wanted` and cost at most `most`, in the given order.

    `first` come first. Then the member follows that reduces most the distances of all to their nearest chosen one, in
    relation to its cost to the power of `thrift`. A member that is given twice has double weight, and is in the result
    once. weigh: weight of a member's distance
    """
    members = tuple(dict.fromkeys(wanted))
    costs = np.array([cost(one) for one in members])
    if costs.sum() <= most:
        return members
    apart = np.array([[weigh(one) * distance(one, other) for other in members] for one in wanted])
    chosen = np.isin(range(len(members)), [members.index(one) for one in first] or [int(costs.argmin())])
    while True:
        left = most - costs[chosen].sum()
        far = apart[:, chosen].min(axis=1)
        nearer = np.maximum(0.0, far[:, None] - apart).sum(axis=0) / costs**thrift
        fitting = ~chosen & (costs <= left)
        if not fitting.any():
            return tuple(one for one, kept in zip(members, chosen, strict=True) if kept)
        chosen[np.where(fitting, nearer, -1.0).argmax()] = True


def distance(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """Distance of two shapes, in octaves."""
    octaves = [[math.log2(max(side, 0.5)) for side in shape] for shape in (one, other)]  # an attribute may be 0
    return math.dist(*octaves)


def _apart(operator: Operator) -> Callable[[Problem, Problem], float]:
    """The distance of two problems in octaves. Another layout counts as one."""

    @cache
    def place(problem: Problem) -> tuple[int, ...]:
        return operator.shapes.of(problem.sizes)

    return lambda one, other: math.hypot(distance(place(one), place(other)), one.options != other.options)


def for_search(
    operator: Operator,
    dtype: str,
    shapes: tuple[tuple[int, ...], ...],
    budgets: Budgets,
    listed: Listed = NO_FILES,
    weigh: Callable[[Problem], float] = equal,
) -> tuple[Problem, ...]:
    """The problems of the blocking search: all shapes in the first layout, then cheap ones in the other layouts.

    Recorded calls lie as they were recorded, and in no other way. Shapes beyond the target's budgets are replaced by
    their `proxy`; `large` returns some of them.

    listed: calls of files among the shapes; weigh: weights of problems
    """
    wanted = tuple(proxy(operator, dtype, shape, budgets) for shape in shapes)
    most = budgets.all_problems_flops
    recorded: dict[tuple[int, ...], tuple[Point | None, ...]] = {}
    for shape, smaller in zip(shapes, wanted, strict=True):
        ways = (*recorded.get(smaller, ()), *listed.ways(shape, dtype))
        recorded[smaller] = tuple(dict.fromkeys(ways))

    def lying(shape: tuple[int, ...]) -> list[Problem]:
        usual, named = operator.layouts[0], operator.shapes.named(shape)
        return [operator.reference.problem(dtype, named, way or usual) for way in recorded[shape]]

    def flops(shape: tuple[int, ...]) -> float:
        return work(operator, dtype, shape)

    cheap, left = [], most
    for shape in sorted(dict.fromkeys(wanted), key=flops):
        if flops(shape) <= min(most / CHEAP, left):
            cheap.append(shape)
            left -= flops(shape)
    affordable = spread(wanted, flops, most, distance, first=cheap, weigh=lambda s: sum(map(weigh, lying(s))))
    cheap = [s for s in affordable if None in recorded[s] and flops(s) <= budgets.every_layout_flops]
    main = [problem for shape in affordable for problem in lying(shape)]
    others = [of(operator, dtype, s, i) for i in range(1, len(operator.layouts)) for s in cheap]
    return (*main, *others)


def distinct(operator: Operator, dtype: str, shapes: Sequence[tuple[int, ...]]) -> tuple[Problem, ...]:
    """The shapes in each layout that the dispatch tells apart: models do not extend from one to another."""
    found: dict[tuple[int, ...], Problem] = {}
    for shape, number in itertools.product(shapes, range(len(operator.layouts))):
        problem = of(operator, dtype, shape, number)
        found.setdefault(tuple(features(operator, problem).values()), problem)
    return tuple(found.values())


def sketch(
    operator: Operator, found: Sequence[Problem], budgets: Budgets, weigh: Callable[[Problem], float] = equal
) -> tuple[Problem, ...]:
    """The problems of a trial: the cheapest of each class and layout, then some that represent the rest; all, if they
    are few. weigh: as for `for_search`"""
    if len(found) <= FEW:
        return tuple(found)

    def cost(problem: Problem) -> float:
        return budgets.fixed_units.get("problem", 1.0) + operator.reference.work(problem) / budgets.flops_per_unit

    cheapest: dict[object, Problem] = {}
    of_class = classes(operator, found)
    for problem in sorted(found, key=cost):
        cheapest.setdefault(of_class[problem.label], problem)
        cheapest.setdefault(problem.options, problem)
    most = max(SKETCH * sum(map(cost, found)), sum(sorted(map(cost, found))[:FEW]))
    first = list(dict.fromkeys(cheapest.values()))
    return spread(found, cost, most, _apart(operator), first=first, thrift=THRIFT, weigh=weigh)


def final(
    operator: Operator,
    left: Sequence[Problem],
    wanted: Sequence[Problem],
    budgets: Budgets,
    seconds: float | None = None,
    weigh: Callable[[Problem], float] = equal,
) -> tuple[Problem, ...]:
    """Problems of finalists alone: those left out of trials, and problems that are too large for trials.

    If time is short, these are some that represent all of them.

    wanted: those of the job's shapes; seconds: budget of the finalists at each VLEN; None with a trial budget
    weigh: as for `for_search`
    """
    if not budgets.finalists_flops:
        return ()
    most = budgets.finalists_flops
    if seconds is not None and budgets.flops_per_s:
        most = budgets.flops_per_s * seconds
    one = max(budgets.compared_flops, most / 2)
    every = [*left, *(p for p in wanted if budgets.problem_flops < float(operator.reference.work(p)) <= one)]
    if not every:
        return ()
    # cost does not matter: the search's own shapes predict the largest ones least
    return spread(every, operator.reference.work, most, _apart(operator), thrift=0.0, weigh=weigh)
