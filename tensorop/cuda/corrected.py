"""What a device's clock says against the model: factors on predicted cycles, by measured problems around a call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tensorop.cuda.choose import COPY_CYCLES
from tensorop.cuda.library import LibraryVariant

# Fitted on rows that are left out, of two products. Distances are squares of doublings.
PRIOR = 0.02  # weight of the model as it is; a problem two doublings away has 0.03
NEAR = 0.0001  # what keeps a problem's weight on itself finite: a measured one goes by its own figures
REACH = 4  # weights fall with the distance up to here, with its square beyond
UNALIGNED = 4 << 16  # how far rows off 16 bytes are from aligned ones
PARTS = (1, 1, 4, 1)  # of m, n, k, batch: by what a square is divided; K says least of which kernel is best


@dataclass(frozen=True)
class MeasuredProblem:
    """A measured problem, row-major, rows one after the other."""

    a_along_m: int
    b_along_k: int
    m: int
    n: int
    k: int
    batch: int
    us: Mapping[int, float]  # medians by number of variant

    @property
    def layout(self) -> tuple[int, int]:
        return self.a_along_m, self.b_along_k

    @property
    def operands(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of A, B and C as they are stored."""
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
    """As the library has it: parts of 256, straight between powers of two."""
    whole = max(x, 1).bit_length() - 1
    return whole * 256 + ((max(x, 1) << 8 >> whole) & 255)


@dataclass(frozen=True)
class Corrections:
    """Measured problems, by which predictions of others are corrected."""

    variants: Sequence[LibraryVariant]  # of the library, in order
    rows: Sequence[MeasuredProblem]  # each problem once
    where: str  # on what they were measured, and when

    @cached_property
    def cycles(self) -> list[dict[int, int]]:
        """Of each row by variant: predicted by the model, with those of copies to aligned rows."""
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
        """Of each row by variant: measured over predicted, in units of the mean over the variants."""
        found = []
        for row, cycles in zip(self.rows, self.cycles, strict=True):
            own = {number: us / cycles[number] for number, us in row.us.items()}
            mean = math.exp(_mean([math.log(factor) for factor in own.values()]))
            found.append({number: float(f"{factor / mean:.6g}") for number, factor in own.items()})
        return found

    def factor(self, variant: int, row: MeasuredProblem, without: int = -1) -> float:
        """What predicted cycles are multiplied by, as the library counts it. without: a row that is not known."""
        sum_ = all_ = PRIOR
        for at, (of, factors) in enumerate(zip(self.rows, self.factors, strict=True)):
            if of.layout == row.layout and at != without and variant in factors:
                weight = _weight(of, row)
                sum_ += weight * factors[variant]
                all_ += weight
        return sum_ / all_

    def context(self) -> dict[str, Any]:
        """For the library's templates."""
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
        """What the choice costs on rows that are left out of the correction, and how far predictions are off, by the
        model alone (before) and corrected (after)."""
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
