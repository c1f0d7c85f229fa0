"""attention: its inputs, an independent oracle, its error bound, the grids.

Problem.dims      b batch, h heads of Q, g heads of K and V, s queries, t keys, d numbers of a head, dv those of V and O
Problem.options   layout ("bshd" | "bhsd"), align ("end" | "start"), left, right (-1: all), ragged, lse (0 | 1),
                  scale, variant (-1: the library chooses)

The oracle computes one head at a time in float64 with the whole matrix of scores, and subtracts each row's largest
score. A query that sees no key gives 0, and -inf as its log-sum-exp.

Error bound (u: unit roundoff of the dtype; Higham, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4).
Weights are p_j = exp(s_j - m), with m a running maximum. A kernel's weight has a relative error of at most

    exp(e_j) - 1,  e_j = gamma_(d + 3) * scale * |q| |k_j|  +  u |s_j - max|  +  B (EXP + 3) u

for the score, its difference from the maximum, and the exponentials and products of at most B blocks of keys, each of
which may lower the weights of all before it. m itself cancels: numerator and denominator have the same. Sums of n terms
add gamma_n, in any order. So with normalised weights w_j, E_j = exp(e_j) - 1 + gamma_(t + 2), and to first order

    |o' - o| <= sum_j w_j |v_j| E_j  +  |o| sum_j w_j E_j

O of bf16 and f16 is computed in float and rounded once more. Kernels for GPUs also round each weight to that format
before it is multiplied by v, which adds its u times sum_j w_j |v_j|. MARGIN covers the higher orders where E is below
0.1. Weights below the smallest normal number may be 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tensorop.model.call import Call, Placement
from tensorop.model.case import Case
from tensorop.model.contract import Contract
from tensorop.model.number import Number
from tensorop.model.point import Value
from tensorop.model.problem import Problem
from tensorop.model.signature import Operand

Array = NDArray[Any]

EXP = 4  # units of roundoff: the error of an exponential, twice the primitive's
LEAST_BLOCK = 16  # keys
MARGIN = 1.1


@dataclass(frozen=True)
class Rows:
    """The rows of Q and K that belong together."""

    batch: int  # index of the first axis
    q: slice
    k: slice


@dataclass(frozen=True)
class Window:
    """Which keys a query sees: from `left` before its own to `right` behind it; -1: all."""

    start: bool  # query i has key i; else i + t - s
    left: int
    right: int

    def seen(self, s: int, t: int) -> Array:
        """s x t: whether the query sees the key."""
        own = np.arange(s)[:, None] + (0 if self.start else t - s)
        key = np.arange(t)[None, :]
        all_of = np.ones((s, t), dtype=bool)
        after = all_of if self.left < 0 else key >= own - self.left
        return after & (all_of if self.right < 0 else key <= own + self.right)


@dataclass(frozen=True)
class Attention(Contract):
    rounded: bool = False  # weights are rounded to the format of O

    CONTROL_TILE: ClassVar = {"rows": 16, "nr": 4}
    CONTROL_SHAPE = (1, 4, 2, 40, 72, 24)
    DISTRIBUTIONS = ("integer", "normal", "special")

    def of_device(self) -> Contract:
        return replace(self, rounded=True)

    def _values(self, one: Operand, problem: Problem, rng: np.random.Generator, distribution: str) -> Array:
        """Normal inputs; `special` ones have NaN and infinities in some keys."""
        values = super()._values(one, problem, rng, "normal" if distribution == "special" else distribution)
        if distribution == "special" and one is self.operands["k"] and values.size:
            at = rng.integers(0, values.size, 1 + values.size // 2000)
            values[at] = one.number(problem.dtype).encoded(rng.choice([np.nan, np.inf, -np.inf], at.size))
        return values

    def work(self, problem: Problem) -> float:
        """A multiplication and an addition for each number of Q, K and of P, V, for each pair that sees itself."""
        known = self.known(problem)
        window = Window(known["align"] == 1, known["left"], known["right"])
        pairs = sum(_pairs(window, one.q.stop - one.q.start, one.k.stop - one.k.start) for one in self._even(problem))
        return 2.0 * (problem.sizes["d"] + problem.sizes["dv"]) * problem.sizes["h"] * pairs

    def tile(self, point: Mapping[str, Value], lanes: int, reads: Mapping[str, str]) -> dict[str, int]:
        return {"rows": int(point["mr_vectors"]) * lanes, "nr": int(point["nr"])}

    def features(self, problem: Problem) -> dict[str, int]:
        """rows: of Q, which share K and V; d: the mean of K's and V's."""
        b, h, g, s, t, d, dv = problem.sizes.values()
        known = self.known(problem)
        masked = int(known["left"] >= 0 or known["right"] >= 0)
        return {"heads": b * g, "rows": s * h // g, "keys": t, "d": (d + dv) // 2, "masked": masked}

    def expected(self, problem: Problem, given: Call) -> Mapping[str, tuple[Array, Array]]:
        """By the module's docstring."""
        known, number = self.known(problem), self.operands["o"].number(problem.dtype)
        real = self.operands["lse"].number(problem.dtype)  # computed with
        q, k, v, starts_q, starts_k = (buffer.data for buffer in given.buffers[:5])
        _, h, g, s, t, d, dv = problem.sizes.values()
        scale = given.scalars[0]
        window = Window(known["align"] == 1, known["left"], known["right"])
        q, k, v = (
            _by_heads(number.decoded(one).astype(np.float64), known, n, heads, d)
            for one, n, heads, d in ((q, s, h, d), (k, t, g, d), (v, t, g, dv))
        )
        o, bound = (np.zeros((*q.shape[:3], dv)) for _ in range(2))
        lse, of_lse = np.full(q.shape[:3], -np.inf), np.zeros(q.shape[:3])
        for one in _sequences(known, s, t, starts_q, starts_k):
            seen = window.seen(one.q.stop - one.q.start, one.k.stop - one.k.start)
            for head in range(h):
                at, of = (one.batch, head, one.q), (one.batch, head // (h // g), one.k)
                with np.errstate(all="ignore"):
                    weights = number if self.rounded else None
                    o[at], bound[at], lse[at], of_lse[at] = _head(q[at], k[of], v[of], seen, scale, real, weights)
        if number != real:  # O is rounded once more
            bound += number.unit * (np.abs(o) + bound) + number.tiny
        found = {"o": (_stored(o, known), _stored(bound, known))}
        none = np.zeros(0)
        return {**found, "lse": (lse.ravel(), of_lse.ravel()) if known["lse"] else (none, none)}

    def _even(self, problem: Problem) -> Iterator[Rows]:
        """The sequences of a problem; of a ragged one as if they were equally long."""
        known = self.known(problem)
        b, s, t = (problem.sizes[name] for name in "bst")
        if not known["ragged"]:
            return _sequences(known, s, t, np.zeros(0), np.zeros(0))
        return _sequences(known, s, t, *(np.linspace(0, n, b + 1).astype(int) for n in (s, t)))

    def quick_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> Sequence[Case]:
        """Rows and keys around the tile, every mask, layout and grouping, both ends against a guard page."""
        masks: list[dict[str, Value]] = [
            {}, {"right": 0}, {"right": 0, "align": "start"}, {"left": 3, "right": 0}, {"left": 2, "right": 5},
            {"left": 0, "right": 0, "align": "start"}, {"left": 7},
        ]  # fmt: skip
        rows, nr, cases = tile["rows"], tile["nr"], []
        largest = [tile["head"]] if "head" in tile else []  # of kernels with a limit
        for number in range(56):
            g = int(rng.choice([1, 1, 2, 3]))
            s = int(rng.choice([0, 1, 2, rows - 1, rows, rows + 1, 2 * rows + 3, int(rng.integers(1, 3 * rows))]))
            t = int(rng.choice([0, 1, nr - 1, nr, 2 * nr + 1, s, s + 1, 70, 130, int(rng.integers(1, 200))]))
            d = int(rng.choice([1, nr, nr + 1, 16, 24, 33, 64, *largest]))
            sizes = {
                "b": int(rng.choice([1, 2, 3])),
                "h": g * int(rng.choice([1, 1, 2, 4])),
                "g": g,
                "s": s,
                "t": t,
                "d": d,
            }
            options: dict[str, Value] = {"layout": ("bshd", "bhsd")[number % 2], **masks[number // 2 % len(masks)]}
            options |= {"lse": int(rng.integers(2)), "ragged": int(number % 5 == 4)}
            if number % 6 == 5:  # heads of V are others
                sizes["dv"] = int(rng.choice([1, 24, 40, tile.get("values", 96)]))
            if number % 4 == 0:
                options["scale"] = float(rng.uniform(0.05, 1.0))
            kind = self.DISTRIBUTIONS[2 if number % 8 == 3 else number // 3 % 2]
            cases.append(Case(self.problem(dtype, sizes, options), kind, list(Placement)[number % 2]))
        return cases

    def full_grid(
        self, dtype: str, tile: Mapping[str, int], blocking: Mapping[str, int], rng: np.random.Generator
    ) -> Sequence[Case]:
        """The quick grid, then several blocks of keys and rows."""
        cases = list(self.quick_grid(dtype, tile, rng))
        for number in range(12):
            sizes = {
                "b": 1,
                "h": 2,
                "g": 1 + number % 2,
                "s": int(rng.integers(1, 400)),
                "t": int(rng.integers(300, 1100)),
                "d": 64,
            }
            options: dict[str, Value] = {"layout": "bshd", "right": -number % 2 - 1 if number % 3 else 0, "lse": 1}
            cases.append(Case(self.problem(dtype, sizes, options), "normal", Placement.END))
        return cases

    def thread_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> Sequence[Case]:
        """Rows are divided, and keys of few rows."""
        all_of = {"b": 2, "h": 4, "g": 2, "s": 200, "t": 300, "d": 64}
        few = {"b": 1, "h": 4, "g": 2, "s": 3, "t": 2100, "d": 64}
        return [
            Case(self.problem(dtype, sizes, {"layout": "bshd", "right": right, "lse": 1}), "normal", Placement.END)
            for sizes in (all_of, few)
            for right in (-1, 0)
        ]


def _pairs(window: Window, s: int, t: int) -> int:
    """Pairs of a query and a key that it sees."""
    own = np.arange(s) + (0 if window.start else t - s)
    low = np.zeros(s, dtype=int) if window.left < 0 else np.clip(own - window.left, 0, t)
    high = np.full(s, t) if window.right < 0 else np.clip(own + window.right + 1, 0, t)
    return int(np.maximum(high - low, 0).sum())


def _sequences(known: Mapping[str, int], s: int, t: int, starts_q: Array, starts_k: Array) -> Iterator[Rows]:
    for one in range(known["b"]):
        if known["ragged"]:
            yield Rows(
                0, slice(int(starts_q[one]), int(starts_q[one + 1])), slice(int(starts_k[one]), int(starts_k[one + 1]))
            )
        else:
            yield Rows(one, slice(0, s), slice(0, t))


def _by_heads(values: Array, known: Mapping[str, int], n: int, heads: int, d: int) -> Array:
    """An operand as batch, heads, rows, d."""
    batch = 1 if known["ragged"] else known["b"]
    if known["layout"] == 1:
        return values.reshape(batch, heads, n, d)
    return values.reshape(batch, n, heads, d).swapaxes(1, 2)


def _stored(values: Array, known: Mapping[str, int]) -> Array:
    return values if known["layout"] == 1 else values.swapaxes(1, 2)


def _head(
    q: Array, k: Array, v: Array, seen: Array, scale: float, real: Number, weights: Number | None
) -> tuple[Array, ...]:
    """Output, its bound, log-sum-exp and its bound, of one head.

    real: format of the sums; weights: the one that weights are rounded to, if any
    """
    (s, d), t, u, tiny = q.shape, len(k), real.unit, real.tiny
    if not s or not t:
        return np.zeros((s, v.shape[1])), np.zeros((s, v.shape[1])), np.full(s, -np.inf), np.zeros(s)
    scores = np.where(seen, scale * (q @ k.T), -np.inf)
    most = scores.max(axis=1)
    none = most == -np.inf
    most[none] = 0
    away = scores - most[:, None]
    p = np.exp(away)
    total = p.sum(axis=1)
    total[none] = 1
    w = p / total[:, None]
    o = np.where(seen[:, :, None].any(axis=1), w @ v, 0.0)
    blocks = -(-t // LEAST_BLOCK) + 1
    error = _gamma(d + 3, u) * abs(scale) * (np.abs(q) @ np.abs(k).T) + np.where(seen, u * np.abs(away), 0)
    error = np.expm1(error + blocks * (EXP + 3) * u) + _gamma(t + 2, u)
    error = np.where(w == 0, 0, error)  # weights below the smallest number, of hidden keys and of -inf
    bound = MARGIN * ((w * error) @ np.abs(v) + np.abs(o) * (w * error).sum(axis=1)[:, None])
    bound += t * tiny * (1 + np.abs(v).max(axis=0)) + 2 * u * np.abs(o)
    if weights is not None:
        bound += MARGIN * (weights.unit * (w @ np.abs(v)) + weights.tiny * np.abs(v).sum(axis=0))
    lse = np.where(none, -np.inf, most + np.log(total))
    of_lse = MARGIN * ((w * error).sum(axis=1) + u * (np.abs(most) + np.abs(lse) + 8))
    return o, np.where(none[:, None], 0, bound), lse, np.where(none, 0, of_lse)


def _gamma(n: int, u: float) -> float:
    return n * u / (1 - n * u)
