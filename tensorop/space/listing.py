"""The weights that the problems of `--shapes @FILE` have in a search."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tensorop.model.budget import Budgets
from tensorop.model.listed import Listed
from tensorop.model.operator import Operator
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.shape import Shape
from tensorop.space import problems

_LEAST = 1e-3  # weight of the lightest problem, so that a class of such problems still counts


@dataclass(frozen=True)
class Weights:
    """The weights of a dtype's problems: 1 is the mean of the files' calls, and of each shape outside files."""

    operator: Operator
    dtype: str
    listed: Listed
    budgets: Budgets

    @cached_property
    def _calls(self) -> list[tuple[frozenset[Shape], Point | None, float]]:
        """Shape and smaller stand-in, how the operands lie, weight."""
        found = self.listed.of(self.dtype)
        whole = sum(one.weight for one in found)
        return [
            (
                frozenset((one.shape, problems.proxy(self.operator, self.dtype, one.shape, self.budgets))),
                one.options,
                one.weight * len(found) / whole,
            )
            for one in found
        ]

    def __call__(self, problem: Problem) -> float:
        if not self._calls:
            return 1.0
        shape = self.operator.shapes.of(problem.sizes)
        own = [weight for shapes, way, weight in self._calls if shape in shapes and way in (None, problem.options)]
        return max(sum(own), _LEAST) if own else 1.0
