"""The direct variant is called only where `serves` of operator.yaml is true: a leaf of a tree reaches further."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.errors import SpecError
from tensorop.model.expression import parse
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Value
from tensorop.model.problem import Problem
from tensorop.model.winner import Leaf, Split
from tensorop.render import instantiate
from tensorop.space.problems import features

_NAME = re.compile(r"[A-Za-z_]\w*")


def directly(operator: Operator, platform: Platform, problem: Problem) -> bool:
    """Whether the direct variant may serve a problem."""
    columns = {name: np.array([value]) for name, value in features(operator, problem).items()}
    return bool(over(operator, platform, problem.dtype, columns)[0])


def over(operator: Operator, platform: Platform, dtype: str, features: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """By problem, whether the direct variant may serve it: `serves` of operator.yaml. features: as in `terms`.

    Raises SpecError where the expression cannot be read or evaluated.
    """
    columns = {name: np.asarray(features[name], dtype=np.float64) for name in operator.seen}
    count = len(next(iter(columns.values())))
    if operator.direct is None:
        return np.zeros(count, dtype=np.bool_)
    values: dict[str, Value | NDArray[np.float64]] = {**instantiate.facts(platform, dtype, {}), **columns}
    try:
        found = parse(operator.direct.serves, dict.fromkeys(values, int)).column(values)
    except (ValueError, ArithmeticError, SpecError) as error:
        raise SpecError(f"{operator.folder / 'operator.yaml'}: key 'direct.serves': {error}") from None
    return np.broadcast_to(found != 0, count)


def condition(operator: Operator, platform: Platform, dtype: str) -> str:
    """`serves` as an expression over dispatch features alone: the platform's facts are numbers in it."""
    assert operator.direct is not None
    facts = {name: str(v) for name, v in instantiate.facts(platform, dtype, {}).items() if name not in operator.seen}
    return _NAME.sub(lambda found: facts.get(found[0], found[0]), operator.direct.serves)


def guarded(
    root: Leaf | Split,
    test: str,
    direct: int,
    losses: NDArray[np.float64],
    barred: NDArray[np.bool_],
    columns: Mapping[str, NDArray[Any]],
) -> Leaf | Split:
    """The tree that asks `test` before it sends a problem to the direct variant; where that is not true the problem
    goes to the best of the others: on the problems of the leaf that are barred, or on all of it, or on all.

    losses: problems x variants, logarithms of cost over the best; barred: problems the direct variant may not serve;
    columns: their features
    """

    def walk(node: Leaf | Split, rows: NDArray[np.bool_]) -> Leaf | Split:
        if isinstance(node, Split):
            low = columns[node.feature] <= node.threshold
            return replace(node, low=walk(node.low, rows & low), high=walk(node.high, rows & ~low))
        if node.variant != direct:
            return node
        judged = next((some for some in (rows & barred, rows) if some.any()), np.ones_like(rows))
        others = losses[judged].sum(axis=0)
        others[direct] = np.inf
        return Split(test, 0, Leaf(int(others.argmin())), node)

    return walk(root, np.ones(len(losses), dtype=np.bool_))
