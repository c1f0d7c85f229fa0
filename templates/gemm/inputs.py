"""Matrices for calls of gemm: numbers of each distribution."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tensorop.model import drawing
from tensorop.model.matrix import Array
from tensorop.model.point import Value

from .oracle import Product

DISTRIBUTIONS = ("integer", "exact", "normal", "wide", "special")


def matrices(
    p: Product, rng: np.random.Generator, distribution: str, options: Mapping[str, Value]
) -> tuple[Array, Array, Array]:
    """A, B and C, the last as it is where it is read."""
    if distribution == "integer":
        a, b = (rng.integers(-4, 5, shape).astype(np.float64) for shape in p.shapes[:2])
        return a, b, _small(p, rng)
    if p.operands.whole:
        return _integers(p, rng, distribution)
    if distribution == "exact":
        return _exact(p, rng)
    if distribution == "normal" and "exp_A" in options:
        each = zip(p.shapes, ("exp_A", "exp_B", "exp_C"), strict=True)
        a, b, c = (drawing.scaled(shape, int(options.get(name, 0)), rng) for shape, name in each)
        return a, b, c
    a, b = (rng.standard_normal(shape) for shape in p.shapes[:2])
    c = rng.standard_normal(p.c.shape) if p.beta else np.zeros(p.c.shape)
    if distribution == "wide":
        _widen(p, a, b, c, rng)
    elif distribution == "special":
        _sprinkle(p, a, b, c, rng)
    return a, b, c


def _exact(p: Product, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """A or B of whole numbers of 2/3 of C's bits or all of its own, the other one so sparse that every sum fits."""
    bits = min(p.operands.precision, p.accumulator.precision * 2 // 3)
    many = 2 ** (p.accumulator.precision - 4 - bits)  # terms of a sum
    wide = int(rng.integers(2))
    both = [rng.integers(-1, 2, shape) * (rng.random(shape) < many / 2 / max(p.k, 1)) * 1.0 for shape in p.shapes[:2]]
    both[wide] = rng.integers(-(2**bits), 2**bits + 1, p.shapes[wide]).astype(np.float64)
    return both[0], both[1], _small(p, rng)


def _small(p: Product, rng: np.random.Generator) -> Array:
    """C of small whole numbers where it is read."""
    return rng.integers(-4, 5, p.c.shape).astype(np.float64) if p.beta else np.zeros(p.c.shape)


def _integers(p: Product, rng: np.random.Generator, distribution: str) -> tuple[Array, Array, Array]:
    low, high = (int(x) for x in (np.iinfo(p.operands.storage).min, np.iinfo(p.operands.storage).max))  # type: ignore[type-var]
    a, b = (rng.integers(low, high, shape, endpoint=True) for shape in p.shapes[:2])
    c = rng.integers(-1000, 1001, p.shapes[2])
    if distribution == "wide":
        a, b = (np.where(x < 0, low, high) for x in (a, b))
        c = rng.integers(-(2**31), 2**31, c.shape)
    elif distribution == "special":
        a[rng.random(p.m) < 0.5] = low
        b[:, rng.random(p.n) < 0.5] = low
    return a, b, c


def _widen(p: Product, a: Array, b: Array, c: Array, rng: np.random.Generator) -> None:
    half = p.k // 2
    a[:, half : 2 * half] = a[:, :half]
    b[half : 2 * half] = -b[:half] * (1 + 1e-3 * rng.standard_normal((half, p.n)))
    reach = min(p.operands.overflow, 1024) // 7  # f32 18, f64 146
    rows, columns, steps = (np.exp2(rng.integers(-reach, reach + 1, count)) for count in (p.m, p.n, p.k))
    a *= rows[:, None] * steps
    b *= columns / steps[:, None]
    c *= rows[:, None] * columns


def _sprinkle(p: Product, a: Array, b: Array, c: Array, rng: np.random.Generator) -> None:
    """Each kind of special value in a row or column of its own, as far as there are rows and columns."""
    rows, columns = rng.permutation(p.m), rng.permutation(p.n)
    denormal = 2.0 ** (p.operands.smallest + p.operands.precision - 1) / 64
    if p.k and p.m:
        steps = rng.integers(0, p.k, 4)
        kinds = rng.permutation(4)  # of few rows, each kind must get its chance
        for row, which in zip(rows, kinds, strict=False):
            if which == 0:
                a[row, steps[0]] = np.nan
            elif which == 1:
                a[row, steps[1]] = rng.choice([np.inf, -np.inf])
            elif which == 2:
                a[row] *= denormal
                c[row] *= denormal
            else:
                a[row, steps[3]] = -0.0
    if p.k and p.n:
        steps = rng.integers(0, p.k, 3)
        values = rng.permutation([np.nan, np.inf, -0.0])
        for column, step, value in zip(columns[1:], steps, values, strict=False):
            b[step, column] = value
    if p.m and p.n:
        c[rng.integers(p.m), rng.integers(p.n)] = rng.choice([np.nan, np.inf, -np.inf, -0.0])
