"""The problems a job tunes for: its shapes in the operator's layouts, few enough for the target."""

from __future__ import annotations

from tensorop.model.operator import Operator
from tensorop.model.problem import Problem

# Flops of one problem that a search can afford: on a clock tens of milliseconds, under an emulator about a second.
MOST_WORK = {"ns": 3e9, "modelled-cycles": 4e7}
# Only cheap problems are tuned in every layout; a layout changes packing, which large problems hide.
EVERY_LAYOUT = {"ns": 5e7, "modelled-cycles": 9e6}


def of(operator: Operator, dtype: str, shape: tuple[int, ...], layout: int = 0) -> Problem:
    """A shape in one of the operator's layouts."""
    return Problem.of(operator.name, dtype, dict(zip(operator.dims, shape, strict=True)), operator.layouts[layout])


def for_search(operator: Operator, dtype: str, shapes: tuple[tuple[int, ...], ...], unit: str) -> tuple[Problem, ...]:
    """The problems of the blocking search, the first layout of all shapes first.

    Shapes beyond the target's means are left out, unless nothing else is there: then the smallest is taken.
    """
    work = {shape: float(operator.reference.work(of(operator, dtype, shape))) for shape in shapes}
    affordable = [s for s in shapes if work[s] <= MOST_WORK[unit]] or [min(shapes, key=lambda s: work[s])]
    cheap = [s for s in affordable if work[s] <= EVERY_LAYOUT[unit]]
    main = [of(operator, dtype, shape) for shape in affordable]
    others = [of(operator, dtype, s, i) for i in range(1, len(operator.layouts)) for s in cheap]
    return (*main, *others)
