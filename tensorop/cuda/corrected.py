"""Corrects a model by measured problems: factors on the predicted cycles of a call, from the problems around it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tensorop.cuda.choose import COPY_CYCLES
from tensorop.cuda.library import LibraryVariant

# Fitted by cross-validation on two products. A distance is a sum of squares, in doublings of a size.
PRIOR = 0.02  # weight of the uncorrected model; a problem at a distance of two doublings has 0.03
NEAR = 0.0001  # keeps the weight at distance 0 finite; a measured problem uses its own times
REACH = 4  # weights fall with the distance up to here, and with its square beyond
UNALIGNED = 4 << 16  # distance between an operand with and without 16-byte alignment, in units of 2 ** -16
PARTS = (1, 1, 4, 1)  # divisors of the squares of m, n, k, batch; the best kernel depends least on k


@dataclass(frozen=True)
class MeasuredProblem:
    """A measured problem, row-major with contiguous rows."""

    a_along_m: int
    b_along_k: int
    m: int
    n: int
    k: int
    batch: int
    us: Mapping[int, float]  # median by number of variant

    @property
    def layout(self) -> tuple[int, int]:
        return self.a_along_m, self.b_along_k

    @property
    def operands(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of A, B and C in memory."""
        a = (self.k, self.m) if self.a_along_m else (self.m, self.k)
        b = (self.n, self.k) if self.b_along_k else (self.k, self.n)
        return a, b, (self.m, self.n)

    @cached_property
    def unaligned(self) -> int:
        off = (not _aligned(rows, cols, self.batch, 16) for rows, cols in self.operands)
        return sum(one << at for at, one in enumerate(off))

    @cached_property
    def logs(self) -> tuple[int, ...]:
        return tuple(_log(x) for x in (self.m, self.n, self.k, self.batch))


def _aligned(rows: int, cols: int, batch: int, to: int) -> bool:
    return cols * 2 % to == 0 and (batch == 1 or rows * cols * 2 % to == 0)


def _log(x: int) -> int:
    """256 * log2(x) as the library computes it, linear between powers of two."""
    whole = max(x, 1).bit_length() - 1
    return whole * 256 + ((max(x, 1) << 8 >> whole) & 255)


@dataclass(frozen=True)
class Corrections:
    """Measured problems that correct the predictions for others."""

    variants: Sequence[LibraryVariant]  # of the library, in order
    rows: Sequence[MeasuredProblem]  # each problem once
    where: str  # the machine and date of the measurement

    @cached_property
    def cycles(self) -> list[dict[int, int]]:
        """The model's cycles, copies to aligned rows included: for each row, by variant."""
        return [self._cycles(row) for row in self.rows]

    def _cycles(self, row: MeasuredProblem) -> dict[int, int]:
        call = {"m": row.m, "n": row.n, "k": row.k, "batch": row.batch}
        known: dict[int, Any] = {}
        found = {}
        for number in row.us:
            one, extra = self.variants[number].candidate, 0
            if id(one.family) not in known:
                known[id(one.family)] = one.family.predicted(call)
            for rows, cols in row.operands[:2]:
                if not _aligned(rows, cols, row.batch, int(one.numbers["align_ab"])):
                    extra += -(-rows * row.batch * (-(-cols // 64) * 64) * 2 // 256) * 256
            copying = extra * 2 // one.family.given["memory_a_cycle"] + COPY_CYCLES if extra else 0
            found[number] = int(known[id(one.family)][one.number]) + copying
        return found

    @cached_property
    def factors(self) -> list[dict[int, float]]:
        """Measured over predicted, relative to the mean over the variants: for each row, by variant."""
        found = []
        for row, cycles in zip(self.rows, self.cycles, strict=True):
            own = {number: us / cycles[number] for number, us in row.us.items()}
            mean = math.exp(_mean([math.log(factor) for factor in own.values()]))
            found.append({number: float(f"{factor / mean:.6g}") for number, factor in own.items()})
        return found

    def factor(self, variant: int, row: MeasuredProblem, without: int = -1) -> float:
        """The factor on predicted cycles, as the library computes it. without: a row to leave out."""
        sum_ = all_ = PRIOR
        for at, (of, factors) in enumerate(zip(self.rows, self.factors, strict=True)):
            if of.layout == row.layout and at != without and variant in factors:
                weight = _weight(of, row)
                sum_ += weight * factors[variant]
                all_ += weight
        return sum_ / all_

    def context(self) -> dict[str, Any]:
        """The context of the library's templates."""
        figures: list[tuple[int, float]] = []
        variants = []
        for number in range(len(self.variants)):
            own = [(at, of[number]) for at, of in enumerate(self.factors) if number in of]
            variants.append((len(figures), len(own)))
            figures += own
        rows = [
            {"a_along_m": r.a_along_m, "b_along_k": r.b_along_k, "logs": r.logs, "odd": r.unaligned} for r in self.rows
        ]
        fixed = {"prior": PRIOR, "near": NEAR, "reach": REACH, "odd": UNALIGNED, "parts": PARTS, "where": self.where}
        return {**fixed, "rows": rows, "figures": figures, "variants": variants}

    def judged(self, dtype: str) -> dict[str, Any]:
        """The regret of the choice, and the error of predictions, on rows left out of the correction.

        before: by the model alone; after: corrected
        """
        lost: dict[str, list[float]] = {"before": [], "after": []}
        off: dict[str, list[float]] = {"before": [], "after": []}
        rows = []
        for at, (row, cycles) in enumerate(zip(self.rows, self.cycles, strict=True)):
            us = {number: time for number, time in row.us.items() if self.variants[number].dtype == dtype}
            if not us:
                continue
            alone = {number: float(cycles[number]) for number in us}
            costs = {"before": alone, "after": {number: alone[number] * self.factor(number, row, at) for number in us}}
            one: dict[str, Any] = {"m": row.m, "n": row.n, "k": row.k, "batch": row.batch, "best_us": min(us.values())}
            one |= {"a_along_m": row.a_along_m, "b_along_k": row.b_along_k}
            for name, cost in costs.items():
                chosen = min(cost, key=cost.__getitem__)
                lost[name].append(math.log(us[chosen] / min(us.values())))
                ratios = [math.log(us[number] / cost[number]) for number in us]
                off[name] += [abs(ratio - sum(ratios) / len(ratios)) for ratio in ratios]
                one[f"{name}_us"] = us[chosen]
            rows.append(one)
        regret = {name: round(math.exp(_mean(of)) - 1, 4) for name, of in lost.items()}
        return {"regret": regret, "off": {name: round(_mean(of), 4) for name, of in off.items()}, "rows": rows}


def _weight(known: MeasuredProblem, row: MeasuredProblem) -> float:
    apart = (known.unaligned ^ row.unaligned).bit_count() * UNALIGNED
    apart += sum((a - b) ** 2 // part for a, b, part in zip(known.logs, row.logs, PARTS, strict=True))
    far = apart / 65536 + NEAR
    return 1 / (far * (far + REACH))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(len(values), 1)
