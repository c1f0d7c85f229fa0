"""gemm, C = alpha op(A) op(B) + beta C: its inputs, an independent oracle, its error bound.

Problem.dims     m, n, k
Problem.options  layout ("col" | "row"), ta, tb (0 | 1), alpha, beta (numbers or their text),
                 variant (-1: the library chooses),
                 lda_pad, ldb_pad, ldc_pad (elements a leading dimension is longer than it must be),
                 exp_A, exp_B, exp_C (binary exponents of `normal` inputs, which are in [1, 2) times that then)

A dtype is the number format of A and B. C, alpha and beta are of the same, but of i8 (i32; sums are modulo 2^32) and of
bf16 and f16 (f32).

The oracle sums in the next wider type (f32 in float64, f64 in the 64-bit significand of long double, integers in int64)
with NumPy's own loops and never calls a BLAS, so that it stays independent of what it judges, a preloaded library
included. Large f64 products are summed by short blocks of k in float64 and over the blocks in long double, many times
as fast; the blocks' rounding is part of the bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tensorop.model import drawing
from tensorop.model.call import Access, Buffer, Call, Placement
from tensorop.model.case import Case, cover
from tensorop.model.contract import Contract, compared
from tensorop.model.matrix import Array, Matrix
from tensorop.model.number import NUMBERS, Number
from tensorop.model.point import Value
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind
from tensorop.model.verdict import Judgement

SUMS = {"i8": "i32", "bf16": "f32", "f16": "f32"}  # dtypes whose C is of another format than A and B
GROUPS = 4  # steps of k: a multiple of every group that packing makes
WIDER: dict[str, type[np.floating[Any]]] = {"f32": np.float64, "f64": np.longdouble}
LAYOUTS = ("row", "col")
MUCH = 2e7  # multiplications above which f64 is summed by blocks
DEPTH = 32  # of such a block
TURNED_FROM = 8  # rows of A from which the oracle's products read B along k
LARGE = 1 << 16  # elements of B from which those of fewer rows add up rows of B
TURNED = 2048  # elements of C that few_rows.c.j2 computes at a time
SHALLOW = 1 << 21  # elements of C of little depth: tiles of thousands of rows are multiplied by a narrow B
DISTRIBUTIONS = ("integer", "exact", "normal", "wide", "special")
LARGEST_SQUARE = 215  # 20 Mflop: a tile may be thousands of rows high, and an emulator is slow
STARTS = ("poison", "zeros", "numbers", "result")  # what C holds at beta = 0

assert np.finfo(np.longdouble).nmant >= 63, "the f64 oracle needs a long double with 64 bits of significand"


@dataclass(frozen=True)
class Product:
    """A problem, read once."""

    m: int
    n: int
    k: int
    dtype: str
    layout: str
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


def product(problem: Problem) -> Product:
    """Raises ValueError for a layout other than row or col and for negative dimensions."""
    m, n, k = (int(problem.dims[name]) for name in ("m", "n", "k"))
    options = dict(problem.options.pairs)
    layout = str(options.get("layout", "col"))
    if layout not in LAYOUTS:
        raise ValueError(f"gemm: layout is 'row' or 'col', not '{layout}'")
    if min(m, n, k) < 0:
        raise ValueError(f"gemm: dimensions are not negative: {m}x{n}x{k}")
    ta, tb = bool(int(options.get("ta", 0))), bool(int(options.get("tb", 0)))
    kind: Any = int if accumulator(problem.dtype).whole else accumulator(problem.dtype).storage
    return Product(
        m, n, k, problem.dtype, layout, ta, tb,
        alpha=float(kind(options.get("alpha", 1))),
        beta=float(kind(options.get("beta", 0))),
        a=Matrix.of(m, k, layout, ta, int(options.get("lda_pad", 0))),
        b=Matrix.of(k, n, layout, tb, int(options.get("ldb_pad", 0))),
        c=Matrix.of(m, n, layout, False, int(options.get("ldc_pad", 0))),
    )  # fmt: skip


def _flops(problem: Problem) -> float:
    m, n, k = (int(problem.dims[name]) for name in ("m", "n", "k"))
    return 2.0 * m * n * k


def computed(p: Product) -> tuple[int, int, bool, bool]:
    """m and n of the column-major product that is computed, and whether its A and B are read in place.

    A row-major product is computed as its transpose, and so is one of a single contiguous row where B lies along it
    (as_column.c.j2).
    """
    m, n, a, b, ta, tb = (p.m, p.n, p.a, p.b, p.ta, p.tb) if p.layout == "col" else (p.n, p.m, p.b, p.a, p.tb, p.ta)
    if m == 1 and p.c.ld == 1 and (tb or b.ld == 1):
        return n, 1, True, ta or a.ld == 1
    return m, n, not ta or a.ld == 1, not tb or b.ld == 1


def problems(
    shapes: Iterable[Sequence[int]], dtype: str, options: Mapping[str, Value] | None = None
) -> tuple[Problem, ...]:
    """One problem a shape (m, n, k)."""
    return tuple(Problem.of("gemm", dtype, {"m": int(m), "n": int(n), "k": int(k)}, options) for m, n, k in shapes)


def _start(problem: Problem, p: Product, a: Array, b: Array, c: Array, start: str, rng: np.random.Generator) -> Array:
    """C where it is not read; `c` has numbers of the inputs' kind."""
    if start not in STARTS:
        raise ValueError(f"gemm: C begins as one of {', '.join(STARTS)}, not '{start}'")
    if start == "numbers":
        return rng.integers(-4, 5, c.shape).astype(np.float64)
    if start == "zeros":
        return np.zeros(c.shape)
    poison = _poison(p.accumulator, c, rng)
    if start == "poison" or not c.size:
        return poison
    stored = (
        Buffer("A", Access.IN, p.a.store(a, p.dtype, rng)),
        Buffer("B", Access.IN, p.b.store(b, p.dtype, rng)),
        Buffer("C", Access.INOUT, p.c.store(poison, p.accumulator.name, rng)),
    )
    result = oracle(problem, Call(dims=(p.m, p.n, p.k), buffers=stored))[0].astype(np.float64)
    result[rng.integers(p.m), rng.integers(p.n)] += 1
    return result


LINE = 64  # bytes; second operands begin that far on, or a multiple, where they can: as aligned as the first
SMALL = 4096  # bytes of an operand up to which the second is other numbers altogether


def _poison(number: Number, like: Array, rng: np.random.Generator) -> Array:
    return number.decoded(number.poison(like.size, rng)).reshape(like.shape)


def _whole_lines(p: Product, a: Array) -> Array:
    """A with zeros in the gaps, behind its last line too."""
    lines = np.zeros((p.a.outer, p.a.ld))
    lines[:, : p.a.inner] = a.T if p.a.transposed else a
    return p.operands.encoded(lines.reshape(-1))


