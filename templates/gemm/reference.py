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
from numpy.typing import NDArray

from tensorop.model import drawing
from tensorop.model.call import Access, Buffer, Call, Placement
from tensorop.model.case import Case, cover
from tensorop.model.contract import Contract, compared
from tensorop.model.matrix import Array, Matrix
from tensorop.model.number import NUMBERS
from tensorop.model.point import Value
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind
from tensorop.model.verdict import Judgement

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
    _distinct,
    _drawn,
    _each_size,
    _empty,
    _few_rows,
    _large,
    _layouts,
    _nearly_done,
    _no_numbers,
    _pad,
    _plainness,
    _shallow,
    _squares,
    _tile,
    _vectors,
    smallest_grid,
)
from .inputs import DISTRIBUTIONS, LINE, SMALL, STARTS, _matrices, _poison, _start, _whole_lines
from .oracle import LAYOUTS, SUMS, _flops, _modular, computed, oracle, product


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

    def matrices(self, problem: Problem) -> Mapping[str, Matrix]:
        p = product(problem)
        return {"A": p.a, "B": p.b, "C": p.c}

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
        got = self.returned(problem, given, outputs, "C")
        if isinstance(got, Judgement):
            return got
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
