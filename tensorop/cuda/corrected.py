"""Corrects a model by measured problems: factors on the predicted cycles of a call, from the problems around it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.cuda.choose import COPY_CYCLES, Candidate
from tensorop.cuda.library import LibraryVariant
from tensorop.device_target import TimedProblem
from tensorop.model.device import DeviceInterface, DeviceOperand, Key
from tensorop.model.problem import Problem

# Fitted by cross-validation on twelve libraries of one H200. A distance is a sum of squares, in doublings of a size.
REACH = 8  # the distance at which a measured problem counts half
DOUBT = 0.1  # the variance of what one problem says about a near one, relative to the variance of corrections
CLOSE = 3  # a variant's row counts by (the fastest's time / its time) to this power, and by cycles likewise
SQUARINGS = 10  # of the exponential function, so that library and Python agree in every bit
UNALIGNED = 4 << 16  # distance between an operand with and without 16-byte alignment, in units of 2 ** -16


def _aligned(rows: int, cols: int, repeats: int, to: int) -> bool:
    """to: elements"""
    return cols % to == 0 and (repeats == 1 or rows * cols % to == 0)


def _log(x: int) -> int:
    """256 * log2(x) as the library computes it, linear between powers of two."""
    whole = max(x, 1).bit_length() - 1
    return whole * 256 + ((max(x, 1) << 8 >> whole) & 255)


@dataclass(frozen=True)
class ProblemPlace:
    """What the distance between problems is made of."""

    key: Key
    unaligned: int
    logs: tuple[int, ...]


@dataclass(frozen=True)
class VariantFigure:
    """What a row says about a variant."""

    share: float  # its part of the logarithm of a correction, before the weight by distance
    factor: float  # measured over predicted, relative to the mean of the row's variants
    without: float  # the correction by all other rows


@dataclass(frozen=True)
class Corrections:
    """Measured problems that correct the predictions for others."""

    call: DeviceInterface
    variants: Sequence[LibraryVariant]  # of the library, in order
    rows: Sequence[TimedProblem]  # each problem once
    where: str  # the machine and date of the measurement

    @property
    def element(self) -> int:
        """The bytes of an element of the inputs; a result's words have as many elements."""
        return self.variants[0].candidate.family.given["in_size"] if self.variants else 2

    def _elements(self, one: Candidate, operand: DeviceOperand) -> int:
        """How many elements a row of an operand must be a multiple of."""
        return max(1, int(one.numbers[operand.align]) // self.element)

    def sides(self, of: Problem) -> list[tuple[DeviceOperand, int, int]]:
        """Operands of a problem with their rows and columns in memory."""
        numbers = {**of.sizes, **{name: int(value) for name, value in of.options.items()}}
        return [(one, *self.call.sides(one, numbers)) for one in self.call.operands.values()]

    def unaligned(self, of: Problem) -> int:
        """A bit for each operand whose rows do not begin at multiples of 16 bytes, the first operand's lowest."""
        repeats = self.call.repeats(of.sizes)
        word = 16 // self.element
        return sum((not _aligned(rows, cols, repeats, word)) << at for at, (_, rows, cols) in enumerate(self.sides(of)))

    @cached_property
    def _places(self) -> list[ProblemPlace]:
        return [self.place(row.problem) for row in self.rows]

    def place(self, of: Problem) -> ProblemPlace:
        return ProblemPlace(self.call.key(of.options), self.unaligned(of), tuple(map(_log, of.sizes.values())))

    @property
    def parts(self) -> tuple[int, ...]:
        """Divisors of the squares of a distance, by number of a call."""
        return tuple(self.call.distance.get(name, 1) for name in self.call.call)

    @cached_property
    def cycles(self) -> list[dict[int, int]]:
        """The model's cycles, copies to aligned rows included: for each row, by variant."""
        return [self._cycles(row) for row in self.rows]

    def _cycles(self, row: TimedProblem) -> dict[int, int]:
        call = row.problem.sizes
        repeats = self.call.repeats(call)
        known: dict[int, Any] = {}
        found = {}
        for number in row.us:
            one, extra = self.variants[number].candidate, 0
            if id(one.family) not in known:
                known[id(one.family)] = one.family.predicted(call)
            for operand, rows, cols in self.sides(row.problem):
                if operand.copied and not _aligned(rows, cols, repeats, self._elements(one, operand)):
                    extra += -(-rows * repeats * (-(-cols // 64) * 64) * self.element // 256) * 256
            copying = extra * 2 // one.family.given["memory_a_cycle"] + COPY_CYCLES if extra else 0
            found[number] = int(known[id(one.family)][one.number]) + copying
        return found

    def serves(self, variant: LibraryVariant, of: Problem) -> bool:
        """Whether a variant can compute a problem, as the library decides with enough workspace."""
        one, key, repeats = variant.candidate, self.call.key(of.options), self.call.repeats(of.sizes)
        if variant.dtype != of.dtype or one.key != (self.call.across(key) if one.numbers.get("swap") else key):
            return False
        if not one.family.served(of.sizes)[one.number]:
            return False
        copies = one.template.reads["operands"] == "maps"
        return all(
            (operand.copied and copies) or _aligned(rows, cols, repeats, self._elements(one, operand))
            for operand, rows, cols in self.sides(of)
            if operand.align
        )

    def costs(self, of: Problem) -> dict[int, float]:
        """Predicted and corrected cycles of a problem, by number of the variants that serve it."""
        serving = [number for number, one in enumerate(self.variants) if self.serves(one, of)]
        cycles = self._cycles(TimedProblem(of, dict.fromkeys(serving, 1.0)))
        here = self.place(of)
        weights = self.weights(here)
        same = next((at for at, place in enumerate(self._places) if place == here), -1)
        return {number: count * self._factor(self.figures[number], weights, same) for number, count in cycles.items()}

    @cached_property
    def figures(self) -> list[dict[int, VariantFigure]]:
        """What the rows say, by variant and row.

        It is a kernel ridge regression of the logarithms of factors; `weights` is its kernel.
        """
        near = np.array([self.weights(place) for place in self._places]).reshape(len(self.rows), len(self.rows))
        known = [self._relative(row, cycles) for row, cycles in zip(self.rows, self.cycles, strict=True)]
        found = []
        for number in range(len(self.variants)):
            rows = [at for at, of in enumerate(known) if number in of]
            logs = np.array([known[at][number][0] for at in rows])
            doubts = np.array([DOUBT / known[at][number][1] for at in rows])
            inverse = np.linalg.inv(near[np.ix_(rows, rows)] + np.diag(doubts))
            shares = inverse @ logs
            without = logs - shares / np.diag(inverse)
            each = zip(rows, shares, logs, without, strict=True)
            found.append({at: VariantFigure(_short(y), _short(math.exp(x)), _exp(float(z))) for at, y, x, z in each})
        return found

    def _relative(self, row: TimedProblem, cycles: dict[int, int]) -> dict[int, tuple[float, float]]:
        """By variant: the logarithm of measured over predicted, relative to the mean; how much the row counts."""
        found: dict[int, tuple[float, float]] = {}
        for dtype in dict.fromkeys(self.variants[number].dtype for number in row.us):
            of = [number for number in row.us if self.variants[number].dtype == dtype]
            least = min(row.us[number] for number in of) * min(cycles[number] for number in of)
            counts = {number: (least / (row.us[number] * cycles[number])) ** CLOSE for number in of}
            logs = {number: math.log(row.us[number] / cycles[number]) for number in of}
            mean = sum(counts[number] * logs[number] for number in of) / sum(counts.values())
            found |= {number: (logs[number] - mean, counts[number]) for number in of}
        return found

    @staticmethod
    def _factor(of: Mapping[int, VariantFigure], weights: NDArray[np.float64], same: int) -> float:
        """The factor on predicted cycles, as the library computes it. same: the row of an equal problem, or -1"""
        if same in of:
            return of[same].factor
        sum_ = 0.0
        for row, one in of.items():
            sum_ += float(weights[row]) * one.share
        return _exp(sum_)

    def weights(self, other: ProblemPlace) -> NDArray[np.float64]:
        """How much each row counts for a problem, from 0 to 1."""
        return np.array([self.weight(row, other) if row.key == other.key else 0.0 for row in self._places])

    def weight(self, known: ProblemPlace, other: ProblemPlace) -> float:
        apart = (known.unaligned ^ other.unaligned).bit_count() * UNALIGNED
        apart += sum((a - b) ** 2 // part for a, b, part in zip(known.logs, other.logs, self.parts, strict=True))
        return REACH / (apart / 65536 + REACH)

    def context(self) -> dict[str, Any]:
        """The context of the library's templates."""
        figures: list[tuple[int, float, float]] = []
        variants = []
        for of in self.figures:
            variants.append((len(figures), len(of)))
            figures += [(row, one.share, one.factor) for row, one in of.items()]
        rows = [{"key": one.key, "logs": one.logs, "odd": one.unaligned} for one in self._places]
        fixed = {"reach": REACH, "squarings": SQUARINGS, "odd": UNALIGNED, "parts": self.parts, "where": self.where}
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
            after = {number: alone[number] * self.figures[number][at].without for number in us}
            costs = {"before": alone, "after": after}
            one: dict[str, Any] = {**row.problem.sizes, "best_us": min(us.values()), **row.problem.options}
            for name, cost in costs.items():
                chosen = min(cost, key=cost.__getitem__)
                lost[name].append(math.log(us[chosen] / min(us.values())))
                ratios = [math.log(us[number] / cost[number]) for number in us]
                off[name] += [abs(ratio - sum(ratios) / len(ratios)) for ratio in ratios]
                one[f"{name}_us"] = us[chosen]
            rows.append(one)
        regret = {name: round(math.exp(_mean(of)) - 1, 4) for name, of in lost.items()}
        return {"regret": regret, "off": {name: round(_mean(of), 4) for name, of in off.items()}, "rows": rows}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(len(values), 1)


def _short(value: float) -> float:
    """As the library's source has it."""
    return float(f"{value:.6g}")


def _exp(x: float) -> float:
    """The exponential function as the library computes it."""
    found = 1 + x / (1 << SQUARINGS)
    for _ in range(SQUARINGS):
        found *= found
    return found
