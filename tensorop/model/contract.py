"""The interface of an operator: the methods of the class in its folder's reference.py."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tensorop.model import drawing
from tensorop.model.call import Access, Buffer, Call, Outputs, Placement
from tensorop.model.case import Case
from tensorop.model.expression import evaluate, real
from tensorop.model.matrix import Matrix
from tensorop.model.number import NUMBERS, Number
from tensorop.model.point import Value
from tensorop.model.problem import Problem
from tensorop.model.shape import Shapes
from tensorop.model.trial import Kind
from tensorop.model.verdict import Judgement

Array = NDArray[Any]
OF_KERNEL = ("lanes", "mr_vectors", "nr")  # what a workspace's expression may name of a kernel
LINE = 64  # bytes of a cache line


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

    def number(self, dtype: str) -> Number:
        return NUMBERS[self.formats.get(dtype, dtype)]

    def sides(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(evaluate(text, sizes) for text in self.shape)


@dataclass(frozen=True)
class Contract(ABC):
    """An operator's code. A folder's reference.py derives one class from this; its fields come from operator.yaml.

    A `tile` maps names of the operator's choice to sizes in elements. Methods raise only for an invalid problem.
    """

    name: str
    shapes: Shapes
    operands: Mapping[str, Operand]  # in the order of a call's buffers
    # run-time numbers with their defaults, in the order of a call's scalars; a text is an expression (expression.real)
    # over the names in operands' shapes
    parameters: Mapping[str, float | str]
    # Further parameters of a call: name -> value -> its number. The first value is the default; a problem's option of
    # the same name sets another one. The order is that of a call's flags; the last flag is the forced variant.
    flags: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    leading: tuple[str, ...] = ()  # operands with a leading dimension, in the order of a call's `lds`
    used: Contract | None = None  # the contract of the operator in `uses`: its grids, workspace and problems
    # elements of workspace: an expression over the names in operands' shapes, blocking tunables and OF_KERNEL
    elements: str = ""

    CONTROL_TILE: ClassVar[Mapping[str, int]]  # tile for the grids of negative controls
    CONTROL_SHAPE: ClassVar[tuple[int, ...]]  # shape for their timing
    DISTRIBUTIONS: ClassVar[tuple[str, ...]] = ("integer", "normal")  # kinds of inputs that `call` makes

    @abstractmethod
    def work(self, problem: Problem) -> float:
        """Number of arithmetic operations; 0 for an empty problem."""

    @abstractmethod
    def expected(self, problem: Problem, given: Call) -> Mapping[str, tuple[Array, Array]]:
        """Output -> (correct values in a wider type, error bound of each element; 0: exact)."""

    @abstractmethod
    def tile(self, point: Mapping[str, Value], lanes: int, reads: Mapping[str, str]) -> dict[str, int]:
        """A kernel's tile.

        point: its tunables; lanes: elements of a vector; reads: how its template reads each operand
        """

    @abstractmethod
    def quick_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> Sequence[Case]:
        """About 50 small cases for each candidate, with sizes around its tile."""

    def kernel_grid(
        self,
        dtype: str,
        point: Mapping[str, Value],
        lanes: int,
        reads: Mapping[str, str],
        masked: bool,
        rng: np.random.Generator,
        full_tile: bool = False,
    ) -> Sequence[Case]:
        """Calls of the micro-kernel alone (entry 2 of candidate.c.j2), each with a single tile.

        Without any, the micro-kernel is verified within the operator, on the quick grid. With some, the operator has
        templates for programs of several kernels (alone_head.c.j2, alone.c.j2).

        point, lanes, reads: as for `tile`; point has the blocking's defaults too
        masked: whether parts of vectors can be loaded and stored
        full_tile: only the largest tile is compiled
        """
        return ()

    def full_grid(
        self, dtype: str, tile: Mapping[str, int], blocking: Mapping[str, int], rng: np.random.Generator
    ) -> Sequence[Case]:
        """All cases for a finished library.

        blocking: its largest blocks, and `variants`: the number of variants that a call can force
        """
        return self.quick_grid(dtype, tile, rng)

    def edge_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> Sequence[Case]:
        """Cases with partial tiles at the edges, for each variant of a library."""
        return ()

    def thread_grid(self, dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> Sequence[Case]:
        """Problems large enough for several threads."""
        return ()

    @property
    def variant_flag(self) -> int:
        """Index of the call's flag that forces a variant of the library; its value -1 lets the library choose."""
        return len(self.flags)

    def told(self, problem: Problem) -> tuple[int, ...]:
        """A call's flags. Operators' own code uses the name `told`; journals depend on the bytes of that code."""
        own = (self.known(problem)[name] for name in self.flags)
        return (*own, int(problem.options.get("variant", -1)))

    def known(self, problem: Problem) -> dict[str, int]:
        """Values of all names in operands' shapes: dimensions, attributes and flags."""
        found = dict(problem.sizes)
        for name, values in self.flags.items():
            given = problem.options.get(name, next(iter(values)))
            found[name] = values[str(given)] if str(given) in values else int(given)
        return found

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

    def traffic(self, problem: Problem) -> float:
        """Bytes that must move at least: each operand once, or twice if it is read and written."""
        known = self.known(problem)
        return float(
            sum(
                math.prod(o.sides(known)) * o.number(problem.dtype).size * (1 + (o.access is Access.INOUT))
                for o in self.operands.values()
                if o.access is not Access.SCRATCH
            )
        )

    def workspace(self, problem: Problem, point: Mapping[str, Value], lanes: int, group: int = 1) -> int:
        """Packed elements in a candidate's workspace, which is its last buffer.

        point: the tunables of kernel and blocking, and `reads_<operand>` for each operand in the template's `reads`
        group: steps of the inner dimension in a packed element
        """
        if not self.elements:
            return 0
        numbers = {name: value for name, value in point.items() if isinstance(value, int)}
        return evaluate(self.elements, {**numbers, **self.known(problem), "lanes": lanes})

    def features(self, problem: Problem) -> dict[str, int]:
        """Inputs of the library's dispatch, 0 or more; expressions under `features:` use these names."""
        return problem.sizes

    def same(self, tile: Mapping[str, int]) -> tuple[int, ...]:
        """A key of tiles: of a template's kernels with equal keys, the search's second stage takes the best one."""
        return tuple(tile.values())

    def proxy(self, sizes: Mapping[str, int]) -> Mapping[str, int] | None:
        """A somewhat smaller shape of the same form, for a search that cannot afford this one; None if there is none.

        The longest dimension is halved once, so that operands that exceed a cache are likely to exceed it still.
        """
        longest = max(self.shapes.dims, key=lambda name: sizes[name])
        return {**sizes, longest: sizes[longest] // 2} if sizes[longest] > 1 else None

    def matrices(self, problem: Problem) -> Mapping[str, Matrix]:
        """How operands with a leading dimension lie in memory, in the order of `leading`.

        By default lines are along the last side; an option `ld_OPERAND_pad` is the number of elements between them.
        """
        found, known = {}, self.known(problem)
        for name in self.leading:
            *lines, length = self.operands[name].sides(known)
            pad = int(problem.options.get(f"ld_{name}_pad", 0))
            found[name] = Matrix.of(math.prod(lines), length, "row", pad=pad)
        return found

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
        """A call with random inputs: dimensions and attributes, parameters, the forced variant, dense operands.

        `normal` inputs are N(0, 1); if the problem has an option `exp_<operand>` = e (see `magnitudes`), they have
        random signs and magnitudes in [1, 2) times 2^e.

        workspace: elements of number format `compute` (empty: the dtype)
        start: contents of an output that is not read
        """
        buffers, matrices = [], self.matrices(problem)
        for name, one in self.operands.items():
            values = self._values(one, problem, rng, distribution)
            if distribution == "normal" and f"exp_{name}" in problem.options:
                exponent = int(problem.options[f"exp_{name}"])
                values = one.number(problem.dtype).encoded(drawing.scaled(values.size, exponent, rng))
            apart = (0, 0)
            if name in matrices:
                matrix, number = matrices[name], one.number(problem.dtype)
                values = matrix.store(number.decoded(values).reshape(matrix.shape), number.name, rng)
                apart = matrix.apart
            buffers.append(Buffer(name, one.access, values, apart=apart))
        if workspace:
            scratch = NUMBERS[compute or problem.dtype].poison(workspace, rng)
            buffers.append(Buffer("workspace", Access.SCRATCH, scratch))
        return Call(
            dims=tuple(problem.sizes.values()),
            lds=tuple(matrix.leading for matrix in matrices.values()),
            scalars=tuple(self._scalar(problem, name) for name in self.parameters),
            flags=self.told(problem),
            buffers=tuple(buffers),
            placement=placement,
        )

    def _scalar(self, problem: Problem, name: str) -> float:
        """A run-time number of a call: the problem's option of this name, or its default."""
        if name in problem.options:
            return float(problem.options[name])
        usual = self.parameters[name]
        return real(usual, self.known(problem)) if isinstance(usual, str) else usual

    def _values(self, one: Operand, problem: Problem, rng: np.random.Generator, distribution: str) -> Array:
        if distribution not in self.DISTRIBUTIONS:
            raise ValueError(f"{self.name}: inputs are one of {', '.join(self.DISTRIBUTIONS)}, not '{distribution}'")
        size, number = math.prod(one.sides(self.known(problem))), one.number(problem.dtype)
        if one.access in (Access.OUT, Access.SCRATCH):
            return number.poison(size, rng)
        if one.ascends_to:
            last = evaluate(one.ascends_to, self.known(problem))
            inner = np.sort(rng.integers(0, last + 1, max(0, size - 2)))
            return number.encoded(np.concatenate([[0], inner, [last]])[:size])
        whole = number.whole or distribution == "integer"
        return number.encoded(rng.integers(-4, 5, size) if whole else rng.standard_normal(size))

    def magnitudes(
        self, dtype: str, factors: Sequence[str], output: str, added: str, part: float, rng: np.random.Generator
    ) -> dict[str, Value]:
        """Options that give operands random magnitudes for which products and sums stay within the output's format.

        factors: operands whose elements are multiplied with each other; the first is drawn at `part` ([0, 1)) of its
        range
        added: an operand that is added to the products, with about their magnitude; empty: none
        """
        number = self.operands[output].number(dtype)
        if number.whole:
            return {}
        most = drawing.spare(number)
        own = {name: min(most, drawing.normal(self.operands[name].number(dtype))) for name in factors}
        chosen = drawing.exponents(most, own, factors[0], part, rng)
        found: dict[str, Value] = {f"exp_{name}": exponent for name, exponent in chosen.items()}
        return {**found, f"exp_{added}": sum(chosen.values())} if added else found

    def alternated(self, problem: Problem, given: Call, rng: np.random.Generator) -> Call:
        """Adds second operands (`Buffer.shift`) for every other call of a batch, so that no earlier result is correct.

        Each operand that is read gets that of another random call of the problem.
        """
        second = {buffer.name: buffer.data for buffer in self.call(problem, rng, placement=given.placement).buffers}
        read = (Access.IN, Access.INOUT)
        buffers = (_followed(one, second[one.name]) if one.access in read else one for one in given.buffers)
        return replace(given, buffers=tuple(buffers))

    def counted(self, problem: Problem, given: Call, rng: np.random.Generator) -> Call:
        """The single call that a board model counts.

        An output starts with correct values in its first and last element and in about half of the others, so that a
        kernel which skips work because some elements look finished is wrong. If an output is also read, the call is
        returned unchanged.
        """
        if any(buffer.access is Access.INOUT for buffer in given.buffers):
            return given
        began = {name: _half_done(*known, rng) for name, known in self.expected(problem, given).items()}
        return replace(given, buffers=tuple(self._begun(problem, one, began) for one in given.buffers))

    def _begun(self, problem: Problem, buffer: Buffer, began: Mapping[str, Array]) -> Buffer:
        if buffer.name not in began or not buffer.data.size:
            return buffer
        start = self.operands[buffer.name].number(problem.dtype).encoded(began[buffer.name])
        return replace(buffer, data=self.stored(problem, buffer.name, start, buffer.data))

    def packed_operands(self, given: Call, compute: str, rng: np.random.Generator) -> Call:
        """The call with packed operands, for a micro-kernel alone. compute: their number format."""
        return given

    def panels(self, problem: Problem, given: Call, compute: str, group: int) -> Call:
        """A call of `kernel_grid` with its operands as packing leaves them, where that changes their format.

        compute: number format of packed elements; group: steps of the inner dimension in one of them
        """
        return given

    def stored(self, problem: Problem, name: str, values: Array, storage: Array) -> Array:
        """The storage of an output with `values` (in the order of `expected`) in it; gaps are as in `storage`."""
        if name not in self.leading:
            return values.reshape(-1)
        matrix, out = self.matrices(problem)[name], storage.astype(values.dtype)
        if matrix.size:
            matrix.view(out)[...] = values.reshape(matrix.shape)
        return out

    def limits(self, problem: Problem, given: Call) -> Any:
        """Data for `judge` (its `within`) with which it accepts correct outputs of one call fast; or None."""
        return None

    def judge(self, problem: Problem, given: Call, outputs: Outputs, *, within: Any = None) -> Judgement:
        """Compares every element of the outputs with `expected`."""
        worst = 0.0
        for name, (want, bound) in self.expected(problem, given).items():
            got = self.returned(problem, given, outputs, name)
            if isinstance(got, Judgement):
                return got
            values = self.operands[name].number(problem.dtype).decoded(got).reshape(want.shape)
            judged = compared(f"{problem.label}: {name}", values, want, bound)
            if not judged.ok:
                return judged
            worst = max(worst, judged.worst)
        return Judgement(Kind.OK, "verify", worst=worst)

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


def _followed(buffer: Buffer, second: Array) -> Buffer:
    """The operand with a second one behind it in its storage, aligned to a cache line relative to the first."""
    size = buffer.data.size
    if not size:
        return buffer
    line = max(1, LINE // buffer.data.itemsize)
    shift = -(-size // line) * line
    return replace(
        buffer,
        data=np.concatenate([buffer.data, np.zeros_like(second, shape=shift - size), second]),
        shift=shift,
    )


def _half_done(want: Array, bound: Array, rng: np.random.Generator) -> Array:
    """A result with about half of its elements wrong; the first and the last are correct from 3 elements on."""
    wrong = rng.random(want.shape) < 0.5
    if want.size > 2:
        wrong.flat[0] = wrong.flat[-1] = False
        wrong.flat[rng.integers(1, want.size - 1)] = True
    else:
        wrong[...] = True
    with np.errstate(all="ignore"):
        return np.where(wrong, want + 1 + np.abs(want) + 2 * bound, want)


def compared(what: str, got: Array, want: Array, bound: Array) -> Judgement:
    """Judges every element: NaN and infinities must match, the sign of a zero is ignored.

    what: name of the output, for the message; bound: largest absolute error of each element
    """
    if not want.size:
        return Judgement(Kind.OK, "verify")
    with np.errstate(all="ignore"):
        off = np.array(got, want.dtype, order="C")  # arrays are large: few passes, in memory order and in place
        off -= want
        error = np.abs(off, out=off).astype(np.float64, copy=False)
        ratio = np.divide(error, bound, out=np.zeros_like(error), where=error != 0)
        worst = float(ratio.max())
        if worst <= 1 and np.isfinite(want).all():
            return Judgement(Kind.OK, "verify", worst=worst)
        finite = np.isfinite(want)
        same = (np.isnan(want) & np.isnan(got)) | (want == got)
        ratio = np.where(finite, np.where(np.isnan(ratio), np.inf, ratio), np.where(same, 0.0, np.inf))
    worst = float(ratio.max())
    if worst <= 1:
        return Judgement(Kind.OK, "verify", worst=worst)
    wrong = np.argwhere(ratio > 1)
    at = tuple(int(x) for x in wrong[0])
    allowed = f"{bound[at]:.3g} allowed" if finite[at] and bound[at] else "must be exact"
    message = (
        f"{what}[{','.join(map(str, at))}] is {float(got[at])!r}, should be {float(want[at])!r} "
        f"(error {error[at]:.3g}, {allowed}; "
        f"{len(wrong)} of {want.size} elements wrong, {len(wrong) / want.size:.1%})"
    )
    return Judgement(Kind.WRONG, "verify", message, worst=worst)
