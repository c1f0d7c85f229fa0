"""A BLAS routine as an operator, for comparisons: its calls, oracle and adapter are made from the table of routines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensorop.blas import oracle
from tensorop.blas.routines import BlasInterface, BlasOperand, BlasRoutine, Role, Structure, cblas_flag, real
from tensorop.errors import SpecError
from tensorop.model.call import Access, Call
from tensorop.model.case import Case
from tensorop.model.contract import Contract
from tensorop.model.number import NUMBERS
from tensorop.model.point import Value
from tensorop.model.problem import Problem
from tensorop.model.second import followed
from tensorop.model.shape import Shapes
from tensorop.model.signature import Array, Operand

DTYPES = {"f32": "s", "f64": "d"}  # their letters in BLAS
_LAYOUTS = {"col": 102, "row": 101}
_LETTERS = {"uplo": "LU", "diag": "NU", "side": "LR"}  # the usual one first; of others N and T
_SMALL = 2.0**-8  # elements beside the diagonal, times the order: many products in place neither grow nor vanish
_CBLAS = BlasInterface(cblas=True, suffix="")


@dataclass(frozen=True)
class RoutineContract(Contract):
    """The calls of one routine for f32 and f64, with increments of 1. In-place operands are restored before batches."""

    routine: BlasRoutine = None  # type: ignore[assignment]  # has a default since those of Contract have

    @staticmethod
    def of(routine: BlasRoutine) -> RoutineContract:
        flags: dict[str, Mapping[str, int]] = {"layout": _LAYOUTS} if routine.level > 1 else {}
        for one in routine.of_role(Role.FLAG):
            flags[one.name] = {x: cblas_flag(one.name, x) for x in _LETTERS.get(one.name, "NT")}
        sizes = Shapes(tuple(one.name for one in routine.of_role(Role.SIZE)))
        scalars = {one.name for one in routine.of_role(Role.SCALAR)}
        operands = {name: _operand(one, flags, "beta" in scalars) for name, one in routine.operands.items()}
        parameters = {one.name: float(one.name == "alpha") for one in routine.of_role(Role.SCALAR)}
        return RoutineContract(routine.name, sizes, operands, parameters, flags, routine=routine)

    @property
    def in_place(self) -> bool:
        """Whether an operand is both read and written."""
        return any(one.access is Access.INOUT and not one.factor for one in self.operands.values())

    def letters(self, problem: Problem) -> dict[str, str]:
        """The letter of each flag."""
        names = [name for name in self.flags if name != "layout"]
        return {name: str(problem.options.get(name, next(iter(self.flags[name])))) for name in names}

    def _of_output(self) -> tuple[str, BlasOperand]:
        return next((name, one) for name, one in self.routine.operands.items() if one.written)

    def work(self, problem: Problem) -> float:
        name, one = self._of_output()
        elements = float(math.prod(self.operands[name].sides(self.known(problem))))
        if one.structure is not Structure.GENERAL:
            elements = (elements + math.sqrt(elements)) / 2
        triangular = any(of.structure is Structure.TRIANGULAR for of in self.routine.operands.values())
        terms = 1 if self.routine.terms.isdigit() else eval(self.routine.terms, {}, self._plain(problem))
        return 2 * elements * terms / (2 if triangular else 1)

    def traffic(self, problem: Problem) -> float:
        found = 0.0
        for name, one in self.operands.items():
            whole = self.routine.operands[name].structure is Structure.GENERAL
            size = math.prod(one.sides(self.known(problem))) * one.number(problem.dtype).size
            twice = one.access is Access.INOUT and self.reads(problem, name)
            found += size * (1 if whole else 0.5) * (2 if twice else 1)
        return found

    def _plain(self, problem: Problem) -> dict[str, Any]:
        return {**problem.sizes, **self.letters(problem)}

    def inputs(self, problem: Problem, rng: np.random.Generator, distribution: str) -> dict[str, Array]:
        found = super().inputs(problem, rng, distribution)
        for name, one in self.routine.operands.items():
            if one.structure is Structure.TRIANGULAR and name in found:
                number = self.operands[name].number(problem.dtype)
                sides = self.operands[name].sides(self.known(problem))
                values = number.decoded(found[name]).reshape(sides) * (_SMALL / max(1, *sides))
                np.fill_diagonal(values, np.sign(np.diagonal(values)))
                found[name] = number.encoded(values.reshape(-1))
        return found

    def alternated(self, problem: Problem, given: Call, rng: np.random.Generator) -> Call:
        """Every other call has another operand, the one in place or the last that is read, so caches hold the rest."""
        read = [name for name in self.operands if self.reads(problem, name)]
        name = self._of_output()[0] if self.in_place else read[-1]
        other = self.call(problem, rng, placement=given.placement).buffers
        second = {buffer.name: buffer.data for buffer in other}
        buffers = (followed(one, second[name]) if one.name == name else one for one in given.buffers)
        return replace(given, buffers=tuple(buffers))

    def expected(self, problem: Problem, given: Call) -> Mapping[str, tuple[Array, Array]]:
        values, plain = self.values(problem, given), self._plain(problem)
        whole = {name: self._whole(name, values[name].astype(np.float64), plain) for name in self.operands}
        whole |= {n: np.zeros_like(a) for n, a in whole.items() if not self.reads(problem, n)}
        scalars = {name: self.scalar(problem, name) for name in self.parameters}
        small, eps = {name: np.abs(a) for name, a in whole.items()}, 2 * NUMBERS[problem.dtype].unit
        factor = 2 * (eval(self.routine.terms, {}, plain) + oracle.SLACK) * eps  # the oracle has errors of f64 too
        found = {}
        for name, text in self.routine.meaning.items():
            value = eval(text, {**oracle.VALUES}, {**plain, **scalars, **whole})
            size = eval(text, {**oracle.MAGNITUDES}, {**plain, **{n: abs(s) for n, s in scalars.items()}, **small})
            own = self._own(name, value.shape, plain)
            found[name] = np.where(own, value, values[name]), np.where(own, factor * size, 0.0)
        return found

    def _own(self, name: str, shape: tuple[int, ...], plain: Mapping[str, Any]) -> Array:
        """Whether each element of an operand is read and written."""
        whole = np.ones(shape, bool)
        if self.routine.operands[name].structure is Structure.GENERAL:
            return whole
        return np.tril(whole) if plain["uplo"] == "L" else np.triu(whole)

    def _whole(self, name: str, values: Array, plain: Mapping[str, Any]) -> Array:
        structure = self.routine.operands[name].structure
        if structure is Structure.GENERAL:
            return values
        half: Array = np.where(self._own(name, values.shape, plain), values, 0.0)
        if structure is Structure.TRIANGULAR:
            if plain["diag"] == "U":
                np.fill_diagonal(half, 1)
            return half
        mirrored: Array = half + half.T - np.diag(np.diagonal(half))
        return mirrored

    def recorded(self, routine: str, fields: Mapping[str, str]) -> Problem | None:
        types = {letter + self.routine.name: dtype for dtype, letter in DTYPES.items()}
        if routine not in types:
            return None
        options: dict[str, Value] = {
            name: fields[name].replace("C", "T") if name.startswith("trans") else fields[name] for name in self.flags
        }
        return self.problem(types[routine], {name: int(fields[name]) for name in self.shapes.dims}, options)

    def tile(self, point: Mapping[str, Value], lanes: int, reads: Mapping[str, str]) -> dict[str, int]:
        raise SpecError(f"{self.name} has no micro-kernels of its own")

    def quick_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> Sequence[Case]:
        return ()

    def adapter(self) -> str:
        """Binds the routine by the names of CBLAS with 32-bit integers."""
        slots = {Role.FLAG: "flag[FLAG_", Role.SIZE: "dim[DIM_", Role.SCALAR: "scalar[SCALAR_", Role.LEADING: "ld[LD_"}
        text, rows = '#include "bind.h"\n#include "slots.h"\n', ""
        for dtype, letter in DTYPES.items():
            types, words = (["int"], ["(int)c->flag[FLAG_layout]"]) if self.routine.level > 1 else ([], [])
            for one in self.routine.arguments:
                kind = real(letter) if one.role is Role.SCALAR else "int"
                types.append("void *" if one.role is Role.OPERAND else kind)
                if one.role is Role.OPERAND:
                    words.append(f"c->buffer[BUFFER_{one.name}]")
                elif one.role is Role.INCREMENT:
                    words.append("1")
                else:
                    words.append(f"({kind})c->{slots[one.role]}{one.of or one.name}]")
            text += (
                f"\nstatic void call_{dtype}(const struct tensorop_bound *self, const struct tensorop_call *c) {{\n"
                f"    ((void (*)({', '.join(types)}))self->function)({', '.join(words)});\n}}\n"
            )
            rows += f'    {{"cblas", "{dtype}", "{_CBLAS.symbol(self.routine, letter)}", call_{dtype}}},\n'
        return text + (
            f"\nstatic const struct tensorop_interface known[] = {{\n{rows}}};\n\n"
            "int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype,\n"
            "                  const char *prefix, const char *suffix,\n"
            "                  void *(*lookup)(void *handle, const char *symbol), void *handle) {\n"
            "    return tensorop_bind_among(known, sizeof known / sizeof *known, out, api, dtype, prefix,\n"
            "                               suffix, lookup, handle);\n}\n"
        )


def _operand(one: BlasOperand, flags: Mapping[str, Mapping[str, int]], scaled: bool) -> Operand:
    """scaled: what is written has a factor beta"""
    first, _, other = one.sizes.partition("|")
    sides = first.split()
    if other:
        usual = next(iter(flags[one.by].values()))
        chosen = f"({one.by} == {usual})"
        sides = [f"{chosen} * {x} + (1 - {chosen}) * {y}" for x, y in zip(sides, other.split(), strict=True)]
    access = Access.INOUT if one.written else Access.IN
    leading = "layout == 102" if one.kind == "matrix" else ""
    return Operand(access, tuple(sides), leading=leading, factor="beta" if one.written and scaled else "")
