"""The signature of an operator: what operator.yaml says of its calls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.model.call import Access, Buffer, Call, Outputs
from tensorop.model.expression import evaluate, real
from tensorop.model.matrix import Matrix
from tensorop.model.number import NUMBERS, Number
from tensorop.model.point import Value
from tensorop.model.problem import Problem
from tensorop.model.shape import Shapes
from tensorop.model.trial import Kind
from tensorop.model.verdict import Judgement

Array = NDArray[Any]
WRITTEN = (Access.OUT, Access.INOUT)


@dataclass(frozen=True)
class Operand:
    """A named operand."""

    access: Access
    shape: tuple[str, ...]  # its sides in elements: expressions over dimensions, attributes and flags
    # dtype of the operator -> number format of this operand, if different
    formats: Mapping[str, str] = field(default_factory=dict)
    # Of an operand of indices, such as the offsets of a ragged batch: an expression for the last of them. They ascend
    # from 0, in equal steps or not. Empty: the operand has numbers of any value.
    ascends_to: str = ""
    # Of an operand with a leading dimension: whether its lines are along the first side (columns), as an expression
    # over the names in `shape`; "0": along the last one. Empty: the operand is dense.
    leading: str = ""
    factor: str = ""  # a parameter that multiplies the operand: where it is 0, the operand is not read
    packed: str = ""  # the side that sums run over, of an operand that packing copies into panels

    def number(self, dtype: str) -> Number:
        return NUMBERS[self.formats.get(dtype, dtype)]

    def sides(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(evaluate(text, sizes) for text in self.shape)

    @property
    def lines(self) -> tuple[tuple[str, ...], str]:
        """Of an operand with a leading dimension: the factors of the number of lines, and the length of a line."""
        *others, last = self.shape
        if self.leading == "0":
            return tuple(others), last
        first, columns = others[0], f"(({self.leading}) != 0)"
        number, length = (f"{columns} * ({x}) + (1 - {columns}) * ({y})" for x, y in ((last, first), (first, last)))
        return (number,), length


@dataclass(frozen=True)
class Signature:
    """The names, operands and flags of an operator's calls, and where operands lie in memory."""

    name: str
    shapes: Shapes
    operands: Mapping[str, Operand]  # in the order of a call's buffers
    # run-time numbers with their defaults, in the order of a call's scalars; a text is an expression (expression.real)
    # over the names in operands' shapes
    parameters: Mapping[str, float | str]
    # Further parameters of a call: name -> value -> its number. The first value is the default. A problem's option of
    # the same name replaces it. The order is that of a call's flags; the last flag is the forced variant.
    flags: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @cached_property
    def leading(self) -> tuple[str, ...]:
        """Operands with a leading dimension, in the order of a call's `lds`."""
        return tuple(name for name, one in self.operands.items() if one.leading)

    @property
    def variant_flag(self) -> int:
        """Index of the call's flag that forces a variant of the library; its value -1 lets the library choose."""
        return len(self.flags)

    def flag_values(self, problem: Problem) -> tuple[int, ...]:
        """A call's flags."""
        own = (self.known(problem)[name] for name in self.flags)
        return (*own, int(problem.options.get("variant", -1)))

    def known(self, problem: Problem) -> dict[str, int]:
        """Values of all names in operands' shapes: dimensions, attributes and flags."""
        found = dict(problem.sizes)
        for name, values in self.flags.items():
            given = problem.options.get(name, next(iter(values)))
            try:
                found[name] = values[str(given)] if str(given) in values else int(given)
            except ValueError:
                known = ", ".join(values)
                raise ValueError(f"{self.name}: {name} is one of {known}, not '{given}'") from None
        return found

    def reads(self, problem: Problem, name: str) -> bool:
        """Whether a call reads an operand: its contents count, and its factor is not 0."""
        one = self.operands[name]
        read = one.access in (Access.IN, Access.INOUT)
        return read and not (one.factor and self.scalar(problem, one.factor) == 0)

    def slots(self, more: Sequence[str] = ()) -> str:
        """A C header for adapter.c, candidates and controls: names of a call's slots and of flags' values.

        more: further dims of a candidate's calls, after dimensions and attributes
        """
        kinds: dict[str, Sequence[str]] = {
            "DIM": (*self.shapes.names, *more),
            "LD": self.leading,
            "SCALAR": tuple(self.parameters),
            "FLAG": (*self.flags, "variant"),
            "BUFFER": (*self.operands, "workspace"),
        }
        enums = [[f"{kind}_{name}" for name in names] for kind, names in kinds.items()]
        for name, values in self.flags.items():
            enums.append([f"{name.upper()}_{word} = {of}" for word, of in values.items() if word.isidentifier()])
        lines = [f"enum {{ {', '.join(names)} }};\n" for names in enums if names]
        return f"/* The slots of a call, as operator.yaml has them. */\n{''.join(lines)}"

    def matrices(self, problem: Problem) -> Mapping[str, Matrix]:
        """How operands with a leading dimension lie in memory, in the order of `leading`.

        A problem's option `ldOPERAND_pad`, the name in lower case, is the number of elements between lines.
        """
        for before, result in self._last:  # a call and its verdict ask several times
            if before is problem:
                return result
        found, known = {}, self.known(problem)
        for name in self.leading:
            *lines, length = self.operands[name].sides(known)
            columns = self.operands[name].leading
            layout = "col" if columns != "0" and evaluate(columns, known) else "row"
            pad = int(problem.options.get(f"ld{name.lower()}_pad", 0))
            found[name] = Matrix.of(math.prod(lines), length, layout, pad=pad)
        self._last[:] = [(problem, found)]
        return found

    @cached_property
    def _last(self) -> list[tuple[Problem, Mapping[str, Matrix]]]:
        """The last result of `matrices`; empty before the first."""
        return []

    def views(self, problem: Problem, given: Call) -> dict[str, Array]:
        """Operand -> its stored elements in its shape, without the gaps between lines."""
        known, matrices = self.known(problem), self.matrices(problem)
        data = {buffer.name: buffer.data for buffer in given.buffers}
        return {
            name: matrices[name].view(data[name]) if name in matrices else data[name].reshape(one.sides(known))
            for name, one in self.operands.items()
        }

    def values(self, problem: Problem, given: Call) -> dict[str, Array]:
        """Operand -> its values in its shape, for `expected`."""
        found = self.views(problem, given)
        return {name: self.operands[name].number(problem.dtype).decoded(one) for name, one in found.items()}

    def made(self, problem: Problem, stored: Mapping[str, Array], matrices: Mapping[str, Matrix]) -> Call:
        """The call with these operands. matrices: as for the problem"""
        apart = {name: matrix.apart for name, matrix in matrices.items()}
        return Call(
            dims=tuple(problem.sizes.values()),
            lds=tuple(matrix.leading for matrix in matrices.values()),
            scalars=tuple(self.scalar(problem, name) for name in self.parameters),
            flags=self.flag_values(problem),
            buffers=tuple(
                Buffer(name, one.access, stored[name], apart=apart.get(name, (0, 0)))
                for name, one in self.operands.items()
            ),
        )

    def scalar(self, problem: Problem, name: str) -> float:
        """A run-time number of a call: the problem's option of this name, or its default.

        The factor of an operand has the number format of the operator's first output.
        """
        usual = self.parameters[name]
        if name not in problem.options and isinstance(usual, str):
            value = real(usual, self.known(problem))
        else:
            value = float(problem.options.get(name, usual))
        if all(one.factor != name for one in self.operands.values()):
            return value
        number = next(one for one in self.operands.values() if one.access in WRITTEN).number(problem.dtype)
        return float(number.decoded(number.encoded(np.array([value])))[0])

    def storage(self, name: str, dtype: str, elements: Array, matrix: Matrix | None, rng: np.random.Generator) -> Array:
        """An operand's elements as they lie in memory, with poison in the gaps."""
        if matrix is None:
            return elements.reshape(-1)
        return matrix.store(elements.reshape(matrix.shape), self.operands[name].number(dtype), rng)

    def stored(self, problem: Problem, name: str, values: Array, storage: Array) -> Array:
        """The storage of an output with `values` (in the order of `expected`) in it; gaps are as in `storage`."""
        if name not in self.leading:
            return values.reshape(-1)
        matrix, out = self.matrices(problem)[name], storage.astype(values.dtype)
        if matrix.size:
            matrix.view(out)[...] = values.reshape(matrix.shape)
        return out

    def returned(self, problem: Problem, given: Call, outputs: Outputs, name: str) -> Array | Judgement:
        """The elements of an output; or that it did not come back whole, or was written between its lines."""
        before = next(buffer.data for buffer in given.buffers if buffer.name == name)
        after = outputs.get(name)
        if after is None or after.size != before.size or after.dtype != before.dtype:
            return Judgement(Kind.WRONG, "verify", f"{problem.label}: {name} did not come back whole", worst=np.inf)
        if name not in self.leading:
            return after
        matrix = self.matrices(problem)[name]
        touched = matrix.touched(before, after) if matrix.ld != matrix.inner else np.zeros(0)
        if not touched.size:
            return matrix.view(after)
        line, column = divmod(int(touched[0]), matrix.ld)
        gap = f"the gap of {name}, whose leading dimension is {matrix.leading}, was written"
        where = f"{column - matrix.inner + 1} past the end of line {line} ({touched.size} gap elements in all)"
        return Judgement(Kind.WRONG, "verify", f"{problem.label}: {gap}, {where}", worst=np.inf)

    def problem(self, dtype: str, sizes: Mapping[str, Value], options: Mapping[str, Value] | None = None) -> Problem:
        """A problem of this operator. Attributes that are not given have their defaults; other names are options."""
        given = self.shapes.filled({name: int(sizes[name]) for name in self.shapes.names if name in sizes})
        more = {name: value for name, value in sizes.items() if name not in given}
        dims, attributes = ({n: given[n] for n in names} for names in (self.shapes.dims, self.shapes.attributes))
        written = self.shapes.text(tuple(given.values()))
        return Problem.of(self.name, dtype, dims, {**more, **(options or {})}, attributes, written)
