"""Legal points as rows of numbers, for strategies that model the cost."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

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
    ranks = _ranks(space)
    columns: list[NDArray[np.float64]] = []
    for axis, (_, values) in enumerate(space.dimensions):
        if any(isinstance(value, str) for value in values):
            columns += [(ranks[:, axis] == word).astype(np.float64) for word in range(len(values))]
        else:
            columns.append(np.log2(1 + np.abs(np.array(values, dtype=np.float64)[ranks[:, axis]])))
    kept: list[NDArray[np.float64]] = []
    for column in (*columns, *(margin for margin, _ in _margins(space))):
        extent = np.ptp(column)
        scaled = (column - column.min()) / (extent or 1.0)
        if extent > 0 and not any(abs(np.corrcoef(scaled, other)[0, 1]) > ALIKE for other in kept):
            kept.append(scaled)
    return np.stack(kept or [np.zeros(space.size)], axis=1)


def fullness(space: Space) -> NDArray[np.float64]:
    """How much of registers and caches each legal point takes: a mean rank in [0, 1].

    The mean is over the constraints whose limit consists of facts, such as `mr * nr <= registers`. Without one, all
    points are equal.
    """
    taken = [rankdata(margin) / space.size for margin, limit in _margins(space) if limit]
    return np.asarray(np.mean(taken, axis=0) if taken else np.zeros(space.size), dtype=np.float64)


def _ranks(space: Space) -> NDArray[np.int64]:
    return np.array([space.coordinates(index) for index in range(space.size)], dtype=np.int64)


def _margins(space: Space) -> Iterator[tuple[NDArray[np.float64], bool]]:
    """For each comparison of two quantities, left over right, and whether the right is an upper limit made of facts."""
    ranks = _ranks(space)
    numbers: dict[str, Value | NDArray[np.float64]] = dict(space.facts)
    for axis, (name, values) in enumerate(space.dimensions):
        if not any(isinstance(value, str) for value in values):
            numbers[name] = np.array(values, dtype=np.float64)[ranks[:, axis]]
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
            named = {name.id for name in ast.walk(node.comparators[0]) if isinstance(name, ast.Name)}
            limit = isinstance(node.ops[0], (ast.LtE, ast.Lt)) and named - {"min", "max"} <= dict(space.facts).keys()
            yield np.log2(left / right) if positive else left - right, bool(limit and named and np.ptp(left) > 0)
