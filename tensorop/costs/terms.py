"""Evaluates for many problems at once what a variant's cost is made of, and where the direct variant may serve.

Cost terms name what the operator's driver decides (`decisions`). Expressions are parsed once and evaluated over columns
of features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.costs import decisions
from tensorop.errors import SpecError
from tensorop.model.expression import Expression, parse
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point, Value
from tensorop.model.problem import Problem
from tensorop.render import instantiate
from tensorop.space import problems

# Decisions that count work. Vectors: multiplied, loaded, of C, copied, and of what no kernel computes. Elements: loaded
# to multiply by, those of them that lie in no panel, transposed, and gathered one by one. Steps along the inner
# dimension of all tiles, calls of the micro-kernel, runs of copied elements, blocks.
WORK = (
    "multiplies", "loads", "broadcasts", "reads_apart", "steps", "tiles", "updates", "copied", "runs", "transposed",
    "gathered", "blocks", "other",
)  # fmt: skip
INDEPENDENT = (2, 4, 8)  # multiplies of a step that do not wait for each other, at most
LEVELS = ("l1", "whole_l2", "whole_l3")
Columns = Mapping[str, NDArray[Any]]  # name -> its value for each problem
_FLOPS, _BYTES = "work()", "traffic()"  # names that no feature can have


def quantities(operator: Operator, of: Sequence[Problem]) -> dict[str, NDArray[Any]]:
    """What terms are made of: name -> its value for each problem.

    These are the features (integers of any size), and without `decide.c.j2` also the contract's figures.
    """
    seen = [problems.features(operator, problem) for problem in of]
    found = {name: np.array([of_one[name] for of_one in seen]) for name in seen[0]}
    if not instantiate.decides(operator):
        found |= {_FLOPS: np.array([*map(operator.reference.work, of)])}
        found |= {_BYTES: np.array([*map(operator.reference.traffic, of)])}
    return found


def term_matrix(
    operator: Operator, platform: Platform, variant: Variant, known: Columns, vlen: int = 0
) -> NDArray[np.float64]:
    """Cost terms of a variant, problems x terms. Arguments and errors as `named_terms`."""
    return np.stack([*named_terms(operator, platform, variant, known, vlen).values()], axis=1)


def named_terms(
    operator: Operator, platform: Platform, variant: Variant, known: Columns, vlen: int = 0
) -> dict[str, NDArray[np.float64]]:
    """Cost terms of a variant: name -> values of the problems, not negative.

    The first are the core's, then come those of operator.yaml.

    known: name -> value of each problem, as `quantities` has them. Terms see features that are not computed from
    others, and then what the driver decides, which may replace them: m and n of a product that is computed as its
    transpose
    vlen: bits; 0: the platform's first

    Raises SpecError where an expression of operator.yaml cannot be read or evaluated, or `decide.c.j2` is wrong.
    """
    numbers = constants(operator, platform, variant, vlen)
    columns, count = columns_of(operator, known)
    if (text := instantiate.decide(operator, platform, variant)) is not None:
        columns |= {name: of[0] for name, of in decisions.compiled(text).of(numbers, columns).items()}
        found = _physical(numbers, columns)
    else:
        flops, moved = (np.asarray(known[name], dtype=np.float64) for name in (_FLOPS, _BYTES))
        found = {"flops": flops, "bytes": moved}
        found |= {f"beyond_{level}": moved * (moved > int(numbers[level])) for level in LEVELS}
    found = {"call": np.ones(count), **found, **_own(operator, numbers, columns, count)}
    return {name: np.maximum(values, 0.0) for name, values in found.items()}


def of_blockings(
    operator: Operator, platform: Platform, kernel: Kernel, points: Sequence[Point], known: Columns, vlen: int = 0
) -> dict[str, NDArray[np.float64]]:
    """The core's terms of a kernel's blockings, blockings x problems; empty for an operator without `decide.c.j2`.

    Arguments and errors as `named_terms`.
    """
    variant = Variant(kernel, points[0])
    text = instantiate.decide(operator, platform, variant)
    if text is None:
        return {}
    of_points = {name: np.array([point[name] for point in points]) for name in points[0]}
    numbers = constants(operator, platform, variant, vlen)
    columns, _ = columns_of(operator, known)
    found = _physical(numbers, decisions.compiled(text).of({**numbers, **of_points}, columns))
    return {"call": np.ones((len(points), len(next(iter(columns.values()))))), **found}


def _physical(
    numbers: Mapping[str, Value], columns: Mapping[str, NDArray[np.float64]]
) -> dict[str, NDArray[np.float64]]:
    """Terms of what a driver's decisions count: WORK, steps that wait, and bytes from beyond each cache level.

    These bytes are `NAME_moved` where `NAME_kept`, what lies between two uses, is larger than the level.
    """
    found = {name: columns[name] for name in WORK if name in columns}
    if {"steps", "multiplies"} <= found.keys():
        for most in INDEPENDENT:
            found[f"waits_{most}"] = found["steps"] * (found["multiplies"] <= most * found["steps"])
    kept = {name.removesuffix("_kept"): of for name, of in columns.items() if name.endswith("_kept")}
    for level in LEVELS if kept else ():
        moved = [columns[f"{name}_moved"] * (of > int(numbers[level])) for name, of in kept.items()]
        found[f"beyond_{level}"] = np.sum(moved, axis=0)
    return found


def _own(
    operator: Operator, numbers: Mapping[str, Value], columns: Mapping[str, NDArray[np.float64]], count: int
) -> dict[str, NDArray[np.float64]]:
    """The terms of operator.yaml."""
    values: dict[str, Value | NDArray[np.float64]] = {**numbers, **columns}
    kinds = (*((name, type(value)) for name, value in numbers.items()), *((name, int) for name in columns))
    try:
        where, of_terms = _read(tuple(operator.costs.where.items()), tuple(operator.costs.terms.items()), kinds)
    except SpecError as error:
        raise SpecError(f"{operator.folder / 'operator.yaml'}: {error.message}", hint=error.hint) from None
    try:
        for name, expression in where:
            values[name] = expression.column(values)
        return {name: np.broadcast_to(expression.column(values), count) for name, expression in of_terms}
    except (ValueError, ArithmeticError) as error:
        raise SpecError(f"{operator.folder / 'operator.yaml'}: key 'costs': {error}") from None


def columns_of(operator: Operator, features: Columns) -> tuple[dict[str, NDArray[np.float64]], int]:
    """The features that expressions may name, and the number of problems."""
    columns = {name: np.asarray(features[name], dtype=np.float64) for name in operator.seen}
    return columns, len(next(iter(columns.values())))


def constants(operator: Operator, platform: Platform, variant: Variant, vlen: int = 0) -> dict[str, Value]:
    """The names of a variant that terms may use.

    These are its tunables, the platform's facts, `reads_*`, `masked`, `lengths` (1 where a mask is a vector length),
    `lanes` and `short_lanes` (elements of the chosen and the shortest vectors), and `whole_l1`, `whole_l2`, `whole_l3`.
    """
    dtype = variant.kernel.dtype
    facts = instantiate.facts(platform, dtype, variant.point)
    short, primitives = instantiate.narrow(platform, variant.kernel), platform.primitives_of(dtype, variant.point)
    lanes = platform.lanes(dtype, variant.point, vlen)
    return {
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
    """`whole_l1`, `whole_l2`, `whole_l3`: bytes of each cache level that one thread may fill.

    Under a board model these are the model's caches. A missing level counts as the one before it.
    """
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