def _matrices(
    p: Product, rng: np.random.Generator, distribution: str, options: Mapping[str, Value]
) -> tuple[Array, Array, Array]:
    """A, B and C, the last as it is where it is read."""
    if distribution not in DISTRIBUTIONS:
        raise ValueError(f"gemm: inputs are one of {', '.join(DISTRIBUTIONS)}, not '{distribution}'")
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


def oracle(problem: Problem, given: Call) -> tuple[Array, Array]:
    """What C must be, in the wider type, and how far from it an element may lie (0: it must be exact).

    The bound is gamma_{k+2} (|alpha| |A||B| + |beta||C|), gamma_n = n u / (1 - n u), with no factor before it:
    Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.5, |C - C^| <= gamma_k |A||B| for any
    order of summation, with or without FMA; two more roundings for alpha and beta, whichever is applied first. Added
    are underflow (section 2.4; a denormal an operation) and the oracle's own error, its gamma in the wider type.
    """
    p = product(problem)
    kinds = ((p.operands, p.a), (p.operands, p.b), (p.accumulator, p.c))
    a, b, c = (kind.decoded(x.view(buffer.data)) for (kind, x), buffer in zip(kinds, given.buffers, strict=False))
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


# --- the grids ----------------------------------------------------------------------------------------------------

# A coefficient's classes; the fourth is any other number, drawn for each case, whole where results must be exact.
COEFFICIENTS = ("0", "1", "-1", "other")


