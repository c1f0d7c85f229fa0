"""gemm, C = alpha op(A) op(B) + beta C: its contract. The oracle, inputs and cases are in the files beside it.

Problem.dims     m, n, k
Problem.options  layout ("col" | "row"), ta, tb (0 | 1), alpha, beta (numbers or their text),
                 variant (-1: the library chooses),
                 lda_pad, ldb_pad, ldc_pad (elements a leading dimension is longer than it must be),
                 exp_A, exp_B, exp_C (binary exponents of `normal` inputs, which are in [1, 2) times that then)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tensorop.model import drawing
from tensorop.model.call import Call
from tensorop.model.case import Case, cover, distinct, edges
from tensorop.model.contract import STARTS, Contract
from tensorop.model.kernel_alone import KernelAlone, TileCall
from tensorop.model.matrix import Array, Matrix
from tensorop.model.number import NUMBERS
from tensorop.model.point import Value
from tensorop.model.problem import Problem
from tensorop.model.second import LINE

from .alone import case_of, tile_of
from .grids import (
    COEFFICIENTS,
    GROUPS,
    KERNEL_WORK,
    LONGEST,
    TURNED,
    USUAL,
    _anywhere,
    _beyond_blocks,
    _case,
    _deep,
    _drawn,
    _each_size,
    _empty,
    _few_rows,
    _flops,
    _large,
    _layouts,
    _nearly_done,
    _no_numbers,
    _pad,
    _picked,
    _plainness,
    _shallow,
    _squares,
    _tile,
    _vectors,
    smallest_grid,
)
from .inputs import DISTRIBUTIONS, matrices
from .oracle import LAYOUTS, SUMS, Product, _modular, computed, oracle


def problems(
    shapes: Iterable[Sequence[int]], dtype: str, options: Mapping[str, Value] | None = None
) -> tuple[Problem, ...]:
    """One problem a shape (m, n, k)."""
    return tuple(Problem.of("gemm", dtype, {"m": int(m), "n": int(n), "k": int(k)}, options) for m, n, k in shapes)


class Gemm(Contract):
    """The contract; what is above are its parts."""

    CONTROL_TILE: ClassVar[Mapping[str, int]] = {"mr": 8, "nr": 4, "ku": 4}  # small, since controls are plain loops
    CONTROL_SHAPE = (12, 10, 24)
    DISTRIBUTIONS = DISTRIBUTIONS
    problems, smallest_grid = staticmethod(problems), staticmethod(smallest_grid)

    def work(self, problem: Problem) -> float:
        """Arithmetic operations: 2 m n k."""
        return _flops(problem)

    def recorded(self, routine: str, fields: Mapping[str, str]) -> Problem | None:
        """BLAS's gemm of real numbers; a column-major call is the row-major product C' = B' A'."""
        if (dtype := {"sgemm": "f32", "dgemm": "f64"}.get(routine)) is None:
            return None
        sides = {"row": ("m", "n", "transa", "transb"), "col": ("n", "m", "transb", "transa")}[fields["layout"]]
        m, n, k = (int(fields[name]) for name in (*sides[:2], "k"))
        ta, tb = ({"N": 0, "T": 1, "C": 1}[fields[name]] for name in sides[2:])
        flags = {name: 1 for name, is_set in (("ta", ta), ("tb", tb)) if is_set}
        return self.problem(dtype, {"m": m, "n": n, "k": k}, {"layout": "row", **flags})

    def product(self, problem: Problem) -> Product:
        """The problem, read once."""
        known, (alpha, beta) = self.known(problem), (self.scalar(problem, name) for name in self.parameters)
        flags = known["layout"] == self.flags["layout"]["col"], bool(known["ta"]), bool(known["tb"])
        sizes = known["m"], known["n"], known["k"]
        return Product(*sizes, problem.dtype, *flags, alpha, beta, *self.matrices(problem).values())

    def features(self, problem: Problem) -> dict[str, int]:
        """What the library's dispatch sees: the column-major product it computes, and what it can read in place."""
        p = self.product(problem)
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
        p = self.product(problem)
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

    def inputs(self, problem: Problem, rng: np.random.Generator, distribution: str) -> dict[str, Array]:
        """A, B and C; C of numbers only where it is read.

        integer  whole numbers in [-4, 4]: every order of summation gives the same bits
        exact    so does this, with one operand of wide numbers and a sparse one of -1, 0 and 1: nothing may be rounded
                 on the way, however large k is
        normal   N(0, 1); where the problem says so, of magnitudes from all that the format can multiply and add
        wide     rows, columns and steps of k scaled by powers of two, the second half of k cancelling the first
        special  N(0, 1) with NaN, both infinities, -0 and a row of denormals

        Of integer dtypes, `normal` is any A and B, `wide` the two extremes with any C, whose sums wrap, and `special`
        any with rows and columns of one extreme.
        """
        made = matrices(self.product(problem), rng, distribution, problem.options)
        each = zip(self.operands.items(), made, strict=True)
        return {name: one.number(problem.dtype).encoded(values) for (name, one), values in each}

    def behind(self, problem: Problem, name: str, storage: Array, rng: np.random.Generator) -> Array:
        """Without masks (`beyond`) there are zeros behind the rows of A, and elements behind B that may be read."""
        beyond = int(problem.options.get("beyond", 0))
        if not beyond or name == "C":
            return storage
        if name == "B":
            return np.concatenate([storage, NUMBERS[problem.dtype].poison(beyond, rng)])
        a = self.matrices(problem)["A"]
        lines = np.zeros((a.outer, a.ld), storage.dtype)
        lines[:, : a.inner] = replace(a, transposed=False).view(storage)
        return lines.reshape(-1)

    def begun(self, problem: Problem, given: Call, rng: np.random.Generator) -> Mapping[str, Array]:
        """The fast product of NumPy, since this start decides no verdict."""
        p, (a, b, c) = self.product(problem), self.values(problem, given).values()
        if p.accumulator.whole:
            start = _modular(p, a, b, np.zeros(c.shape)).astype(np.float64)
        else:
            start = p.alpha * (a.astype(np.float64) @ b.astype(np.float64))
        wrong = rng.random(c.shape) < 0.5
        wrong[0, 0] = wrong[-1, -1] = False
        if not wrong.any():
            wrong[rng.integers(p.m), rng.integers(p.n)] = True
        return {"C": np.where(wrong, np.where(start > 0, start - 1, start + 1), start)}

    def expected(self, problem: Problem, given: Call) -> Mapping[str, tuple[Array, Array]]:
        return {"C": oracle(self.product(problem), *self.values(problem, given).values())}

    def quick_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> tuple[Case, ...]:
        """About 45 small calls for every candidate: sizes around the tile and all else in pairs, squares, empty sizes.

        tile: mr, nr and, where the k loop is unrolled, ku; all in elements at the VLEN in question.
        deep: where conditions may distinguish such a k.
        """
        mr, nr, ku = _tile(tile)
        factors: dict[str, Sequence[Value]] = {
            "m": distinct(1, mr - 1, mr, mr + 2, 2 * mr + 3),
            "n": distinct(1, nr - 1, nr, nr + 2, 2 * nr + 3),
            "k": distinct(1, ku + 1, 2 * ku + 3, 17),
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
            *_deep(dtype, tile, rng),
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

    def path_case(self, kernel: KernelAlone, of: TileCall, rng: np.random.Generator) -> Case | None:
        tile = tile_of(of.function)
        if tile is None or (of.largest and not tile.is_largest(kernel)):
            return None
        return case_of(kernel, tile, of.arguments, rng)

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
        ms = distinct(1, 2, 3, mr - 1, mr, mr + 1, mr + 2, mr + 3, 2 * mr - 1, 2 * mr + 1, 3 * mr + 2, 13, 31)
        ns = distinct(1, 2, 3, nr - 1, nr, nr + 1, nr + 2, nr + 3, 2 * nr - 1, 2 * nr + 1, 3 * nr + 2, 13, 31)
        ks = distinct(1, 2, 3, 4, 5, 7, 8, ku - 1, ku, ku + 1, 2 * ku + 1, 16, 17, 31, 64)
        variants: tuple[Value, ...] = (-1, *range(blocking.get("variants", 0)))

        def pick(values: Sequence[Value]) -> Value:
            return values[int(rng.integers(len(values)))]

        cases = []
        names, sides = ("layout", "ta", "tb", "alpha", "beta"), (0, 1)
        for *flags, alpha, beta in itertools.product(("col", "row"), sides, sides, COEFFICIENTS, COEFFICIENTS):
            for _ in range(1 if alpha == "0" else 3):
                values = _picked(rng)
                values |= {"m": pick(ms), "n": pick(ns), "k": pick(ks), "variant": pick(variants)}
                values |= dict(zip(names, (*flags, alpha, beta), strict=True))
                cases.append(_case(dtype, values, rng))
        pairs = {
            "m": ms,
            "n": ns,
            "k": ks,
            **_layouts(),
            "alpha": COEFFICIENTS[1:],
            "beta": COEFFICIENTS,
            "variant": variants,
        }
        cases += [_case(dtype, point, rng) for point in cover(pairs, rng)]
        for variant in variants:
            for m, n, k, layout in _beyond_blocks(tile, blocking, thorough=variant == -1):
                values = _picked(rng)
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
        cases = []
        for number, (rows, columns) in enumerate(edges(tile, rng)):
            m, n = mr * (number % 2) + rows, nr * (number // 2 % 2) + columns
            values = _picked(rng)
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
                values = _picked(rng)
                values |= {"layout": layout, "m": max(1, int(m * taller)), "n": max(1, int(n / taller))}
                values |= {"k": k and drawing.between(k // 2, 2 * k, rng.random()), "distribution": kind}
                values |= {"alpha": COEFFICIENTS[1 + int(rng.integers(3))], "beta": COEFFICIENTS[int(rng.integers(4))]}
                cases.append(_case(dtype, values, rng))
        return tuple(cases)
