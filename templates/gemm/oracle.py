"""The oracle of gemm: what C must be, and how far from it an element may lie. It reads a problem once, as a `Product`.

A dtype is the number format of A and B. C, alpha and beta are of the same, but of i8 (i32; sums are modulo 2^32) and of
bf16 and f16 (f32).

The oracle sums in the next wider type (f32 in float64, f64 in the 64-bit significand of long double, integers in int64)
with NumPy's own loops and never calls a BLAS, so that it stays independent of what it judges, a preloaded library
included. Large f64 products are summed by short blocks of k in float64 and over the blocks in long double, many times
as fast; the blocks' rounding is part of the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorop.model.matrix import Array, Matrix
from tensorop.model.number import NUMBERS, Number

SUMS = {"i8": "i32", "bf16": "f32", "f16": "f32"}  # dtypes whose C is of another format than A and B
WIDER: dict[str, type[np.floating[Any]]] = {"f32": np.float64, "f64": np.longdouble}
LAYOUTS = ("row", "col")
MUCH = 2e7  # multiplications above which f64 is summed by blocks
DEPTH = 32  # of such a block
TURNED_FROM = 8  # rows of A from which the oracle's products read B along k
LARGE = 1 << 16  # elements of B from which those of fewer rows add up rows of B
assert np.finfo(np.longdouble).nmant >= 63, "the f64 oracle needs a long double with 64 bits of significand"


@dataclass(frozen=True)
class Product:
    """A problem, read once."""

    m: int
    n: int
    k: int
    dtype: str
    by_column: bool
    ta: bool
    tb: bool
    alpha: float
    beta: float
    a: Matrix
    b: Matrix
    c: Matrix

    @property
    def operands(self) -> Number:
        return NUMBERS[self.dtype]

    @property
    def accumulator(self) -> Number:
        """Of C and the coefficients."""
        return accumulator(self.dtype)

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        return self.a.shape, self.b.shape, self.c.shape


def accumulator(dtype: str) -> Number:
    """The number format of C."""
    return NUMBERS[SUMS.get(dtype, dtype)]


def computed(p: Product) -> tuple[int, int, bool, bool]:
    """m and n of the column-major product that is computed, and whether its A and B are read in place.

    A row-major product is computed as its transpose, and so is one of a single contiguous row where B lies along it
    (as_column.c.j2).
    """
    m, n, a, b, ta, tb = (p.m, p.n, p.a, p.b, p.ta, p.tb) if p.by_column else (p.n, p.m, p.b, p.a, p.tb, p.ta)
    if m == 1 and p.c.ld == 1 and (tb or b.ld == 1):
        return n, 1, True, ta or a.ld == 1
    return m, n, not ta or a.ld == 1, not tb or b.ld == 1


def oracle(p: Product, a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """What C must be, in the wider type, and how far from it an element may lie (0: it must be exact).

    The bound is gamma_{k+2} (|alpha| |A||B| + |beta||C|), gamma_n = n u / (1 - n u), with no factor before it:
    Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.5, |C - C^| <= gamma_k |A||B| for any
    order of summation, with or without FMA; two more roundings for alpha and beta, whichever is applied first. Added
    are underflow (section 2.4; a denormal an operation) and the oracle's own error, its gamma in the wider type.
    """
    if p.accumulator.whole:
        return _modular(p, a, b, c), np.zeros(c.shape)
    wider = WIDER[p.accumulator.name]
    info, own = np.finfo(p.accumulator.storage), np.finfo(wider)  # type: ignore[type-var]
    with np.errstate(all="ignore"):
        exact: Array = np.zeros(c.shape, wider)
        size = np.zeros(c.shape)
        rows, columns = np.full((p.m, 1), 2.0), np.zeros(p.n)
        blocked = wider is not np.float64 and p.m * p.n * p.k > MUCH
        whole = True
        if p.alpha != 0 and p.k:
            a64, b64 = a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)
            exact = _by_blocks(a64, b64, wider) if blocked else _times(a.astype(wider), b.astype(wider))
            exact *= wider(p.alpha)
            a64, b64 = np.abs(a64), np.abs(b64)
            size = _times(a64, b64)
            size *= abs(p.alpha)
            rows = rows + (abs(p.alpha) + 1) * p.k + a64.sum(axis=1)[:, None]
            columns = b64.sum(axis=0)
            whole = _whole(a) and _whole(b) and p.alpha.is_integer()
        if p.beta != 0:
            held = np.array(c, wider, order="C")
            exact += np.multiply(held, wider(p.beta), out=held)
            size += np.abs(held, out=held).astype(np.float64, copy=False)
            whole = whole and _whole(c) and p.beta.is_integer()
        if whole and float(size.max(initial=0.0)) < 2.0**info.nmant:
            return exact, np.zeros(c.shape)
        count = p.k + 2
        gamma = _gamma(count, float(info.eps) / 2) + _gamma(count, float(own.eps) / 2)
        if blocked:
            gamma += _gamma(min(DEPTH, p.k), float(np.finfo(np.float64).eps) / 2)
        size *= gamma
        underflow = rows + columns
        underflow *= float(info.smallest_subnormal)
        size += underflow
        return exact, size


def _gamma(count: int, u: float) -> float:
    return count * u / (1 - count * u)


def _by_blocks(a: Array, b: Array, wider: type[np.floating[Any]]) -> Array:
    """A B of float64, each sum over DEPTH steps of k in float64, those added up in the wider type."""
    steps = range(0, a.shape[1], DEPTH)
    parts = (_times(a[:, i : i + DEPTH], b[i : i + DEPTH]) for i in steps)
    out: Array = next(parts).astype(wider, copy=False)
    for part in parts:
        out += part
    return out


def _times(a: Array, b: Array) -> Array:
    """A B without a BLAS. Of enough rows einsum is twice as fast on operands that both lie along k. Of few rows and a
    large B that lies along n, sums of whole rows of B are several times as fast as its sums along k."""
    if len(a) < TURNED_FROM and b.size >= LARGE and b.dtype == np.float64 and b.strides[1] == b.itemsize:
        out = np.zeros((len(a), b.shape[1]))
        for i in range(0, len(b), DEPTH):
            for row, factors in zip(out, a[:, i : i + DEPTH, None], strict=True):
                row += (factors * b[i : i + DEPTH]).sum(axis=0)
        return out
    if len(a) < TURNED_FROM:
        return np.asarray(np.einsum("ik,kj->ij", a, b, order="C"))
    return np.asarray(np.einsum("ik,jk->ij", np.ascontiguousarray(a), np.ascontiguousarray(b.T), order="C"))


def _modular(p: Product, a: Array, b: Array, c: Array) -> Array:
    """Sums modulo 2^64, then modulo C's power of two, as int64."""
    wide = [x.astype(np.int64) for x in (a, b, c)]
    sums = np.zeros(c.shape, np.int64)
    if p.alpha != 0 and p.k:
        sums = sums + np.int64(p.alpha) * np.einsum("ik,kj->ij", wide[0], wide[1])
    if p.beta != 0:
        sums = sums + np.int64(p.beta) * wide[2]
    return sums.astype(p.accumulator.storage).astype(np.int64)


def _whole(x: Array) -> bool:
    return bool(np.all(x == np.rint(x)) and np.all(np.isfinite(x)))