def _large(dtype: str, tile: Mapping[str, int], rng: np.random.Generator, count: int, most: float) -> list[Case]:
    """Products of about `most` flops that are large in all three dimensions, of sizes nobody can know: every other one
    of whole tiles, every other one exact; then one that is long in k."""
    mr, nr, _ = _tile(tile)
    cases = []
    for number in range(count):
        m, n = (int(x) for x in rng.integers(100, 110 + (most > 1e7) * 110, 2))
        if number % 2 == 0:
            m, n = -(-m // mr) * mr, -(-n // nr) * nr
        k = max(100, int(most / (2 * m * n)))
        if number == count - 1:
            m, n, k = min(mr, 40) + 1, nr + 2, int(rng.integers(2048, 2300))
        values: dict[str, Value] = {
            name: options[int(rng.integers(len(options)))] for name, options in _layouts().items()
        }
        values |= {"m": m, "n": n, "k": k, "alpha": "1", "beta": "0", "variant": -1}
        values |= {"distribution": ("normal", "exact")[number % 2]}
        cases.append(_case(dtype, values, rng))
    return cases


def _few_rows(
    dtype: str, tile: Mapping[str, int], rng: np.random.Generator, count: int, variants: Sequence[Value] = (-1,)
) -> list[Case]:
    """Column-major products of fewer rows than a tile has, or row-major ones of as few columns, many times as long
    across: a library may compute them as their transpose, a piece at a time."""
    mr, nr, ku = _tile(tile)
    cases = []
    for number in range(count):
        few = int(rng.integers(1, max(min(mr, 65), 3)))
        long = TURNED // few if number % 2 == 0 else 2 * max(few, nr)
        values = {name: options[int(rng.integers(len(options)))] for name, options in _layouts().items()}
        row = values["layout"] == "row"
        values["ta" if row else "tb"] = int(number % 3 != 2)  # the long one contiguous, mostly
        values |= {"alpha": COEFFICIENTS[1 + number % 3], "beta": COEFFICIENTS[(number + 1) % 4]}
        values |= {"n" if row else "m": few, "m" if row else "n": long + int(rng.integers(1, 80))}
        values |= {"k": ku + int(rng.integers(1, 40)), "variant": variants[number % len(variants)]}
        cases.append(_case(dtype, values, rng))
    return cases


def _vectors(
    dtype: str, tile: Mapping[str, int], rng: np.random.Generator, count: int, variants: Sequence[Value] = (-1,)
) -> list[Case]:
    """A matrix by a vector, from either side: many tiles long, of a depth that blocks may cut; C contiguous, mostly."""
    mr, nr, ku = _tile(tile)
    cases = []
    for number in range(count):
        values = {name: options[int(rng.integers(len(options)))] for name, options in _layouts().items()}
        long = int(rng.integers(2, 12)) * max(min(mr, 64), nr) + int(rng.integers(1, 9))
        values |= {"m": long, "n": 1} if number % 2 else {"m": 1, "n": long}
        values |= {
            "k": int(rng.integers(1, 700 if number % 3 else 8 * ku)),
            "variant": variants[number % len(variants)],
        }
        values |= {"ta": number // 2 % 2, "tb": number // 4 % 2, "ldc_pad": int(number % 5 == 4)}
        values |= {"alpha": COEFFICIENTS[1 + number % 3], "beta": COEFFICIENTS[int(rng.integers(4))]}
        cases.append(_case(dtype, values, rng))
    return cases


def _shallow(
    dtype: str, tile: Mapping[str, int], rng: np.random.Generator, count: int, variants: Sequence[Value] = (-1,)
) -> list[Case]:
    """Products of little depth, one side of C many tiles long: a library may keep the elements of the shorter operand
    in registers, or a whole short side."""
    mr, nr, _ = _tile(tile)
    cases = []
    for number in range(count):
        values = {name: options[int(rng.integers(len(options)))] for name, options in _layouts().items()}
        row = values["layout"] == "row"
        long, short = int(rng.integers(4 * mr, 18 * mr)), int(rng.integers(1, max(mr, nr + 6)))
        short = min(short, max(nr + 6, SHALLOW // long))
        values |= {"m" if row else "n": short, "n" if row else "m": long}
        if number % 4 == 3:
            values |= {"m": values["n"], "n": values["m"]}
        values |= {
            "k": (1, 2, 3, 4, 5, 6, 7, 9, 16, 17)[int(rng.integers(10))],
            "variant": variants[number % len(variants)],
        }
        values |= {"ta" if not row else "tb": int(number % 5 == 4)}  # its columns contiguous, mostly
        values |= {"alpha": COEFFICIENTS[1 + number % 3], "beta": COEFFICIENTS[int(rng.integers(4))]}
        cases.append(_case(dtype, values, rng))
    return cases


def _nearly_done(dtype: str, tile: Mapping[str, int], rng: np.random.Generator, count: int) -> list[Case]:
    """Products whose C holds the result but for one element, of numbers that every order of sums is exact on: one that
    recomputes an element and looks no further is found out."""
    mr, nr, ku = _tile(tile)
    cases = []
    for number in range(count):
        values: dict[str, Value] = {
            name: options[int(rng.integers(len(options)))] for name, options in _layouts().items()
        }
        values |= {"layout": ("col", "row")[number % 2], "m": mr + 4, "n": nr + 3, "k": ku + 1}
        values |= {"alpha": "1", "beta": "0", "start": "result", "distribution": "integer"}
        cases.append(_case(dtype, values, rng))
    return cases


def smallest_grid(dtype: str, rng: np.random.Generator, count: int) -> tuple[Case, ...]:
    """`count` products of little work, the library's own choice for each: sides up to 20, and long and narrow ones; all
    layouts, transposes and gaps in turn."""
    long = ((2, 2, 150), (2, 2, 1100), (4, 3, 300), (1, 17, 40), (20, 1, 33), (3, 64, 5), (900, 2, 3), (1, 3, 700))
    long += ((1, 1, 300), (5, 3, 90), (1, 300, 1))
    layouts = _layouts()
    cases = []
    for number in range(count):
        values = {name: options[int(rng.integers(len(options)))] for name, options in layouts.items()}
        m, n, k = long[number // 16 % len(long)] if number // 8 % 2 else (int(x) for x in rng.integers(1, 21, 3))
        values |= {"m": m, "n": n, "k": k, "variant": -1}
        values |= {"layout": ("col", "row")[number % 2], "ta": number // 2 % 2, "tb": number // 4 % 2}
        values |= {"alpha": COEFFICIENTS[1 + number % 3], "beta": COEFFICIENTS[int(rng.integers(4))]}
        cases.append(_case(dtype, values, rng))
    return tuple(cases)


def _plainness(case: Case) -> tuple[int, float]:
    return DISTRIBUTIONS.index(case.distribution), _flops(case.problem)


def _tile(tile: Mapping[str, int]) -> tuple[int, int, int]:
    return tile["mr"], tile["nr"], max(2, tile.get("ku", 4))


def _distinct(*sizes: int) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(size for size in sizes if size > 0))


def _layouts() -> dict[str, tuple[Value, ...]]:
    return {
        "layout": ("col", "row"),
        "ta": (0, 1),
        "tb": (0, 1),
        "lda_pad": (0, 3),
        "ldb_pad": (0, 5),
        "ldc_pad": (0, 1),
        "placement": tuple(p.value for p in Placement),
        "distribution": DISTRIBUTIONS,
        "start": STARTS,
    }


def _beyond_blocks(
    tile: Mapping[str, int], blocking: Mapping[str, int], *, thorough: bool
) -> list[tuple[int, int, int, str]]:
    """m, n, k, layout that reach a second panel of each loop, and of each two; none above 12 Mflop.

    thorough: both layouts and both orientations of each. Otherwise each once, taking turns between column-major and
    its transpose in row-major, which is the same product to a library that computes in column-major.
    """
    mr, nr, _ = _tile(tile)
    mc, kc, nc = blocking["mc"], blocking["kc"], blocking["nc"]
    shapes = [
        (mc + 1, nr + 1, 5),
        (mr + 1, nc + 1, 5),
        (mr + 1, nr + 1, kc - 1),
        (mr + 1, nr + 1, kc),
        (mr + 1, nr + 1, kc + 1),
        (mr + 1, nr + 1, 2 * kc + 1),
        (mc + 1, 2, kc + 1),
        (2, nc + 1, kc + 1),
        (mc + mr + 1, nc + nr + 1, 2),
    ]
    shapes = [(m, n, k) for m, n, k in shapes if 2 * m * n * k <= 12_000_000 and k > 0]
    if thorough:
        both = dict.fromkeys(shape for m, n, k in shapes for shape in ((m, n, k), (n, m, k)))
        return [(*shape, layout) for shape in both for layout in ("col", "row")]
    return [(n, m, k, "row") if i % 2 else (m, n, k, "col") for i, (m, n, k) in enumerate(shapes)]


def _anywhere(dtype: str, m: int, n: int, k: int, rng: np.random.Generator) -> Case:
    """A random problem up to these sizes: what nobody can have prepared for."""
    values: dict[str, Value] = {name: options[int(rng.integers(len(options)))] for name, options in _layouts().items()}
    values |= {"m": int(rng.integers(1, m + 1)), "n": int(rng.integers(1, n + 1)), "k": int(rng.integers(1, k + 1))}
    values |= {name: COEFFICIENTS[1 + int(rng.integers(3))] for name in ("alpha", "beta")}
    return _case(dtype, values, rng)


def _squares(dtype: str, size: int, layouts: Sequence[str], rng: np.random.Generator) -> list[Case]:
    """m = n = k, at most LARGEST_SQUARE, all transposes: a transpose taken for the other stays inside its buffers here.

    Whole numbers, then once all special values, for which `size` must leave room (4 rows, 4 columns).
    """
    options = _layouts()
    side = min(max(size, 5), LARGEST_SQUARE)
    fixed: dict[str, Value] = {"m": side, "n": side, "k": side, "alpha": "1", "beta": "0"}
    kinds = [(ta, tb, "integer") for ta in (0, 1) for tb in (0, 1)]
    kinds.append((int(rng.integers(2)), int(rng.integers(2)), "special"))
    return [
        _case(
            dtype,
            {
                **{name: values[int(rng.integers(len(values)))] for name, values in options.items()},
                **fixed,
                "layout": layout,
                "ta": ta,
                "tb": tb,
                "distribution": distribution,
            },
            rng,
        )
        for layout in layouts
        for ta, tb, distribution in kinds
    ]


def _empty(dtype: str, cases: Sequence[Mapping[str, Value]], rng: np.random.Generator) -> list[Case]:
    """Cases in which nothing is multiplied; layouts and gaps vary, inputs are normal."""
    layouts = _layouts()
    return [
        _case(
            dtype,
            {
                **{name: options[int(rng.integers(len(options)))] for name, options in layouts.items()},
                "distribution": "normal",
                **values,
            },
            rng,
        )
        for values in cases
    ]


def _case(
    dtype: str, values: Mapping[str, Value], rng: np.random.Generator, first: str = "", part: float = 0.0
) -> Case:
    """A case, with coefficients and magnitudes drawn where `values` leave them open. first: `alpha`, `A` or `B`, which
    is drawn before the others bind it, at `part` of its range; or USUAL: all are of magnitudes that people use."""
    distribution = str(values["distribution"])
    options = {
        name: value
        for name, value in values.items()
        if name not in ("m", "n", "k", "placement", "distribution", "start")
    }
    options |= _numbers(dtype, distribution, options, rng, first, part)
    problem = Problem.of("gemm", dtype, {name: values[name] for name in ("m", "n", "k")}, options)
    start = str(values["start"]) if float(str(options.get("beta", 0))) == 0 else STARTS[0]
    return Case(problem, distribution, Placement(str(values["placement"])), start)


OPEN = ("other", "above", "below")  # coefficients that are drawn; the last two beyond 1 and -1
NARROW = 4  # binary exponents of the coefficients that are usual
USUAL = "usual"


def _numbers(
    dtype: str, distribution: str, options: Mapping[str, Value], rng: np.random.Generator, first: str, part: float
) -> dict[str, Value]:
    """Coefficients that are `other`, and what `normal` inputs are multiplied by: half of the time of the magnitudes
    that people use, else from the whole range in which no product or sum leaves the normal numbers."""
    number, operands = accumulator(dtype), NUMBERS[dtype]
    of_alpha, of_beta = (options.get(name) for name in ("alpha", "beta"))
    sign = _sign(rng)
    if number.whole or distribution in ("integer", "exact"):
        most = (2**31 - 1, 2**31 - 1) if number.whole else (7, 1000)
        drawn = (drawing.between(2, limit, rng.random()) for limit in most)
        both = {"alpha": sign * next(drawn), "beta": _sign(rng) * next(drawn)}
        return {name: str(value) for name, value in both.items() if options.get(name) in OPEN}
    most = drawing.spare(number)
    everywhere = first != USUAL and (bool(first) or rng.random() < 0.5)
    if distribution == "wide":
        most -= 4 * (min(operands.overflow, 1024) // 7)
    own = {"alpha": (most if everywhere else NARROW) if of_alpha == "other" else 0, "A": 0, "B": 0}
    scales = everywhere and distribution == "normal" and of_alpha != "0"
    if scales:
        own |= dict.fromkeys("AB", min(most, drawing.normal(operands)))
    if not own.get(first or "alpha"):
        first = ""
    if first == "alpha":  # both signs, each at as many places
        sign, part = (1 if part >= 0.5 else -1), 2 * part % 1
    chosen = drawing.exponents(most, own, first or ("alpha", "A", "B")[rng.integers(3)], part or rng.random(), rng)
    found: dict[str, Value] = {}
    if of_alpha == "other":
        # what makes a denormal 0 makes an infinity that it meets NaN
        exponent = abs(chosen["alpha"]) if distribution == "special" else chosen["alpha"]
        found["alpha"] = _text(sign, exponent, rng)
    total, of_c = sum(chosen.values()), 0
    if of_beta in OPEN:
        limit = most if scales and rng.random() < 0.5 else NARROW
        low, high = max(-limit, total - most), min(limit, total + most)
        low = low if of_beta == "other" else 1
        of_c = int(rng.integers(low, high + 1)) if low <= high else low
        found["beta"] = _text({"above": 1, "below": -1}.get(str(of_beta)) or _sign(rng), of_c, rng)
    if scales:  # what beta adds is about as large as the product
        found |= {"exp_A": chosen["A"], "exp_B": chosen["B"]}
        found |= {"exp_C": max(-most, min(most, total - of_c))} if of_beta != "0" else {}
    return found


def _sign(rng: np.random.Generator) -> int:
    return int(1 - 2 * rng.integers(2))


def _text(sign: int, exponent: int, rng: np.random.Generator) -> str:
    return f"{sign * float(np.ldexp(1.05 + 0.9 * rng.random(), exponent)):.4g}"


LONGEST = 1 << 13  # of a dimension in grids that every candidate takes
FURTHEST = 35.9  # binary exponent of the bytes from an operand's first line to its last


def _drawn(
    dtype: str,
    tile: Mapping[str, int],
    rng: np.random.Generator,
    count: int,
    longest: int = LONGEST,
    variants: Sequence[Value] = (-1,),
) -> list[Case]:
    """What nobody can prepare for: of each dimension `count` products in which it is long, and a few small ones with
    large leading dimensions. Sizes, strides, coefficients and magnitudes are log-uniform, one in each of as many equal
    parts of a range as there are cases: a fault that shows in a whole part is found in every run. count: 3 or more."""
    shares = (("alpha", 6), ("A", 2), ("B", 4))
    pool = [(name, part) for name, many in shares for part in drawing.strata(many * (count // 3), rng)]
    pools = itertools.cycle([pool[i] for i in rng.permutation(len(pool))])
    dims = ("m", "n", "k")
    long = {dim: drawing.strata(count, rng) for dim in dims}
    cases = []

    def case(number: int, values: dict[str, Value]) -> Case:
        usual = {name: options[int(rng.integers(len(options)))] for name, options in _layouts().items()}
        usual |= {"variant": variants[number % len(variants)]}
        usual |= {"alpha": COEFFICIENTS[1 + int(rng.integers(3))], "beta": COEFFICIENTS[int(rng.integers(4))]}
        usual |= values
        drawn = ("", 0.0)
        if usual["distribution"] == "normal":
            drawn = next(pools)
            usual["beta"] = ("above", "other", "below", usual["beta"])[len(cases) % 4]
        if drawn[0] == "alpha":
            usual["alpha"] = "other"
        return _case(dtype, usual, rng, *drawn)

    for number in range(count):
        for dim in dims:
            size = drawing.between(256, longest, long[dim][number])
            sizes: dict[str, Value] = {dim: size}
            least, left = (2, 2 * DRAWN_WORK / size) if dim == "k" else (1, DRAWN_WORK / 2 / size)
            for name in (dims[i] for i in rng.permutation(3)):
                if name not in sizes:
                    sizes[name] = drawing.between(least, max(least, min(16, int(left))), rng.random())
                    left /= int(sizes[name])
            # long sums have a wide bound: there it is 0
            kind = "integer" if dim == "k" and size > 1000 else "normal"
            cases.append(case(number, {**sizes, "distribution": kind}))
    far = {name: rng.permutation([*drawing.strata(count + 1, rng), 1.0]) for name in "ABC"}
    for number in range(count + 2):
        values: dict[str, Value] = {dim: drawing.between(2, 24, rng.random()) for dim in dims}
        values |= {"layout": str(rng.choice(LAYOUTS)), "ta": int(rng.integers(2)), "tb": int(rng.integers(2))}
        laid = product(Problem.of("gemm", dtype, {dim: values[dim] for dim in dims}, values))
        for name, matrix in (("A", laid.a), ("B", laid.b), ("C", laid.c)):
            size = (laid.accumulator if name == "C" else laid.operands).size
            values[f"ld{name.lower()}_pad"] = _pad(matrix, size, float(far[name][number]), rng)
        cases.append(case(number, {**values, "distribution": "normal"}))
    return cases


DRAWN_WORK = 4e5  # flops of a drawn case
KERNEL_WORK = 1e5  # of a drawn one of a kernel alone


def _pad(matrix: Matrix, size: int, part: float, rng: np.random.Generator) -> int:
    """A gap with which a last line begins at `part` of the way from the first line to as far as addresses go, by
    logarithms; at 1 beyond 2^32 elements."""
    most = FURTHEST - float(np.log2(size))
    bits = 5 + (most - 5) * part if part < 1 else float(rng.uniform(32.01, min(most, 34)))
    return max(0, int(2**bits) // max(matrix.outer - 1, 1) - matrix.inner)


def _no_numbers(dtype: str, tile: Mapping[str, int], rng: np.random.Generator, count: int) -> list[Case]:
    """Coefficients that are no numbers: NaN, and infinite beta."""
    if accumulator(dtype).whole:
        return []
    mr, nr, ku = _tile(tile)
    kinds = (("nan", "0"), ("1", "nan"), ("nan", "1"), ("1", "inf"), ("-1", "-inf"))
    cases = []
    for number in range(count):
        values: dict[str, Value] = {
            name: options[int(rng.integers(len(options)))] for name, options in _layouts().items()
        }
        alpha, beta = kinds[number % len(kinds)]
        values |= {"m": mr + 1, "n": nr + 1, "k": ku + 1, "alpha": alpha, "beta": beta, "distribution": "normal"}
        cases.append(_case(dtype, values, rng))
    return cases


def _each_size(dtype: str, rng: np.random.Generator, dim: str, most: int, variants: Sequence[Value]) -> list[Case]:
    """Every size of a dimension up to `most` once, the others small: a fault at one size alone is found."""
    cases = []
    for number, size in enumerate(rng.permutation(most)):
        values = {name: options[int(rng.integers(len(options)))] for name, options in _layouts().items()}
        values |= {"alpha": COEFFICIENTS[1 + int(rng.integers(3))], "beta": COEFFICIENTS[int(rng.integers(4))]}
        values |= {name: drawing.between(1, 20, rng.random()) for name in ("m", "n", "k")} | {dim: int(size) + 1}
        values |= {"variant": variants[number % len(variants)]}
        values |= {"distribution": "integer" if number % 2 else "normal"}
        cases.append(_case(dtype, values, rng))
    return cases


class Gemm(Contract):
    """The contract; what is above are its parts."""

    CONTROL_TILE: ClassVar[Mapping[str, int]] = {"mr": 8, "nr": 4, "ku": 4}  # small, since controls are plain loops
    CONTROL_SHAPE = (12, 10, 24)
    DISTRIBUTIONS = DISTRIBUTIONS
    product, problems = staticmethod(product), staticmethod(problems)
    oracle, smallest_grid = staticmethod(oracle), staticmethod(smallest_grid)

    def work(self, problem: Problem) -> float:
        """Arithmetic operations: 2 m n k."""
        return _flops(problem)

    def traffic(self, problem: Problem) -> float:
        """The least bytes that must move: A and B read once, C written once, and read once unless beta is 0."""
        p = product(problem)
        of_c = p.m * p.n * (1 if p.beta == 0 else 2)
        return float((p.m * p.k + p.k * p.n) * p.operands.size + of_c * p.accumulator.size)

    def features(self, problem: Problem) -> dict[str, int]:
        """What the library's dispatch sees: the column-major product it computes, and what it can read in place."""
        p = product(problem)
        m, n, a, b = computed(p)
        return {"m": m, "n": n, "k": p.k, "a_in_place": int(a), "b_in_place": int(b)}

    def tile(self, point: Mapping[str, Value], lanes: int, reads: Mapping[str, str]) -> dict[str, int]:
        """The micro-tile in elements, for the grids: mr, nr, ku. lanes: elements of a vector."""
        along = 1 if reads.get("a") == "rows" else lanes
        return {"mr": int(point["mr_vectors"]) * along, "nr": int(point["nr"]), "ku": int(point.get("ku", 1))}

    def same(self, tile: Mapping[str, int]) -> tuple[int, ...]:
        return tile["mr"], tile["nr"]

    def workspace(self, problem: Problem, point: Mapping[str, Value], lanes: int, group: int = 1) -> int:
        """Packed elements a candidate packs into: `<prefix>_work` of driver.c.j2, of which this is the mirror.

        point: binds mc, kc, nc and, as `reads_a`, how the kernel reads A; lanes: elements of a vector; group: steps of
        k in a packed element. As little as that, so that what is written past a packed block meets the guard page.
        """
        p = product(problem)
        mc, kc, nc = (int(point[name]) for name in ("mc", "kc", "nc"))
        m, n, _, along_k = computed(p)
        rows = point.get("reads_a") == "rows"
        depth = p.k if p.k <= kc + kc // 4 else -(-p.k // -(-p.k // kc))
        depth = -(-depth // group)

        def panels(rows: int, columns: int) -> int:
            vectors = min(-(-rows // lanes), max(mc // lanes, 1))
            # kernels that read A by rows pack mc rows, whole vectors or not
            a, b = max(vectors * lanes, min(rows, mc)) * depth, min(columns, nc) * depth
            return -(-a // 64) * 64 + -(-b // 64) * 64 + 64

        turned = 0 < m < lanes and n >= 2 * m and m * lanes <= TURNED
        turned = turned and not rows and not along_k and p.operands == p.accumulator
        lies = rows and 1 in (m, n)  # along either side of its tile
        return max(
            panels(m, n),
            panels(n, m) if lies else 0,
            TURNED + LINE // p.operands.size + panels(min(n, TURNED // m // lanes * lanes), m) if turned else 0,
        )

    def call(
        self,
        problem: Problem,
        rng: np.random.Generator,
        distribution: str = "normal",
        placement: Placement = Placement.END,
        workspace: int = 0,
        compute: str = "",
        start: str = "poison",
    ) -> Call:
        """A call with random inputs.

        integer  whole numbers in [-4, 4]: every order of summation gives the same bits
        exact    so does this, with one operand of wide numbers and a sparse one of -1, 0 and 1: nothing may be rounded
                 on the way, however large k is
        normal   N(0, 1); where the problem says so, of magnitudes from all that the format can multiply and add
        wide     rows, columns and steps of k scaled by powers of two, the second half of k cancelling the first
        special  N(0, 1) with NaN, both infinities, -0 and a row of denormals

        Of integer dtypes, `normal` is any A and B, `wide` the two extremes with any C, whose sums wrap, and `special`
        any with rows and columns of one extreme.

        What BLAS says is not read holds NaN: C when beta is 0 and `start` is poison (otherwise zeros, numbers, or the
        very result but for one element: what is there must not be taken for work done), A and B when alpha is 0, the
        gaps of leading dimensions
        (NaN with random payloads, so that a gap rewritten shows too), and so does the workspace, of so many elements of
        the format `compute` (by default the dtype). Integers have no NaN: random bits stand there.
        """
        p = product(problem)
        a, b, c = _matrices(p, rng, distribution, problem.options)
        if p.alpha == 0:
            a, b = _poison(p.operands, a, rng), _poison(p.operands, b, rng)
        if p.beta == 0:
            c = _start(problem, p, a, b, c, start, rng)
        beyond = int(problem.options.get("beyond", 0))
        of_a, of_b = p.a.store(a, p.dtype, rng), p.b.store(b, p.dtype, rng)
        if beyond:
            of_a, of_b = _whole_lines(p, a), np.concatenate([of_b, p.operands.poison(beyond, rng)])
        buffers: tuple[Buffer, ...] = (
            Buffer("A", Access.IN, of_a, apart=p.a.apart),
            Buffer("B", Access.IN, of_b, apart=p.b.apart),
            Buffer("C", Access.INOUT, p.c.store(c, p.accumulator.name, rng), apart=p.c.apart),
        )
        if workspace:
            buffers += (Buffer("workspace", Access.SCRATCH, NUMBERS[compute or p.dtype].poison(workspace, rng)),)
        return Call(
            dims=(p.m, p.n, p.k),
            lds=(p.a.leading, p.b.leading, p.c.leading),
            scalars=(p.alpha, p.beta),
            flags=self.told(problem),
            buffers=buffers,
            placement=placement,
        )

    def alternated(self, problem: Problem, given: Call, rng: np.random.Generator) -> Call:
        """The same call with second operands for every other call of a batch: a little longer A and B, read from
        further on. Their product has nothing to do with the first, since A is moved along k and B along n.

        A call whose result depends on what C held, or that has gaps between lines, stays as it is.
        """
        p = product(problem)
        a, b, *rest = given.buffers
        if p.beta != 0 or p.alpha == 0 or not (p.a.size and p.b.size) or (p.a.ld, p.b.ld) != (p.a.inner, p.b.inner):
            return given
        line = max(1, LINE // p.operands.size)

        def up(count: int) -> int:
            return -(-count // line) * line

        # steps of k in a line or lines of k: A must be moved by another number of them than B
        if (p.layout == "col") != p.ta:
            of_a = up(p.a.ld)
            moved = of_a // p.a.ld
        else:
            of_a = moved = line if p.a.ld > line else 1
        if (p.layout == "col") != p.tb:
            steps = (up(n * p.b.ld) for n in itertools.chain((2, 3, 5, 7), itertools.count(8)))
            of_b = next(step for step in steps if step % p.b.ld != moved)
        else:
            of_b = line if p.b.ld > line else 1

        def longer(buffer: Buffer, shift: int) -> Buffer:
            if buffer.data.nbytes <= SMALL:
                shift = up(buffer.data.size)
            more = p.operands.encoded(
                rng.integers(-128, 128, shift) if p.operands.whole else rng.standard_normal(shift)
            )
            return replace(buffer, data=np.concatenate([buffer.data, more]), shift=shift)

        return replace(given, buffers=(longer(a, of_a), longer(b, of_b), *rest))

    def counted(self, problem: Problem, given: Call, rng: np.random.Generator) -> Call:
        """The same call as a model counts it, once: at beta = 0 C begins as the result in its first and last element
        and in half of the others, so that who takes any part of it for work done is wrong.

        That start decides no verdict, so its numbers may come from whatever multiplies matrices here.
        """
        p = product(problem)
        if p.beta != 0 or p.alpha == 0 or not p.c.size:
            return given
        a, b = (p.operands.decoded(x.view(buffer.data)) for x, buffer in zip((p.a, p.b), given.buffers, strict=False))
        if p.accumulator.whole:
            start = _modular(p, a, b, np.zeros(p.c.shape)).astype(np.float64)
        else:
            start = p.alpha * (a.astype(np.float64) @ b.astype(np.float64))
        wrong = rng.random(p.c.shape) < 0.5
        wrong[0, 0] = wrong[-1, -1] = False
        if not wrong.any():
            wrong[rng.integers(p.m), rng.integers(p.n)] = True
        start = np.where(wrong, np.where(start > 0, start - 1, start + 1), start)
        first, second, third, *rest = given.buffers
        return replace(
            given, buffers=(first, second, replace(third, data=p.c.store(start, p.accumulator.name, rng)), *rest)
        )

    def packed_operands(self, given: Call, compute: str, rng: np.random.Generator) -> Call:
        """The same call with A and B as packing leaves them, N(0, 1) or any integers: for micro-kernels alone."""
        number = NUMBERS[compute]

        def like(buffer: Buffer) -> Buffer:
            size = buffer.data.size
            values = rng.integers(-128, 128, size) if number.whole else rng.standard_normal(size)
            return replace(buffer, data=number.encoded(values))

        a, b, *rest = given.buffers
        return replace(given, buffers=(like(a), like(b), *rest))

    def panels(self, problem: Problem, given: Call, compute: str, group: int) -> Call:
        """The same call with A and B as packing leaves them: a row for each `group` steps of k, which lie together."""
        p, number = product(problem), NUMBERS[compute]
        a, b, *rest = given.buffers

        def panel(stored: Array, behind: int) -> Array:
            if group == 1:
                made = number.encoded(p.operands.decoded(stored))
            else:
                steps = stored.reshape(-1, group, stored.shape[1]).transpose(0, 2, 1)
                made = np.ascontiguousarray(steps.astype(f"i{number.size // group}")).view(number.storage)
            return np.concatenate([made.ravel(), np.zeros(behind, number.storage)])

        of_a, of_b = panel(p.a.view(a.data).T, 0), panel(p.b.view(b.data), int(problem.options.get("beyond", 0)))
        packed = (replace(one, data=data, apart=(0, 0)) for one, data in ((a, of_a), (b, of_b)))
        return replace(given, buffers=(*packed, *rest))

    def expected(self, problem: Problem, given: Call) -> Mapping[str, tuple[Array, Array]]:
        return {"C": oracle(problem, given)}

    def stored(self, problem: Problem, name: str, values: Array, storage: Array) -> Array:
        c, out = product(problem).c, storage.astype(values.dtype)
        if c.size:
            c.view(out)[...] = values
        return out

    def limits(self, problem: Problem, given: Call) -> tuple[Array, Array] | None:
        """The least and the largest C that `oracle` admits, in C's own format, for those who judge many results of one
        call; None where it is not finite throughout."""
        p = product(problem)
        want, bound = oracle(problem, given)
        if p.accumulator.whole:
            exact = want.astype(p.accumulator.storage)
            return exact, exact
        if not np.isfinite(want).all():
            return None
        low, high = want - bound, want + bound
        with np.errstate(over="ignore"):
            least, most = low.astype(p.accumulator.storage), high.astype(p.accumulator.storage)
        infinity = p.accumulator.storage(np.inf)  # type: ignore[arg-type]
        least = np.where(least < low, np.nextafter(least, infinity), least)
        return least, np.where(most > high, np.nextafter(most, -infinity), most)

    def judge(
        self,
        problem: Problem,
        given: Call,
        outputs: Mapping[str, NDArray[np.generic]],
        expected: tuple[Array, Array] | None = None,
        within: tuple[Array, Array] | None = None,
    ) -> Judgement:
        """Compares C, element by element, with the oracle, and its gaps, bit by bit, with what they held before.

        Where the oracle has NaN or an infinity, C must have the same; the sign of a zero is free. expected: what
        `oracle` says of this problem and call, for those who judge several outputs; within: what `limits` says of it,
        which is enough for a result that is right, whose `worst` is then not worked out.
        """
        p = product(problem)
        before = given.buffers[2].data
        after = outputs.get("C")
        if after is None or after.size != before.size or after.dtype != before.dtype:
            return Judgement(Kind.WRONG, "verify", f"{problem.label}: C did not come back whole", worst=np.inf)
        if not p.c.size:
            return Judgement(Kind.OK, "verify")
        touched = p.c.touched(before, after) if p.c.ld != p.c.inner else np.zeros(0)
        if touched.size:
            line, column = divmod(int(touched[0]), p.c.ld)
            where = f"{column - p.c.inner + 1} past the end of line {line} of C ({touched.size} gap elements in all)"
            return Judgement(
                Kind.WRONG,
                "verify",
                f"{problem.label}: the gap of ldc={p.c.leading} was written, {where}",
                worst=np.inf,
            )
        got = p.c.view(after)
        if within is not None and bool(np.all((got >= within[0]) & (got <= within[1]))):
            return Judgement(Kind.OK, "verify")
        want, bound = oracle(problem, given) if expected is None else expected
        return compared(f"{problem.label}: C", got, want, bound)

    def quick_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> tuple[Case, ...]:
        """About 45 small calls for every candidate: sizes around the tile and all else in pairs, squares, empty sizes.

        tile: mr, nr and, where the k loop is unrolled, ku; all in elements at the VLEN in question.
        """
        mr, nr, ku = _tile(tile)
        factors: dict[str, Sequence[Value]] = {
            "m": _distinct(1, mr - 1, mr, mr + 2, 2 * mr + 3),
            "n": _distinct(1, nr - 1, nr, nr + 2, 2 * nr + 3),
            "k": _distinct(1, ku + 1, 2 * ku + 3, 17),
            **_layouts(),
            "alpha": COEFFICIENTS[1:],  # alpha = 0 computes nothing, so it must not use up a pair
            "beta": COEFFICIENTS,
        }
        # plain numbers before special ones and small before large: the first failure is the one that is told
        covered = sorted((_case(dtype, point, rng) for point in cover(factors, rng)), key=_plainness)
        # the same problems with other numbers: a result kept from the first call is found out
        again = [case for case in covered if case.distribution == "normal"][-2:]
        shape: dict[str, Value] = {"m": mr + 1, "n": nr + 1, "k": ku + 1}
        nothing = [{**shape, "alpha": "0", "beta": beta} for beta in COEFFICIENTS]
        nothing += [{**shape, "k": 0, "beta": beta} for beta in ("0", "other")]
        nothing += [{**shape, "m": 0, "beta": "0"}, {**shape, "n": 0, "beta": "1"}]
        return (
            *covered,
            *again,
            *_nearly_done(dtype, tile, rng, 4),
            *_large(dtype, tile, rng, 2, 2.4e6),
            *_few_rows(dtype, tile, rng, 2),
            *_shallow(dtype, tile, rng, 2),
            *_vectors(dtype, tile, rng, 2),
            *(_anywhere(dtype, 3 * mr, 3 * nr, 40, rng) for _ in range(3)),
            *_squares(dtype, nr + 1, ("col" if rng.integers(2) else "row",), rng),
            *_drawn(dtype, tile, rng, 3),
            *_no_numbers(dtype, tile, rng, 3),
            *_empty(dtype, nothing, rng),
        )

    def kernel_grid(
        self,
        dtype: str,
        point: Mapping[str, Value],
        lanes: int,
        reads: Mapping[str, str],
        masked: bool,
        rng: np.random.Generator,
        full_tile: bool = False,
    ) -> tuple[Case, ...]:
        """Each tile once whole and once, where it can have a tail, with its last vector in part: that is code of its
        own where vectors have no length. Then the largest some more, of drawn depths, and the smallest tile as deep as
        any. A and B are one panel each, as packing leaves them: A by rows or, its columns in whole vectors, by columns;
        B by columns or by rows. full_tile: the largest tile at each of the depths, then at drawn ones.

        Depths of k, coefficients and inputs change from call to call. Of dtypes whose packing widens, only the largest
        tile, with whole groups of k (`panels` makes them). Without masks panels of A are zero behind their rows, and
        behind one of B a vector more can be read (`beyond`).
        """
        if dtype in SUMS and not (full_tile and reads.get("a") == "columns"):
            return ()
        how, tallest, nr, ku = reads.get("a"), int(point["mr_vectors"]), int(point["nr"]), int(point.get("ku", 1))
        by_rows, along = how == "rows", 1 if how == "rows" else lanes
        heights = [1, 2, min(3, tallest), min(9, tallest)] if how == "stream" else list(range(1, tallest + 1))
        tails = (False,) if by_rows or lanes == 1 else (False, True)
        tiles = [(v, n, tail) for n in range(1, nr + 1) for v in heights for tail in tails]
        depths = [1, ku, ku + 1, 2 * ku + 1, 4 * ku + 3, 17]
        if full_tile:
            tiles = [(heights[-1], nr, False)] * len(depths)
        once = len(tiles)
        tiles += [(heights[-1], nr, False)] * 4
        deepest = max(64, int(KERNEL_WORK / (2 * along * heights[-1] * nr)))
        deep = {once + i: drawing.between(18, deepest, part) for i, part in enumerate(drawing.strata(4, rng))}
        if not full_tile:
            deep[0] = drawing.between(18, LONGEST, rng.random())
        kinds = ("normal", "exact", "special", "normal", "integer")
        cases = []
        for number, at in enumerate(rng.permutation(len(tiles))):  # drawn first: the same at all VLENs
            v, n, tail = tiles[at]
            short = int(rng.integers(1, lanes)) if tail else 0
            values: dict[str, Value] = {"layout": "col", "m": v * along - short, "n": n, "ta": int(by_rows)}
            k = deep.get(int(at)) or depths[int(at if full_tile else rng.integers(len(depths)))]
            if dtype in SUMS:
                k = -(-k // GROUPS) * GROUPS
            values |= {"tb": int(not by_rows), "k": k, "lda_pad": short}
            # no other case of its code: NaN would hide a fault
            alone = not full_tile and (tail or (len(tails) == 1 and at < once))
            kind = kinds[number % len(kinds)]
            kind = "normal" if alone and kind == "special" else kind
            c = Matrix.of(v * along - short, n, "col")
            far = number % 8 == 3 and n > 1
            pad = _pad(c, NUMBERS[dtype].size, min(1.0, 1.2 * float(rng.random())), rng) if far else rng.integers(2)
            values |= {"ldc_pad": int(pad), "distribution": kind}
            values |= {"alpha": COEFFICIENTS[1 + int(rng.integers(3))], "beta": COEFFICIENTS[number % 4]}
            values |= {"placement": ("end", "start")[number % 2], "start": STARTS[int(rng.integers(len(STARTS)))]}
            # a tile's only call has numbers in which any fault shows
            first = "" if int(at) in deep else USUAL
            cases.append(_case(dtype, values if masked else {**values, "beyond": lanes}, rng, first))
        return tuple(cases)

    def full_grid(
        self, dtype: str, tile: Mapping[str, int], blocking: Mapping[str, int], rng: np.random.Generator
    ) -> tuple[Case, ...]:
        """Everything, for the winner.

        All transposes x layouts x alpha x beta at three random sizes each; all pairs of sizes from 1 to past the third
        tile (primes included); one past mc, kc and nc, alone and by twos with the third dimension small, in both
        layouts, and again for each variant of the dispatch table; squares (which hide a transpose from every other
        check); random and empty sizes; small ones, which a library may serve in a way of their own. tile: as in
        quick_grid; blocking: mc, kc, nc and variants (how many can be forced).
        """
        mr, nr, ku = _tile(tile)
        ms = _distinct(1, 2, 3, mr - 1, mr, mr + 1, mr + 2, mr + 3, 2 * mr - 1, 2 * mr + 1, 3 * mr + 2, 13, 31)
        ns = _distinct(1, 2, 3, nr - 1, nr, nr + 1, nr + 2, nr + 3, 2 * nr - 1, 2 * nr + 1, 3 * nr + 2, 13, 31)
        ks = _distinct(1, 2, 3, 4, 5, 7, 8, ku - 1, ku, ku + 1, 2 * ku + 1, 16, 17, 31, 64)
        layouts = _layouts()
        variants: tuple[Value, ...] = (-1, *range(blocking.get("variants", 0)))

        def pick(values: Sequence[Value]) -> Value:
            return values[int(rng.integers(len(values)))]

        cases = []
        for layout in layouts["layout"]:
            for ta in (0, 1):
                for tb in (0, 1):
                    for alpha in COEFFICIENTS:
                        for beta in COEFFICIENTS:
                            for _ in range(1 if alpha == "0" else 3):
                                values = {name: pick(options) for name, options in layouts.items()}
                                values |= {"m": pick(ms), "n": pick(ns), "k": pick(ks), "variant": pick(variants)}
                                values |= {"layout": layout, "ta": ta, "tb": tb, "alpha": alpha, "beta": beta}
                                cases.append(_case(dtype, values, rng))
        pairs = {
            "m": ms,
            "n": ns,
            "k": ks,
            **layouts,
            "alpha": COEFFICIENTS[1:],
            "beta": COEFFICIENTS,
            "variant": variants,
        }
        cases += [_case(dtype, point, rng) for point in cover(pairs, rng)]
        for variant in variants:
            for m, n, k, layout in _beyond_blocks(tile, blocking, thorough=variant == -1):
                values = {name: pick(options) for name, options in layouts.items()}
                values |= {"layout": layout, "alpha": pick(COEFFICIENTS[1:]), "beta": pick(COEFFICIENTS)}
                cases.append(_case(dtype, {**values, "m": m, "n": n, "k": k, "variant": variant}, rng))
        cases += _large(dtype, tile, rng, 8, 2e7)
        cases += smallest_grid(dtype, rng, 128)
        cases += _few_rows(dtype, tile, rng, 24, variants)
        cases += _shallow(dtype, tile, rng, 48, variants)
        cases += _vectors(dtype, tile, rng, 48, variants)
        cases += [_anywhere(dtype, 3 * mr, 3 * nr, 64, rng) for _ in range(40)]
        cases += _drawn(dtype, tile, rng, 15, 16 * LONGEST, variants)
        cases += _no_numbers(dtype, tile, rng, 10)
        for dim, most in (("k", 192), ("m", 48), ("n", 48)):
            cases += _each_size(dtype, rng, dim, most, variants)
        cases += _squares(dtype, nr + 1, ("col", "row"), rng) + _squares(dtype, mr + 1, ("col", "row"), rng)
        empty: list[dict[str, Value]] = [
            {"m": m, "n": n, "k": k, "alpha": alpha, "beta": beta}
            for m, n, k in ((0, nr, ku), (mr, 0, ku), (mr + 1, nr + 1, 0), (0, 0, 0))
            for alpha in COEFFICIENTS
            for beta in COEFFICIENTS
        ]
        return (*cases, *_empty(dtype, empty, rng))

    def edge_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> list[Case]:
        """Every number of columns that may be left after whole tiles, once, with numbers of rows in turn. tile: as in
        quick_grid."""
        mr, nr, ku = _tile(tile)
        rows = rng.permutation(np.arange(1, mr + 1))
        cases = []
        for number in range(max(nr, 1)):
            m, n = mr * (number % 2) + int(rows[number % len(rows)]), nr * (number // 2 % 2) + number + 1
            values: dict[str, Value] = {
                name: options[int(rng.integers(len(options)))] for name, options in _layouts().items()
            }
            values |= {"layout": "col", "m": m, "n": n, "k": ku + 1, "alpha": "1", "beta": ("0", "1")[number % 2]}
            cases.append(_case(dtype, values, rng))
        return cases

    def thread_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> tuple[Case, ...]:
        """Products large enough to be shared out among threads, of drawn sizes and coefficients; about 60 Mflop
        together. tile: as in quick_grid."""
        mr, nr, _ = _tile(tile)
        shapes = [(8 * mr + 1, 24 * nr + 1, 64), (3 * mr + 2, 128 * nr + 3, 31), (257, 129, 65), (2 * mr, 40 * nr, 0)]
        cases = []
        for layout in LAYOUTS:
            for (m, n, k), kind in zip(shapes, ("normal", "integer", "wide", "normal"), strict=True):
                taller = 2.0 ** rng.uniform(-1, 1)
                values = {name: options[int(rng.integers(len(options)))] for name, options in _layouts().items()}
                values |= {"layout": layout, "m": max(1, int(m * taller)), "n": max(1, int(n / taller))}
                values |= {"k": k and drawing.between(k // 2, 2 * k, rng.random()), "distribution": kind}
                values |= {"alpha": COEFFICIENTS[1 + int(rng.integers(3))], "beta": COEFFICIENTS[int(rng.integers(4))]}
                cases.append(_case(dtype, values, rng))
        return tuple(cases)
