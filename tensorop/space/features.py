"""Legal points as rows of numbers, for strategies that model the cost."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tensorop.errors import SpecError
from tensorop.model.expression import parse
from tensorop.model.point import Value
from tensorop.space.space import Space

ALIKE = 0.999  # correlation above which only the first of two columns is kept


def features(space: Space) -> NDArray[np.float64]:
    """One row in [0, 1] for each legal point.

    Columns are the logarithms of its numbers, one column for each word, and the distance to each constraint that
    compares two quantities, since kernels are fast near their limits.
    """
    ranks = np.array([space.coordinates(index) for index in range(space.size)], dtype=np.int64)
    columns: list[NDArray[np.float64]] = []
    numbers: dict[str, Value | NDArray[np.float64]] = dict(space.facts)
    for axis, (name, values) in enumerate(space.dimensions):
        if any(isinstance(value, str) for value in values):
            columns += [(ranks[:, axis] == word).astype(np.float64) for word in range(len(values))]
        else:
            column = np.array(values, dtype=np.float64)[ranks[:, axis]]
            numbers[name] = column
            columns.append(np.log2(1 + np.abs(column)))
    kept: list[NDArray[np.float64]] = []
    for column in (*columns, *_margins(space, numbers)):
        extent = np.ptp(column)
        scaled = (column - column.min()) / (extent or 1.0)
        if extent > 0 and not any(abs(np.corrcoef(scaled, other)[0, 1]) > ALIKE for other in kept):
            kept.append(scaled)
    return np.stack(kept or [np.zeros(space.size)], axis=1)


def _margins(space: Space, numbers: dict[str, Value | NDArray[np.float64]]) -> Iterator[NDArray[np.float64]]:
    kinds: dict[str, type] = {name: str if isinstance(value, str) else int for name, value in numbers.items()}
    for constraint in space.constraints:
        for node in ast.walk(ast.parse(constraint.must.strip(), mode="eval")):
            if not isinstance(node, ast.Compare) or len(node.ops) > 1:
                continue
            if not isinstance(node.ops[0], (ast.LtE, ast.GtE, ast.Lt, ast.Gt)):
                continue
            try:
                sides = [parse(ast.unparse(side), kinds).column(numbers) for side in (node.left, node.comparators[0])]
            except (SpecError, ArithmeticError, ValueError, TypeError):  # for a word, or a value without a column
                continue
            left, right = (np.broadcast_to(side, space.size) for side in sides)
            positive = left.min() > 0 and right.min() > 0
            yield np.log2(left / right) if positive else left - right
