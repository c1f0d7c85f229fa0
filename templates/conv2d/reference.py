"""conv2d, a forward cross-correlation: its inputs, an independent oracle, its error bound, the grids.

Problem.dims        n, c, h, w, k, r, s
Problem.attributes  u, v strides; p, b, l, q zeros above, below, left and right; d, e dilations; g groups
Problem.options     layout ("nchw" | "nhwc"), bias, relu (0 | 1), variant (-1: the library chooses)

In nchw x is n, c, h, w and the weights are k, c / g, r, s; in nhwc x is n, h, w, c and the weights k, r, s, c / g. y
lies as x.

The oracle sums over taps in the next wider type with NumPy's own loops, and never calls a BLAS. Long sums of f64 are
made in float64 by blocks of a few channels and in long double over the blocks; the blocks' rounding is part of the
bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tensorop.model import drawing
from tensorop.model.call import Call, Placement
from tensorop.model.case import Case, cover, distinct, edges
from tensorop.model.contract import Contract
from tensorop.model.point import Value
from tensorop.model.problem import Problem
from tensorop.model.second import LINE, longer

Array = NDArray[Any]

LAYOUTS = ("nchw", "nhwc")
SMALL = 1 << 14  # bytes of an operand whose second one is all new
LONG = 1 << 24  # multiply-adds from which sums of f64 go by blocks
BLOCK = 16  # channels of such a block
ROUNDED = 64  # elements that a packed block is rounded up to
TURNED = 1 << 18  # outputs of an image's group that may be computed turned round
NEAR = 1 << 12  # elements of a panel of y that stays in L1
MOST_STRIDE, MOST_TAPS = 4, 64  # of channels that are cut into planes
LONGEST = 1 << 14  # of a dimension in grids that every candidate takes
DRAWN_WORK = 6e4  # multiply-adds of a drawn convolution, about
LAST = 4  # pixels of an image that may be left to dot products


@dataclass(frozen=True)
class Geometry:
    """A problem's numbers by their names, with what follows from them."""

    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    s: int
    u: int
    v: int
    p: int
    b: int
    l: int  # noqa: E741 - as shapes are written
    q: int
    d: int
    e: int
    g: int

    @staticmethod
    def of(problem: Problem) -> Geometry:
        return Geometry(**problem.sizes)

    @property
    def high(self) -> int:
        """Rows of y."""
        return (self.h + self.p + self.b - self.d * (self.r - 1) - 1) // self.u + 1

    @property
    def wide(self) -> int:
        return (self.w + self.l + self.q - self.e * (self.s - 1) - 1) // self.v + 1

    @property
    def depth(self) -> int:
        """Terms of a sum."""
        return self.c // self.g * self.r * self.s

    @property
    def broad(self) -> int:
        """Elements of a row of a plane, of which the driver cuts a channel into one for each stride down and across."""
        return self.wide + (self.s - 1) * self.e // self.v

    @property
    def cut(self) -> int:
        """Elements of a channel's planes."""
        return self.u * self.v * (self.high + (self.r - 1) * self.d // self.u) * self.broad

    @property
    def in_planes(self) -> bool:
        """Whether the driver cuts the channels of a depthwise convolution into planes."""
        return max(self.u, self.v) <= MOST_STRIDE and self.r * self.s <= MOST_TAPS

    @property
    def depthwise(self) -> bool:
        return self.g == self.c == self.k

    @property
    def gathers(self) -> bool:
        """Whether the windows are no matrix as x lies."""
        return (self.r, self.s, self.u, self.v, self.p, self.b, self.l, self.q) != (1, 1, 1, 1, 0, 0, 0, 0)

    def product(self, nhwc: bool) -> tuple[int, int, int, int]:
        """The products that it is: how many images apart, rows, columns, depth of one group's."""
        pixels, filters = self.high * self.wide, self.k // self.g
        return (1, filters, self.n * pixels, self.depth) if nhwc else (self.n, pixels, filters, self.depth)


def _rounded(elements: int) -> int:
    return -(-elements // ROUNDED) * ROUNDED


class Conv2d(Contract):
    CONTROL_TILE: ClassVar = {"mr": 8, "nr": 4, "ku": 2}
    CONTROL_SHAPE = (1, 16, 14, 14, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1)
    DISTRIBUTIONS = ("integer", "normal", "special")

    def work(self, problem: Problem) -> float:
        """A multiplication and an addition for each tap of each output, zeros around x included."""
        g = Geometry.of(problem)
        return 2.0 * g.n * g.k * g.high * g.wide * g.depth

    def traffic(self, problem: Problem) -> float:
        """The least bytes that must move: x no more than the windows read of it, w, bias and y."""
        g, size = Geometry.of(problem), self.operands["x"].number(problem.dtype).size
        rows, columns = min(g.h, g.high * g.r), min(g.w, g.wide * g.s)
        return float(size * (g.n * g.c * rows * columns + g.k * g.depth + g.k + g.n * g.k * g.high * g.wide))

    def features(self, problem: Problem) -> dict[str, int]:
        g, nhwc = Geometry.of(problem), problem.options.get("layout") == "nhwc"
        images, m, n, k = g.product(nhwc)
        told = {"m": m, "n": n, "k": k, "images": images, "groups": g.g, "wide": g.wide, "gathers": int(g.gathers)}
        return {**told, "strided": int(g.u * g.v > 1), "depthwise": int(g.depthwise), "nhwc": int(nhwc)}

    def _values(self, one: Any, problem: Problem, rng: np.random.Generator, distribution: str) -> Array:
        """special: N(0, 1) with NaN, both infinities and -0 in x."""
        values = super()._values(one, problem, rng, "normal" if distribution == "special" else distribution)
        if distribution == "special" and one is self.operands["x"] and values.size:
            some = rng.integers(0, values.size, 4)
            values[some] = np.array([np.nan, np.inf, -np.inf, -0.0], values.dtype)
        return values

    def alternated(self, problem: Problem, given: Call, rng: np.random.Generator) -> Call:
        """Second operands for every other call of a batch: a little longer x and w, read from further on."""
        number, (x, w, *rest) = self.operands["x"].number(problem.dtype), given.buffers
        further = (longer(one, LINE // number.size, number, rng, SMALL) for one in (x, w))
        return replace(given, buffers=(*further, *rest))

    def workspace(self, problem: Problem, point: Mapping[str, Value], lanes: int, group: int = 1) -> int:
        """As much as the driver counts, or more: a block of each operand, each with its end rounded up, planes, what is
        turned round, the windows of the last pixels, and a line to begin at."""
        g = Geometry.of(problem)
        nhwc = problem.options.get("layout") == "nhwc"
        if g.depthwise:
            if nhwc:
                return g.r * g.s * g.k + ROUNDED
            return _rounded(g.cut) + _rounded(g.high * g.broad) + ROUNDED if g.in_planes else ROUNDED
        _, m, n, k = g.product(nhwc)
        turned = 0 if nhwc or m * n > TURNED else m * n
        if turned:
            m = n = max(m, n)
        mc, kc, nc, nr = (int(point[name]) for name in ("mc", "kc", "nc", "nr"))
        depth = k if k <= kc + kc // 4 else -(-k // -(-k // kc))
        mc = max(mc, min(mc * kc // k, NEAR // nr))
        vectors = min(-(-m // lanes), max(mc // lanes, 1))
        taps, channels = g.r * g.s, g.c // g.g
        # whole channels where strides are across, and with masks those of a block of k, to the end of a vector
        cut = 0 if g.v == 1 or g.s == 1 else channels * g.cut
        if 1 < taps <= MOST_TAPS:
            cut = max(cut, min(channels, (depth - 1) // taps + 2) * g.cut + lanes)
        if nhwc or max(g.u, g.v) > MOST_STRIDE:
            cut = 0
        last = 0 if nhwc else 2 * LAST * depth
        packed = _rounded(vectors * lanes * depth) + _rounded(min(n, max(nc, nr)) * depth)
        return packed + cut + turned + last + ROUNDED

    def expected(self, problem: Problem, given: Call) -> Mapping[str, tuple[Array, Array]]:
        """Sums of depth terms (and a bias) within gamma of the terms' sizes (Higham, section 3.1)."""
        g, options = Geometry.of(problem), problem.options
        number = self.operands["y"].number(problem.dtype)
        x, w, bias = (buffer.data for buffer in given.buffers[:3])
        nhwc = options.get("layout") == "nhwc"
        if nhwc:
            x = np.moveaxis(x.reshape(g.n, g.h, g.w, g.c), 3, 1)
            w = np.moveaxis(w.reshape(g.k, g.r, g.s, g.c // g.g), 3, 1)
        x, w = x.reshape(g.n, g.g, g.c // g.g, g.h, g.w), w.reshape(g.g, g.k // g.g, g.c // g.g, g.r, g.s)
        with np.errstate(all="ignore"):
            want, rounding = _sums(x, w, g, problem.dtype)
            sizes = _correlated(np.abs(x).astype(np.float64), np.abs(w).astype(np.float64), g, np.float64)
            if options.get("bias", 0):
                of_filter = bias.reshape(1, g.g, g.k // g.g, 1, 1)
                want = want + of_filter.astype(want.dtype)
                sizes = sizes + np.abs(of_filter).astype(np.float64)
            terms = (g.depth + 2) * number.unit
            bound = (terms / (1 - terms) + rounding) * sizes + (g.depth + 2) * number.tiny
            if options.get("relu", 0):
                want = np.where(want < 0, np.zeros((), want.dtype), want)
        shape = (g.n, g.k, g.high, g.wide)
        want, bound = want.reshape(shape), np.asarray(bound).reshape(shape)
        if nhwc:
            want, bound = (np.ascontiguousarray(np.moveaxis(array, 1, 3)) for array in (want, bound))
        return {"y": (want, bound)}

    def tile(self, point: Mapping[str, Value], lanes: int, reads: Mapping[str, str]) -> dict[str, int]:
        return {"mr": int(point["mr_vectors"]) * lanes, "nr": int(point["nr"]), "ku": int(point.get("ku", 1))}

    def same(self, tile: Mapping[str, int]) -> tuple[int, ...]:
        return tile["mr"], tile["nr"]

    def proxy(self, sizes: Mapping[str, int]) -> Mapping[str, int] | None:
        """Half the images, else half the filters or the channels, whatever is more; of one group alone."""
        if sizes["n"] > 1:
            return {**sizes, "n": sizes["n"] // 2}
        longest = "k" if sizes["k"] >= sizes["c"] else "c"
        return {**sizes, longest: sizes[longest] // 2} if sizes["g"] == 1 and sizes[longest] > 1 else None

    def quick_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> Sequence[Case]:
        """Outputs and filters around the tile, all else in pairs; depthwise, deep and large ones; both ends against a
        guard page."""
        return self._pairs(dtype, tile, rng) + self._known(dtype, tile) + self._drawn(dtype, rng, 3)

    def full_grid(
        self, dtype: str, tile: Mapping[str, int], blocking: Mapping[str, int], rng: np.random.Generator
    ) -> Sequence[Case]:
        """The pairs several times over and by each variant, and sums and sides longer than the largest blocks."""
        variants = (-1, *range(blocking.get("variants", 0)))
        cases: list[Case] = []
        for variant in variants:
            made = self._pairs(dtype, tile, rng)
            made += self._known(dtype, tile) + self._beyond(dtype, blocking)
            made += self._drawn(dtype, rng, 4 if variant == -1 else 1, 4 * LONGEST)
            cases += [replace(case, problem=case.problem.with_options(variant=variant)) for case in made]
        return cases

    def edge_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> Sequence[Case]:
        """Every number of filters that may be left after whole tiles, with numbers of outputs in turn."""
        cases = []
        for number, (wide, columns) in enumerate(edges(tile, rng)):
            k = tile["nr"] * (number % 2) + columns
            sizes = {"n": 1, "c": 3, "h": 2, "w": wide, "k": k, "r": 1 + 2 * (number % 2), "s": 1, "p": number % 2}
            sizes |= {"l": 0, "q": 0}
            cases.append(self._case(dtype, sizes, LAYOUTS[number // 2 % 2], number))
        return cases

    def _pairs(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> list[Case]:
        mr, nr = tile["mr"], tile["nr"]
        factors: dict[str, Sequence[Value]] = {
            "layout": LAYOUTS,
            "wide": distinct(1, 7, mr - 1, mr + 2),
            "high": (1, 2, 5),
            "filters": distinct(1, nr - 1, nr, 2 * nr + 3),
            "channels": (1, 3, 5),
            "taps": ("1x1", "3x3", "2x5", "3x1"),
            "u": (1, 2, 3),
            "v": (1, 2, 3),
            "zeros": ("0000", "1111", "0101", "2013"),
            "d": (1, 2),
            "e": (1, 2),
            "g": (1, 2),
            "bias": (0, 1),
            "relu": (0, 1),
        }
        cases = []
        for number, point in enumerate(cover(factors, rng)):
            r, s = map(int, str(point["taps"]).split("x"))
            p, b, l, q = map(int, str(point["zeros"]))  # noqa: E741
            u, v, d, e, g = (int(point[name]) for name in "uvdeg")
            # as few rows as give that many outputs, or some that no window reads
            h = max((int(point["high"]) - 1) * u + d * (r - 1) + 1 - p - b + number % u, 1)
            w = max((int(point["wide"]) - 1) * v + e * (s - 1) + 1 - l - q + number % v, 1)
            sizes = {"n": 1 + number % 2, "c": int(point["channels"]) * g, "h": h, "w": w}
            sizes |= {"k": int(point["filters"]) * g, "r": r, "s": s, "u": u, "v": v, "p": p, "b": b, "l": l, "q": q}
            sizes |= {"d": d, "e": e, "g": g}
            options = {name: point[name] for name in ("bias", "relu")}
            cases.append(self._case(dtype, sizes, str(point["layout"]), number, options))
        return cases

    def _known(self, dtype: str, tile: Mapping[str, int]) -> list[Case]:
        """Depthwise ones, sums longer than a block, more outputs than a block holds, first layers, wide rows,
        weights whose rows are many pages, images of one to four pixels more than vectors hold."""
        mr, nr = tile["mr"], tile["nr"]
        texts = [
            f"n1c5h6w{mr + 3}k5r3s3p1g5",
            f"n2c{mr + 1}h7w9k{mr + 1}r3s3u2p1g{mr + 1}",
            "n1c3h9w8k3r2s5u1v3p1d2e1g3",
            "n1c3h64w33k8r1s1",
            f"n1c72h5w5k{nr + 1}r3s3p1",
            f"n2c3h23w24k{nr + 2}r7s7u2p3",
            f"n1c2h40w41k{2 * nr}r3s3p1",
            f"n2c5h3w3k{2 * mr + 2}r3s3p1",
            f"n2c5h6w5k{2 * mr}r3s3u2p1",
            f"n2c9h3w3k{2 * mr}r1s1",
            "n1c2h21w131k2r3s3p1g2",
            "n1c2h42w98k2r3s3u2p1g2",
            f"n1c1024h2w3k{nr + 2}r1s1",
            f"n2c9h7w7k{nr + 2}r3s3p1",
            f"n1c65h6w3k{2 * nr + 5}r1s1",
            "n1c70h37w1k5r1s1u2",
            f"n1c35h7w10k{nr + 1}r3s3u2p1",
        ]
        return [
            self._case(
                dtype, self.shapes.named(self.shapes.of(text)), layout, i + j, {"bias": i % 2, "relu": i // 2 % 2}
            )
            for i, text in enumerate(texts)
            for j, layout in enumerate(LAYOUTS)
        ]

    def _drawn(self, dtype: str, rng: np.random.Generator, count: int, longest: int = LONGEST) -> list[Case]:
        """Random sizes: of each dimension `count` convolutions (of taps one) in which it is long and the others are
        small, all sizes and magnitudes log-uniform, one in each of as many equal parts of their range."""
        dims = {"n": longest, "c": longest, "h": longest, "w": longest, "k": longest, "r": MOST_TAPS, "s": MOST_TAPS}
        total = count * len(dims)
        parts = [itertools.cycle(drawing.strata(total // 2 + 1, rng)) for _ in range(2)]
        cases: list[Case] = []
        for name, most in dims.items():
            for part in drawing.strata(count if most > MOST_TAPS else 1, rng):
                size = drawing.between(8 if most == MOST_TAPS else 64, most, part)
                others = max(1, min(6, int((DRAWN_WORK / size) ** 0.25)))
                z = {dim: drawing.between(1, others, rng.random()) for dim in dims}
                z |= {at: drawing.between(1, 3, rng.random()) for at in "uvde"}
                z |= {at: int(rng.integers(3)) for at in "pblq"}
                z["g"] = drawing.between(1, min(others, 3), rng.random())
                z[name] = size
                z["k"] = max(z["k"], 4) if name == "c" else z["k"]
                z |= {"c": -(-z["c"] // z["g"]) * z["g"], "k": -(-z["k"] // z["g"]) * z["g"]}
                for side, taps, far, before, after in (("h", "r", "d", "p", "b"), ("w", "s", "e", "l", "q")):
                    reach = z[far] * (z[taps] - 1)
                    z[before] = min(z[before], reach)  # the first window sees some of x
                    seen = reach + 1 - z[before] - z[after]
                    z[side] = max(z[side], seen + int(rng.integers(3)), 4 if reach else 1)
                geometry = Geometry(**self.shapes.filled(z))
                many = z["n"] * z["k"] * geometry.high * geometry.wide > 64  # of few ReLU hides a fault
                options: dict[str, Value] = {"bias": int(rng.integers(2)), "relu": int(rng.integers(1 + many))}
                number = len(cases)
                long = z["c"] // z["g"] * z["r"] * z["s"] > 1000
                kind = "integer" if long and number % 3 else "normal"  # a long sum has a wide bound, or none at all
                if kind == "normal":
                    factors = ("x", "w") if number % 2 else ("w", "x")
                    at = next(parts[number % 2])
                    options |= self.magnitudes(dtype, factors, "y", "bias" if options["bias"] else "", at, rng)
                case = self._case(dtype, z, LAYOUTS[int(rng.integers(2))], number, options)
                cases.append(replace(case, distribution=kind, placement=list(Placement)[int(rng.integers(2))]))
        return cases

    def _beyond(self, dtype: str, blocking: Mapping[str, int]) -> list[Case]:
        """One dimension of the product longer than its largest block."""
        mc, kc, nc = (int(blocking.get(name, 64)) for name in ("mc", "kc", "nc"))
        texts = [
            f"n1c2h3w{mc + 5}k2r3s1p1",
            f"n1c{kc // 6 + 3}h3w7k5r3s3p1",
            f"n1c2h1w5k{nc + 3}r1s1",
            f"n1c1h5w{nc // 4}k9r1s3l1q1",
        ]
        return [
            self._case(dtype, self.shapes.named(self.shapes.of(text)), layout, i)
            for i, text in enumerate(texts)
            for layout in LAYOUTS
        ]

    def _case(
        self,
        dtype: str,
        sizes: Mapping[str, Value],
        layout: str,
        number: int,
        options: Mapping[str, Value] | None = None,
    ) -> Case:
        problem = self.problem(dtype, sizes, {"layout": layout, "bias": 0, "relu": 0, **(options or {})})
        kinds = ("normal", "integer", "normal", "special", "normal")
        return Case(problem, kinds[number % len(kinds)], list(Placement)[number % 2])


def _sums(x: Array, w: Array, g: Geometry, dtype: str) -> tuple[Array, float]:
    """The sums in the next wider type, and what of their terms' sizes the way there may have lost."""
    if dtype == "f32":
        return _correlated(x.astype(np.float64), w.astype(np.float64), g, np.float64), 0.0
    if g.n * g.k * g.high * g.wide * g.depth < LONG:
        return _correlated(x.astype(np.longdouble), w.astype(np.longdouble), g, np.longdouble), 0.0
    total: Array = np.zeros((g.n, g.g, g.k // g.g, g.high, g.wide), np.longdouble)
    for at in range(0, g.c // g.g, BLOCK):
        for r in range(g.r):
            taps = w[:, :, at : at + BLOCK, r : r + 1]
            total += _correlated(x[:, :, at : at + BLOCK], taps, g, np.float64, r)
    most = BLOCK * g.s
    return total, most * 2.0**-53 / (1 - most * 2.0**-53)


def _correlated(x: Array, w: Array, g: Geometry, wider: Any, first: int = 0) -> Array:
    """y as n, g, k / g, high, wide of x as n, g, c / g, h, w and the rows of taps from `first` on."""
    zeros = ((0, 0), (0, 0), (0, 0), (g.p, g.b), (g.l, g.q))
    padded = np.pad(x, zeros)
    total: Array = np.zeros((g.n, g.g, w.shape[1], g.high, g.wide), wider)
    for r in range(w.shape[3]):
        for s in range(g.s):
            top, left = (first + r) * g.d, s * g.e
            seen = padded[..., top : top + (g.high - 1) * g.u + 1 : g.u, left : left + (g.wide - 1) * g.v + 1 : g.v]
            seen = np.ascontiguousarray(seen).reshape(g.n, g.g, seen.shape[2], -1)
            total += np.einsum("ngcp,gkc->ngkp", seen, w[:, :, :, r, s]).reshape(total.shape)
    return total
