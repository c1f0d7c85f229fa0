"""gemm with an epilogue: its contract, for the verification of libraries. Problems and products are gemm's."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tensorop.model.call import Call
from tensorop.model.case import Case
from tensorop.model.contract import Contract
from tensorop.model.matrix import Array
from tensorop.model.point import Value
from tensorop.model.problem import Problem

VECTORS = {"scale_rows": "by_rows", "scale_columns": "by_columns", "bias": "biased", "residual": "added"}  # their flags
_MATRICES = ("A", "B", "C")
_LARGE, _EACH = 1 << 14, 8  # elements of C; of cases of gemm's full grid


class WithEpilogue(Contract):
    CONTROL_TILE: ClassVar[Mapping[str, int]] = {"mr": 8, "nr": 4, "ku": 4}
    CONTROL_SHAPE = (12, 10, 24)
    DISTRIBUTIONS = ("integer", "exact", "normal", "wide", "special")  # gemm's

    @property
    def gemm(self) -> Any:
        return self.used

    def work(self, problem: Problem) -> float:
        return float(self.gemm.work(problem))

    def features(self, problem: Problem) -> dict[str, int]:
        return dict(self.gemm.features(problem))

    def tile(self, point: Mapping[str, Value], lanes: int, reads: Mapping[str, str]) -> dict[str, int]:
        return dict(self.gemm.tile(point, lanes, reads))

    def inputs(self, problem: Problem, rng: np.random.Generator, distribution: str) -> dict[str, Array]:
        """gemm's A, B and C; scales in (-1, 1), by which nothing overflows, and N(0, 1) for bias and residual."""
        found = dict(self.gemm.inputs(problem, rng, distribution))
        known = self.known(problem)
        for name in VECTORS:
            sides = self.operands[name].sides(known)
            drawn = rng.uniform(-1, 1, sides) if name.startswith("scale") else rng.standard_normal(sides)
            found[name] = self.operands[name].number(problem.dtype).encoded(drawn)
        return found

    def expected(self, problem: Problem, given: Call) -> Mapping[str, tuple[Array, Array]]:
        """Of sums that are not finite, the result is known without an error."""
        epilogue = importlib.import_module(f"{type(self.gemm).__module__.rpartition('.')[0]}.epilogue")
        buffers = tuple(one for one in given.buffers if one.name in _MATRICES)
        sums, far = self.gemm.expected(problem, replace(given, buffers=buffers))["C"]
        values, known = self.values(problem, given), self.known(problem)
        vectors = {name: values[name] if known[flag] else None for name, flag in VECTORS.items()}
        activation = next(word for word, of in self.flags["activation"].items() if of == known["activation"])
        number = self.operands["C"].number(problem.dtype)
        least = 4 * float(np.finfo(number.storage).tiny)  # type: ignore[type-var]
        of = epilogue.Epilogue(**vectors, activation=activation)
        want, bound = epilogue.finished(sums, far, of, number.unit, number.tiny, least)
        return {"C": (want, np.where(np.isfinite(sums), bound, 0))}

    def quick_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> Sequence[Case]:
        """gemm's, then products whose C is too large for one cache, of several blocks of k."""
        large = [(40 * tile["mr"] + 3, 17000 // (40 * tile["mr"]) + 5 * tile["nr"] + 1, k) for k in (7, 700)]
        cases = [*self.gemm.quick_grid(dtype, tile, rng)]
        for number, (m, n, k) in enumerate((*large, *((n, m, k) for m, n, k in large))):
            options = {"layout": ("row", "col")[number % 2], "beta": number % 2, "tb": number % 2, "ldc_pad": number}
            cases.append(Case(self.problem(dtype, {"m": m, "n": n, "k": k}, options)))
        return self._with(cases, rng)

    def full_grid(
        self, dtype: str, tile: Mapping[str, int], blocking: Mapping[str, int], rng: np.random.Generator
    ) -> Sequence[Case]:
        """Of gemm's some, and all whose C is too large for one cache."""
        cases = list(self.gemm.full_grid(dtype, tile, blocking, rng))
        large = [case for case in cases if case.problem.sizes["m"] * case.problem.sizes["n"] >= _LARGE]
        return [*self._with([*large, *cases[::_EACH]], rng), *self.quick_grid(dtype, tile, rng)]

    def thread_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> Sequence[Case]:
        return self._with(self.gemm.thread_grid(dtype, tile, rng), rng)

    def _with(self, cases: Iterable[Case], rng: np.random.Generator) -> list[Case]:
        """The cases with drawn epilogues: each activation and each step in half of any eight that follow each other."""
        found = []
        for number, case in enumerate(cases):
            activation = ("none", "relu", "gelu", "silu")[number % 4]
            flags = {flag: int(rng.integers(2)) for flag in VECTORS.values()}
            options = {**case.problem.options, "activation": activation, **flags}
            options["ldresidual_pad"] = int(rng.integers(2)) * 3 * flags["added"]
            problem = self.problem(case.problem.dtype, case.problem.sizes, options)
            found.append(replace(case, problem=problem))
        return found
