"""The problems a job tunes for: its shapes in the operator's layouts, few enough for the target."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import psutil

from tensorop.errors import SpecError, UsageError
from tensorop.model.budget import Budgets
from tensorop.model.expression import Expression, parse
from tensorop.model.operator import Operator
from tensorop.model.point import Value
from tensorop.model.problem import Problem

LONGEST_S = 3600.0  # of a problem that is run whole
CHEAP = 40  # what costs no more than this part of all is never left out
FINALISTS = 10  # of a search, that large problems are tried on


def of(operator: Operator, dtype: str, shape: tuple[int, ...], layout: int = 0) -> Problem:
    """A shape in one of the operator's layouts."""
    return operator.reference.problem(dtype, operator.shapes.named(shape), operator.layouts[layout])


def numbered(operator: Operator) -> str:
    """The operator's layouts with the numbers that they are asked for by."""
    return ", ".join(f"{number} ({written(layout)})" for number, layout in enumerate(operator.layouts))


def written(layout: Mapping[str, Value]) -> str:
    """`row`, with transposes as in `row,tb=1`."""
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
    """Raises UsageError for a shape that cannot be run whole here: its operands take more than half of the free memory,
    or its run under a board model more than an hour.

    a_second: flops, 0 where time is no matter; configurations: how many each shape is run at.
    """
    free = psutil.virtual_memory().available
    for shape in shapes:
        for dtype in dtypes:
            size = operator.reference.traffic(of(operator, dtype, shape))
            if size > free / 2:
                raise UsageError(
                    f"shape {operator.shapes.text(shape)}: its {dtype} operands take {size / 2**30:.3g} GiB, more than "
                    f"half of the {free / 2**30:.3g} GiB that are free",
                    hint="give a smaller one; the library computes any size where there is room for it",
                )
            seconds = configurations * work(operator, dtype, shape) / a_second if a_second else 0.0
            if seconds > LONGEST_S:
                raise UsageError(
                    f"shape {operator.shapes.text(shape)}: its run in {dtype} under the emulator would take some "
                    f"{seconds / 3600:.3g} hours; at most {LONGEST_S / 3600:g} is waited for",
                    hint="give a smaller one of its form, or run it on a board with --runner ssh://HOST",
                )


def features(operator: Operator, problem: Problem) -> dict[str, int]:
    """What the library's dispatch sees of a problem: the reference's own features, and expressions over them."""
    seen = operator.reference.features(problem)
    derived = {}
    for name, text in operator.derived.items():
        try:
            derived[name] = int(_feature(text, tuple(sorted(seen))).value(seen))
        except ZeroDivisionError:
            where = f"{operator.folder / 'operator.yaml'}: key 'features.{name}'"
            raise SpecError(f"{where}: '{text}' divides by zero for {problem.label}") from None
    return {**seen, **derived}


def feature(text: str, features: Mapping[str, int]) -> int:
    """What a tree splits on: the value of a feature, or of an expression over them."""
    return features[text] if text in features else int(_feature(text, tuple(sorted(features))).value(features))


@lru_cache(maxsize=64)
def _feature(text: str, names: tuple[str, ...]) -> Expression:
    return parse(text, dict.fromkeys(names, int))


def within(
    operator: Operator, dtype: str, shapes: tuple[tuple[int, ...], ...], most: float
) -> tuple[tuple[int, ...], ...]:
    """The shapes of at most so many flops; the smallest one alone when none is."""
    found = tuple(shape for shape in shapes if work(operator, dtype, shape) <= most)
    return found or (min(shapes, key=lambda s: work(operator, dtype, s)),)


def proxy(operator: Operator, dtype: str, shape: tuple[int, ...], budgets: Budgets) -> tuple[int, ...]:
    """The shape, or where a search cannot afford it a smaller one of its form, as the operator has it."""
    while work(operator, dtype, shape) > budgets.problem_flops:
        smaller = operator.reference.proxy(operator.shapes.named(shape))
        if smaller is None:
            break
        shape = operator.shapes.of(smaller)
    return shape


def spread(
    shapes: tuple[tuple[int, ...], ...],
    cost: Callable[[tuple[int, ...]], float],
    most: float,
    free: float = 0.0,
    thrifty: bool = True,
) -> tuple[tuple[int, ...], ...]:
    """Those of the shapes that represent all of them best and cost no more than `most` together.

    The cheapest come first, all that cost no more than `free` while they fit. Then always the one that brings all
    shapes nearest to a chosen one, on logarithmic axes, for what it costs if `thrifty`, else at any cost; a shape given
    several times weighs as much. The chosen ones are given once, in their order.
    """
    wanted = tuple(dict.fromkeys(shapes))
    if sum(map(cost, wanted)) <= most:
        return wanted
    chosen: list[tuple[int, ...]] = []
    left = most
    for shape in sorted(wanted, key=cost):
        if not chosen or cost(shape) <= min(free, left):
            chosen.append(shape)
            left -= cost(shape)
    while fitting := [shape for shape in wanted if shape not in chosen and cost(shape) <= left]:
        far = [min(distance(shape, other) for other in chosen) for shape in shapes]

        def gain(new: tuple[int, ...], far: list[float] = far) -> float:
            nearer = sum(max(0.0, d - distance(shape, new)) for shape, d in zip(shapes, far, strict=True))
            return nearer / cost(new) if thrifty else nearer

        chosen.append(max(fitting, key=gain))
        left -= cost(chosen[-1])
    return tuple(shape for shape in wanted if shape in chosen)


def distance(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """The distance of two shapes on logarithmic axes."""
    octaves = [[math.log2(max(side, 0.5)) for side in shape] for shape in (one, other)]  # an attribute may be 0
    return math.dist(*octaves)


def for_search(
    operator: Operator, dtype: str, shapes: tuple[tuple[int, ...], ...], budgets: Budgets
) -> tuple[Problem, ...]:
    """The problems of the blocking search, the first layout of all shapes first.

    Shapes beyond the target's budgets have a `proxy`, and `large` takes some of them up.
    """
    wanted = tuple(proxy(operator, dtype, shape, budgets) for shape in shapes)
    most = budgets.all_problems_flops
    affordable = spread(wanted, lambda shape: work(operator, dtype, shape), most, most / CHEAP)
    cheap = [s for s in affordable if work(operator, dtype, s) <= budgets.every_layout_flops]
    main = [of(operator, dtype, shape) for shape in affordable]
    others = [of(operator, dtype, s, i) for i in range(1, len(operator.layouts)) for s in cheap]
    return (*main, *others)


def large(
    operator: Operator, dtype: str, shapes: tuple[tuple[int, ...], ...], budgets: Budgets, seconds: float | None = None
) -> tuple[Problem, ...]:
    """Shapes that are too large for the search and that its finalists can afford, the most telling of all such.

    seconds: that the finalists have; None where only trials are counted.
    """
    if not budgets.finalists_flops:
        return ()
    most = max(budgets.finalists_flops, budgets.flops_per_s * (seconds or 0.0))
    if seconds is not None and budgets.flops_per_s:
        most = min(most, FINALISTS * budgets.flops_per_s * seconds)  # what one of them gets through in all of it
    one = max(budgets.compared_flops, most / 2)
    found = tuple(s for s in shapes if budgets.problem_flops < work(operator, dtype, s) <= one)
    if not found:
        return ()
    # the largest are the ones that the search's own shapes say least of
    chosen = spread(found, lambda shape: work(operator, dtype, shape), most, thrifty=False)
    return tuple(of(operator, dtype, shape) for shape in chosen)
