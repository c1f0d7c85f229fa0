"""The terms of a variant's cost on problems: the operator's expressions, read once and evaluated over columns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.errors import SpecError
from tensorop.model.expression import Expression, parse
from tensorop.model.kernel import Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Value
from tensorop.render import instantiate


def terms(
    operator: Operator,
    platform: Platform,
    dtype: str,
    variant: Variant,
    features: Mapping[str, NDArray[Any]],
    vlen: int = 0,
) -> NDArray[np.float64]:
    """Problems x terms, not negative. features: by name, of each problem, of which
    terms see those that are no expressions of others; vlen: bits, 0 for the platform's first.

    Raises SpecError where an expression of operator.yaml cannot be read or evaluated.
    """
    numbers = constants(operator, platform, dtype, variant, vlen)
    columns = {name: np.asarray(features[name], dtype=np.float64) for name in operator.seen}
    count = len(next(iter(columns.values())))
    values: dict[str, Value | NDArray[np.float64]] = {**numbers, **columns}
    kinds = (*((name, type(value)) for name, value in numbers.items()), *((name, int) for name in columns))
    try:
        where, of_terms = _read(tuple(operator.costs.where.items()), tuple(operator.costs.terms.items()), kinds)
    except SpecError as error:
        raise SpecError(f"{operator.folder / 'operator.yaml'}: {error.message}", hint=error.hint) from None
    try:
        for name, expression in where:
            values[name] = expression.column(values)
        found = [np.broadcast_to(expression.column(values), count) for _, expression in of_terms]
    except (ValueError, ArithmeticError) as error:
        raise SpecError(f"{operator.folder / 'operator.yaml'}: key 'costs': {error}") from None
    return np.maximum(np.stack(found, axis=1), 0.0)


def constants(
    operator: Operator,
    platform: Platform,
    dtype: str,
    variant: Variant,
    vlen: int = 0,
) -> dict[str, Value]:
    """What terms may name of a variant: its point, the platform's facts, `reads_*`, `masked`, `lengths` (whether masks
    are lengths), `lanes` and `short_lanes` (elements of the chosen and of the shortest vectors), `whole_l1`,
    `whole_l2`, `whole_l3` (bytes) of the caches that a thread alone may fill."""
    facts = instantiate.facts(platform, dtype, variant.point)
    short, primitives = instantiate.narrow(platform, variant.kernel), platform.primitives_of(dtype, variant.point)
    lanes = platform.lanes(dtype, variant.point, vlen)
    return {
        **operator.costs.absent,
        **facts,
        **_whole(platform),
        **instantiate.defaults(operator, platform, dtype, variant.point),
        **{f"reads_{name}": how for name, how in variant.template.reads.items()},
        "masked": int(primitives.masked),
        "lengths": int(primitives.masked and primitives.predicate == "size_t"),
        "lanes": lanes,
        "short_lanes": lanes if short is None else platform.lanes(dtype, short.configuration, vlen),
    }


def _whole(platform: Platform) -> dict[str, int]:
    """`whole_l1`, `whole_l2`, `whole_l3`: bytes of each level that one thread alone may fill; of a board model those it
    has. Where there is no such level, of the one before it."""
    memory = platform.board["memory"] if platform.board else {}
    share = float(memory["share"]["value"]) if memory.get("share") else 1.0
    found, last = {}, 32 << 10
    for level in ("l1", "l2", "l3"):
        if level not in platform.unmodelled_caches and (cache := platform.caches.get(level)):
            last = max(round(cache.size * (share if level == "l2" else 1.0)), last)
        found[f"whole_{level}"] = last
    return found


@lru_cache(maxsize=256)
def _read(
    where: tuple[tuple[str, str], ...], of_terms: tuple[tuple[str, str], ...], kinds: tuple[tuple[str, type], ...]
) -> tuple[tuple[tuple[str, Expression], ...], tuple[tuple[str, Expression], ...]]:
    known = dict(kinds)
    read = []
    for name, text in where:
        read.append((name, _parsed(f"costs.where.{name}", text, known)))
        known[name] = int
    return tuple(read), tuple((name, _parsed(f"costs.terms.{name}", text, known)) for name, text in of_terms)


def _parsed(key: str, text: str, known: Mapping[str, type]) -> Expression:
    try:
        return parse(text, known)
    except SpecError as error:
        raise SpecError(f"key '{key}': {error.message}", hint=error.hint) from None
