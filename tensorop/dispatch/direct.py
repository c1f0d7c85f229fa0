"""Where the direct variant may serve: `direct.serves` of operator.yaml.

A leaf of a tree may cover problems that the direct variant must not serve, so `guarded` puts a test before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.costs.terms import columns_of
from tensorop.errors import SpecError
from tensorop.model.expression import parse
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Value
from tensorop.model.problem import Problem
from tensorop.model.winner import Leaf, Split
from tensorop.render import instantiate
from tensorop.space import problems

_NAME = re.compile(r"[A-Za-z_]\w*")


def served(operator: Operator, platform: Platform, problem: Problem) -> bool:
    """Whether the direct variant may serve a problem."""
    columns = {name: np.array([value]) for name, value in problems.features(operator, problem).items()}
    return bool(may_serve(operator, platform, problem.dtype, columns)[0])


def may_serve(
    operator: Operator, platform: Platform, dtype: str, features: Mapping[str, NDArray[Any]]
) -> NDArray[np.bool_]:
    """For each problem, whether the direct variant may serve it (`serves` of operator.yaml).

    features: as in `term_matrix`

    Raises SpecError where the expression cannot be read or evaluated.
    """
    columns, count = columns_of(operator, features)
    if operator.direct is None:
        return np.zeros(count, dtype=np.bool_)
    values: dict[str, Value | NDArray[np.float64]] = {**instantiate.facts(platform, dtype, {}), **columns}
    try:
        found = parse(operator.direct.serves, dict.fromkeys(values, int)).column(values)
    except (ValueError, ArithmeticError, SpecError) as error:
        raise SpecError(f"{operator.folder / 'operator.yaml'}: key 'direct.serves': {error}") from None
    return np.broadcast_to(found != 0, count)


def serves_condition(operator: Operator, platform: Platform, dtype: str) -> str:
    """`serves` as an expression over dispatch features, with the platform's facts replaced by their numbers."""
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
    """The tree with `test` before each leaf of the direct variant.

    Where the test is false, the best other variant serves. It is the best on the leaf's barred problems; without such
    problems, the best on the leaf's problems; for an empty leaf, the best on all problems.

    losses: problems x variants, log(cost / best cost); barred: problems that the direct variant must not serve
    columns: the problems' features
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
