"""Random shapes on which variants are compared and measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.space.problems import of

SEED = 20240229


@dataclass(frozen=True)
class Draw:
    """A draw of log-uniform shapes in each layout; equal records draw equal shapes."""

    count: int  # in each layout
    seed: int = SEED
    longest: int = 4096  # a side
    most: float = math.inf  # flops
    least: float = 0.0  # flops, none has so few


def drawn(operator: Operator, dtype: str, draw: Draw) -> tuple[Problem, ...]:
    """The problems of a draw, layout by layout; without those that the direct variant always serves."""
    rng = np.random.default_rng(draw.seed)
    sides = _sides(rng, len(operator.dims), math.log(draw.longest), 1 if operator.shapes.drawn else 256)
    least = max(operator.direct.always if operator.direct else -math.inf, draw.least)
    if draw.most <= least:
        raise ValueError(f"no shape has at most {draw.most:g} flops and more than {least:g}")
    found: list[Problem] = []
    for layout in range(len(operator.layouts)):
        of_layout: list[Problem] = []
        while len(of_layout) < draw.count:
            shape = operator.shapes.drawn_from(next(sides), rng)
            if operator.shapes.wrong(shape):
                continue
            problem = of(operator, dtype, shape, layout)
            if least < float(operator.reference.work(problem)) <= draw.most:
                of_layout.append(problem)
        found += of_layout
    return tuple(found)


def _sides(rng: np.random.Generator, dims: int, longest: float, block: int) -> Iterator[list[int]]:
    """Log-uniform sides, drawn in blocks; the sequence is that of single draws."""
    while True:
        each = np.exp(rng.uniform(0, longest, (block, dims)))
        yield from np.maximum(np.rint(each), 1).astype(int).tolist()


def chosen_for(operator: Operator, problem: Problem) -> bool:
    """Whether the library chooses a variant for a problem; the direct variant always serves the smallest."""
    return operator.direct is None or float(operator.reference.work(problem)) > operator.direct.always
