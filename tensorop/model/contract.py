"""The interface of an operator: the methods of the class in its folder's reference.py."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tensorop.model import drawing
from tensorop.model.call import Access, Buffer, Call, Outputs, Placement
from tensorop.model.case import Case
from tensorop.model.expression import evaluate
from tensorop.model.judging import admitted, compared, half_done, inside
from tensorop.model.kernel_alone import KernelAlone, TileCall
from tensorop.model.matrix import Matrix
from tensorop.model.number import NUMBERS
from tensorop.model.point import Value
from tensorop.model.problem import Problem
from tensorop.model.second import Factor, followed, longer, numbers, shifts
from tensorop.model.signature import WRITTEN, Array, Operand, Signature
from tensorop.model.trial import Kind
from tensorop.model.verdict import Judgement

Limits = Mapping[str, tuple[Array, Array]]
OF_KERNEL = ("lanes", "mr_vectors", "nr")  # what a workspace's expression may name of a kernel
STARTS = ("poison", "zeros", "numbers", "result")  # contents of an output that is not read


@dataclass(frozen=True)
class Contract(Signature, ABC):
    """An operator's code. A folder's reference.py derives one class from this.

    A `tile` maps names of the operator's choice to sizes in elements. Methods raise only for an invalid problem.
    """

    used: Contract | None = None  # the contract of the operator in `uses`: its grids, workspace and problems
    # elements of workspace: an expression over the names in operands' shapes, blocking tunables and OF_KERNEL
    elements: str = ""

    CONTROL_TILE: ClassVar[Mapping[str, int]]  # tile for the grids of negative controls
    CONTROL_SHAPE: ClassVar[tuple[int, ...]]  # shape for their timing
    DISTRIBUTIONS: ClassVar[tuple[str, ...]] = ("integer", "normal")  # kinds of inputs that `call` makes

    def of_device(self) -> Contract:
        """The contract for kernels of GPUs, whose errors may be larger."""
        return self

    def adapter(self) -> str:
        """The C of the adapter, for an operator that is made from a table; empty: a file, or a generated one."""
        return ""

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

    def path_case(self, kernel: KernelAlone, of: TileCall, rng: np.random.Generator) -> Case | None:
        """A call of a tile alone with some of its arguments, the others drawn; None if no call gives it these."""
        return None

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

    def traffic(self, problem: Problem) -> float:
        """Bytes that must move at least: each operand once, or twice if it is read and written."""
        known = self.known(problem)
        return float(
            sum(
                math.prod(o.sides(known)) * o.number(problem.dtype).size * (1 + (o.access is Access.INOUT and read))
                for o, read in ((o, self.reads(problem, name)) for name, o in self.operands.items())
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

    def recorded(self, routine: str, fields: Mapping[str, str]) -> Problem | None:
        """The problem of a call in a record (docs/reference/shapes-file.md); None for a routine of another operator.

        It raises KeyError or ValueError for a field that is absent or wrong.
        """
        return None

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
        """A call with random inputs: dimensions and attributes, parameters, the forced variant, operands.

        Poison is in what is not read: gaps between lines, operands whose factor is 0, outputs, the workspace.

        workspace: elements of number format `compute` (empty: the dtype)
        start: one of STARTS, the contents of outputs that are not read; `result`: the expected ones but for one element
        """
        for got, known, what in ((distribution, self.DISTRIBUTIONS, "inputs are"), (start, STARTS, "outputs begin as")):
            if got not in known:
                raise ValueError(f"{self.name}: {what} one of {', '.join(known)}, not '{got}'")
        elements = self.inputs(problem, rng, distribution)
        for name in self.operands:
            if not self.reads(problem, name):
                elements[name] = self._unread(problem, name, start, rng)
        matrices = self.matrices(problem)
        if start == "result":
            elements |= self._nearly_done(problem, elements, matrices, rng)
        stored = {}
        for name in self.operands:
            storage = self.storage(name, problem.dtype, elements[name], matrices.get(name), rng)
            stored[name] = self.behind(problem, name, storage, rng)
        made = self.made(problem, stored, matrices)
        scratch: tuple[Buffer, ...] = ()
        if workspace:
            poison = NUMBERS[compute or problem.dtype].poison(workspace, rng)
            scratch = (Buffer("workspace", Access.SCRATCH, poison),)
        return replace(made, buffers=(*made.buffers, *scratch), placement=placement)

    def inputs(self, problem: Problem, rng: np.random.Generator, distribution: str) -> dict[str, Array]:
        """Operand -> its elements in the order of its shape, for those that may be read.

        `normal` inputs are N(0, 1); if the problem has an option `exp_<operand>` = e (see `magnitudes`), they have
        random signs and magnitudes in [1, 2) times 2^e.
        """
        found = {}
        for name, one in self.operands.items():
            if one.access in (Access.OUT, Access.SCRATCH):
                continue
            found[name] = self._values(one, problem, rng, distribution)
            if distribution == "normal" and f"exp_{name}" in problem.options:
                exponent = int(problem.options[f"exp_{name}"])
                number = one.number(problem.dtype)
                found[name] = number.encoded(drawing.scaled(found[name].size, exponent, rng))
        return found

    def _values(self, one: Operand, problem: Problem, rng: np.random.Generator, distribution: str) -> Array:
        size, number = math.prod(one.sides(self.known(problem))), one.number(problem.dtype)
        if one.ascends_to:
            last = evaluate(one.ascends_to, self.known(problem))
            inner = np.sort(rng.integers(0, last + 1, max(0, size - 2)))
            return number.encoded(np.concatenate([[0], inner, [last]])[:size])
        whole = number.whole or distribution == "integer"
        return number.encoded(rng.integers(-4, 5, size) if whole else rng.standard_normal(size))

    def _unread(self, problem: Problem, name: str, start: str, rng: np.random.Generator) -> Array:
        one = self.operands[name]
        size, number = math.prod(one.sides(self.known(problem))), one.number(problem.dtype)
        if one.access not in WRITTEN or start in ("poison", "result"):
            return number.poison(size, rng)
        return number.encoded(rng.integers(-4, 5, size) if start == "numbers" else np.zeros(size))

    def _nearly_done(
        self,
        problem: Problem,
        elements: Mapping[str, Array],
        matrices: Mapping[str, Matrix],
        rng: np.random.Generator,
    ) -> dict[str, Array]:
        """Outputs that are not read, with the right values but for one element."""
        found: dict[str, Array] = {}
        outputs = [n for n, one in self.operands.items() if one.access in WRITTEN and not self.reads(problem, n)]
        if not any(elements[name].size for name in outputs):
            return found
        stored = {n: self.storage(n, problem.dtype, elements[n], matrices.get(n), rng) for n in self.operands}
        expected = self.expected(problem, self.made(problem, stored, matrices))
        for name in outputs:
            values = expected[name][0].astype(np.float64)
            if values.size:
                values[tuple(int(rng.integers(side)) for side in values.shape)] += 1
                found[name] = self.operands[name].number(problem.dtype).encoded(values)
        return found

    def behind(self, problem: Problem, name: str, storage: Array, rng: np.random.Generator) -> Array:
        """The storage of an operand with what a call has behind it: by default a guard page."""
        return storage

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

        Packed operands become a little longer and are read further on: they hardly need more of a cache. A call that
        has gaps between their lines, or that reads its output, has no second ones. Without packed operands, each one
        that is read gets that of another random call of the problem.
        """
        if any(one.packed for one in self.operands.values()):
            moved = self._shifts(problem)
            further = (
                longer(one, moved[one.name], self.operands[one.name].number(problem.dtype), rng)
                if one.name in moved
                else one
                for one in given.buffers
            )
            return replace(given, buffers=tuple(further)) if moved else given
        second = {buffer.name: buffer.data for buffer in self.call(problem, rng, placement=given.placement).buffers}
        read = {name for name in self.operands if self.reads(problem, name)}
        buffers = (followed(one, second[one.name]) if one.name in read else one for one in given.buffers)
        return replace(given, buffers=tuple(buffers))

    def _shifts(self, problem: Problem) -> dict[str, int]:
        """Packed operand -> how many elements further on its second one begins; none if there are no second ones."""
        if any(self.reads(problem, name) for name, one in self.operands.items() if one.access in WRITTEN):
            return {}
        factors, matrices, known = {}, self.matrices(problem), self.known(problem)
        for name, one in self.operands.items():
            if one.packed:
                *lines, length = one.sides(known)
                matrix = matrices.get(name) or Matrix.of(math.prod(lines), length, "row")
                if not self.reads(problem, name) or not matrix.size or matrix.ld != matrix.inner:
                    return {}
                along = (one.shape[-1] == one.packed) != matrix.transposed
                factors[name] = Factor(matrix, along, one.number(problem.dtype))
        return dict(zip(factors, shifts(list(factors.values())), strict=True))

    def counted(self, problem: Problem, given: Call, rng: np.random.Generator) -> Call:
        """The single call that a board model counts.

        An output starts with correct values in its first and last element and in about half of the others, so that a
        kernel which skips work because some elements look finished is wrong. If an output is also read, or an input is
        not read, the call is returned unchanged.
        """
        if any(self.reads(problem, name) != (one.access is Access.IN) for name, one in self.operands.items()):
            return given
        if not any(one.data.size for one in given.buffers if one.access in WRITTEN):
            return given
        began = self.begun(problem, given, rng)
        return replace(given, buffers=tuple(self._begun(problem, one, began) for one in given.buffers))

    def begun(self, problem: Problem, given: Call, rng: np.random.Generator) -> Mapping[str, Array]:
        """Output -> the correct values in about half of its elements, for `counted`."""
        return {name: half_done(*known, rng) for name, known in self.expected(problem, given).items()}

    def _begun(self, problem: Problem, buffer: Buffer, began: Mapping[str, Array]) -> Buffer:
        if buffer.name not in began or not buffer.data.size:
            return buffer
        start = self.operands[buffer.name].number(problem.dtype).encoded(began[buffer.name])
        return replace(buffer, data=self.stored(problem, buffer.name, start, buffer.data))

    def packed_operands(self, given: Call, compute: str, rng: np.random.Generator) -> Call:
        """The call with packed operands of random values, for a micro-kernel alone. compute: their number format."""
        number = NUMBERS[compute]

        def like(buffer: Buffer) -> Buffer:
            return replace(buffer, data=numbers(number, buffer.data.size, rng))

        return self._packed(given, like)

    def panels(self, problem: Problem, given: Call, compute: str, group: int) -> Call:
        """A call of `kernel_grid` with its operands as packing leaves them: step by step of the packed side.

        compute: number format of packed elements; group: steps in one of them
        """
        views, matrices, number = self.views(problem, given), self.matrices(problem), NUMBERS[compute]

        def panel(buffer: Buffer) -> Buffer:
            one = self.operands[buffer.name]
            rows = np.moveaxis(views[buffer.name], one.shape.index(one.packed), 0)
            lines = matrices.get(buffer.name)
            if lines and lines.ld > lines.inner:  # a panel's rows are whole vectors
                rows = np.pad(rows, ((0, 0), (0, lines.ld - lines.inner)))
            if group == 1:
                made = number.encoded(one.number(problem.dtype).decoded(rows))
            else:
                steps = rows.reshape(-1, group, rows.shape[1]).transpose(0, 2, 1)
                made = np.ascontiguousarray(steps.astype(f"i{number.size // group}")).view(number.storage)
            behind = buffer.data.size - (lines.outer * lines.ld if lines else rows.size)
            zeros = np.zeros(max(0, behind), number.storage)
            return replace(buffer, data=np.concatenate([made.ravel(), zeros]), apart=(0, 0))

        return self._packed(given, panel)

    def _packed(self, given: Call, changed: Callable[[Buffer], Buffer]) -> Call:
        packed = {name for name, one in self.operands.items() if one.packed}
        return replace(given, buffers=tuple(changed(one) if one.name in packed else one for one in given.buffers))

    def limits(self, problem: Problem, given: Call) -> Limits:
        """The smallest and largest outputs that `judge` accepts, for those who judge many outputs of one call."""
        return {
            name: admitted(self.operands[name].number(problem.dtype), want, bound)
            for name, (want, bound) in self.expected(problem, given).items()
        }

    def judge(self, problem: Problem, given: Call, outputs: Outputs, *, within: Limits | None = None) -> Judgement:
        """Compares every element of the outputs with `expected`, and the bits of gaps with what they were before.

        within: the `limits` of the call. Outputs within them pass without a look at `expected`; `worst` is 0 then.
        """
        values = {}
        for name, one in self.operands.items():
            if one.access in WRITTEN:
                got = self.returned(problem, given, outputs, name)
                if isinstance(got, Judgement):
                    return got
                values[name] = one.number(problem.dtype).decoded(got)
        if within is not None and all(inside(values[name], *limits) for name, limits in within.items()):
            return Judgement(Kind.OK, "verify")
        worst = 0.0
        for name, (want, bound) in self.expected(problem, given).items():
            judged = compared(f"{problem.label}: {name}", values[name].reshape(want.shape), want, bound)
            if not judged.ok:
                return judged
            worst = max(worst, judged.worst)
        return Judgement(Kind.OK, "verify", worst=worst)
