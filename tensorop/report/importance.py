"""How much each tunable moved the cost in a search, by a forest fitted to its trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorop.model.trial import Finished, Trial
from tensorop.store.history import group_of

_FEWEST = 12  # trials below which a fit says nothing
_ARM = "template"


def parameters(ended: Sequence[Finished]) -> list[dict[str, Any]]:
    """For each search with enough passed trials: tunable -> share of the permutation importance; they sum to 1.

    Extremely randomised trees (Geurts, Ernst and Wehenkel 2006) on the logarithm of the cost; a column's importance
    is the loss of R^2 when it is shuffled (Breiman 2001). `score`: R^2 out of bag. A tunable that was never varied has
    no share; one that a template does not have counts as a value of its own.
    """
    out = []
    for group in dict.fromkeys(group_of(f.trial) for f in ended):
        mine = [f for f in ended if group_of(f.trial) == group and f.outcome.ok and f.score.cost]
        if len(mine) >= _FEWEST:
            stage, dtype, _ = group
            score, shares = _fit(mine)
            out.append(
                {"stage": stage.value, "dtype": dtype, "trials": len(mine), "score": score, "parameters": shares}
            )
    return out


def _fit(ended: Sequence[Finished]) -> tuple[float, dict[str, float]]:
    # imported here: it takes a second, and only reports need it
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.inspection import permutation_importance

    rows = [{_ARM: _arm(f.trial), **f.trial.point} for f in ended]
    names = sorted({name for row in rows for name in row}, key=lambda n: (n != _ARM, n))
    columns = {name: _numbers([row.get(name) for row in rows]) for name in names}
    varied = [name for name in names if len(set(columns[name])) > 1]
    if not varied:
        return 0.0, {}
    x = np.array([columns[name] for name in varied], dtype=float).T
    y = np.log([f.score.cost or math.nan for f in ended])
    forest = ExtraTreesRegressor(200, bootstrap=True, oob_score=True, random_state=0)
    forest.fit(x, y)
    found = np.maximum(permutation_importance(forest, x, y, n_repeats=10, random_state=0).importances_mean, 0)
    total = float(found.sum()) or 1.0
    shares = {name: float(value) / total for name, value in zip(varied, found, strict=True)}
    return float(forest.oob_score_), dict(sorted(shares.items(), key=lambda item: -item[1]))


def _arm(trial: Trial) -> str:
    kernel = trial.variant.kernel
    return kernel.template.name if trial.stage.of_kernels else str(kernel)


def _numbers(values: Sequence[Any]) -> list[float]:
    """Numbers as they are, -1 for an absent tunable, words by their order."""
    if all(isinstance(v, int) or v is None for v in values):
        return [-1.0 if v is None else float(v) for v in values]
    words = sorted({str(v) for v in values})
    return [float(words.index(str(v))) for v in values]
