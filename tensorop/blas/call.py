"""One call of a BLAS routine: its arguments, the memory of its operands, and the elements that are its own.

All memory begins as NaN, that of some outputs as numbers, since NaN hides what is added to it. Then the elements that
the routine may read get values that depend on their place and the call's salt alone, so that a C program can make the
same call. Places are expressions that are both C and, after
`numpy_text`, Python.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.blas import binding
from tensorop.blas.routines import COMPLEX, Argument, BlasOperand, BlasRoutine, Role, Storage, Structure, cblas_flag
from tensorop.model.call import Access, Buffer, Call, Placement

Array = NDArray[Any]
ELEMENT: Mapping[str, type[Any]] = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
_REAL = {"s": np.float32, "d": np.float64, "c": np.float32, "z": np.float64}
_OTHER = {"U": "L", "L": "U"}
_NAN, _NUMBER = 0xFF, 0x40  # bytes of an element that is NaN, and of one that is a few units
_LAST, _HALVED = 8, 16  # bits of a salt
POSITIVE = ("d1", "d2")  # squares of scales
_SALT = 40503  # operands have different values


def values(places: Array, salt: int) -> NDArray[np.float64]:
    """Numbers between -1 and 1, never zero, that a place (element, or part of a complex one) and a salt decide."""
    h = places.astype(np.uint32) * np.uint32(2654435761) + np.uint32(salt)
    h ^= h >> np.uint32(16)
    h *= np.uint32(2246822507)
    h ^= h >> np.uint32(13)
    found: NDArray[np.float64] = ((h % np.uint32(2001)).astype(np.float64) - 1000.5) / 1000.5
    return found


def numpy_text(text: str) -> str:
    """A condition or place in C as a NumPy expression."""
    return text.replace("&&", "&").replace("/", "//")


@dataclass(frozen=True)
class Places:
    """Where the elements of an operand lie. The stored form of a matrix by rows is its transposed one by columns."""

    rows: int  # as stored; the length of a vector
    columns: int
    at: str  # the place of element (r, c) as stored, in C
    own: str  # whether it is read and written, in C
    size: int  # elements of the memory
    transposed: bool = False

    @cached_property
    def _grid(self) -> dict[str, Any]:
        return {"r": np.arange(self.rows)[:, None], "c": np.arange(self.columns)[None, :]}

    def _over(self, text: str) -> Array:
        made = np.broadcast_to(eval(numpy_text(text), {}, self._grid), (self.rows, self.columns))
        return made.T if self.transposed else made

    @cached_property
    def place(self) -> Array:
        """The place of each element; of those that are not the operand's own it has no meaning."""
        return self._over(self.at)

    @cached_property
    def mask(self) -> Array:
        """Whether each element is read and written."""
        return self._over(self.own)


@dataclass(frozen=True)
class BlasCase:
    """The arguments of a call."""

    routine: BlasRoutine
    dtype: str
    layout: str  # fortran, col or row
    flags: Mapping[str, str]
    sizes: Mapping[str, int]
    scalars: Mapping[str, complex]
    salt: int
    padding: Mapping[str, int] = field(default_factory=dict)  # by operand: leading dimension beyond the least one
    steps: Mapping[str, int] = field(default_factory=dict)  # by operand: increments
    shared: bool = False  # the second input is the first one
    wrong: str = ""  # an argument with a value that is refused
    # the value of one element of an operand: the first, or by the salt the last if the value is finite
    special: Mapping[str, float] = field(default_factory=dict)
    placement: Placement = Placement.END

    @property
    def function(self) -> str:
        return self.routine.function(self.dtype)

    @cached_property
    def places(self) -> Mapping[str, Places]:
        return {name: self._places(name, one) for name, one in self.routine.operands.items()}

    def least(self, name: str) -> int:
        """The least leading dimension of a matrix."""
        one, (rows, columns) = self.routine.operands[name], self._shape(name)
        if one.storage is Storage.BAND:
            return sum(self._band(one)) + 1
        return max(1, columns if self.layout == "row" else rows)

    def leading(self, name: str) -> int:
        return self.least(name) + self.padding.get(name, 0)

    def _shape(self, name: str) -> tuple[int, ...]:
        flags = self.routine.flags(self.dtype)
        return self.routine.operands[name].shape({**self.sizes, **self.flags}, flags)

    def _half(self) -> str:
        half = self.flags.get("uplo", "")
        return _OTHER[half] if self.layout == "row" and half else half

    def _band(self, one: BlasOperand) -> tuple[int, int]:
        """The diagonals below and above the main one, as stored."""
        if one.structure is Structure.GENERAL:
            below, above = self.sizes["kl"], self.sizes["ku"]
            return (above, below) if self.layout == "row" else (below, above)
        return (self.sizes["k"], 0) if self._half() == "L" else (0, self.sizes["k"])

    def _places(self, name: str, one: BlasOperand) -> Places:
        shape = self._shape(name)
        if one.kind == "array":
            return Places(shape[0], 1, "r", "r >= 0", shape[0])
        if one.kind == "vector":
            n, step = shape[0], self.steps.get(name, 1)
            at = f"r * {step}" if step >= 0 else f"({n - 1} - r) * {-step}"
            return Places(n, 1, f"({at}) + c * 0", "r >= 0", max(1, 1 + (n - 1) * abs(step)))
        rows, columns = shape[::-1] if self.layout == "row" else shape
        half, ld = self._half(), self.leading(name)
        own = ["(r >= 0)"] if one.structure is Structure.GENERAL else ["(r <= c)" if half == "U" else "(r >= c)"]
        if one.structure is Structure.TRIANGULAR and self.flags.get("diag") == "U":
            own.append("(r != c)")
        at, size = f"r + c * {ld}", ld * (columns - 1) + rows
        if one.storage is Storage.BAND:
            below, above = self._band(one)
            own += [f"(r - c <= {below})", f"(c - r <= {above})"]
            at, size = f"{above} + r - c + c * {ld}", ld * columns
        elif one.storage is Storage.PACKED:
            at = "r + c * (c + 1) / 2" if half == "U" else f"r + c * ({2 * rows - 1} - c) / 2"
            size = rows * (rows + 1) // 2
        return Places(rows, columns, at, " && ".join(own), max(1, size), self.layout == "row")

    def unset(self, name: str) -> bool:
        """Whether an operand must not be read: its memory stays NaN."""
        one = self.routine.operands[name]
        solved = self.routine.level == 3 and "beta" not in self.scalars
        if self.scalars.get("alpha") == 0 and (not one.written or solved):
            return True
        return one.access == "out" or (one.written and self.scalars.get("beta") == 0)

    def filling(self, name: str) -> int:
        """The byte that an operand's memory begins with."""
        number = self.routine.operands[name].written and not self.unset(name) and self.salt & 4
        return _NUMBER if number else _NAN

    @property
    def halved(self) -> bool:
        """Whether complex operands begin at half of an element, which is as aligned as their parts must be."""
        return self.placement is Placement.END and self.dtype in COMPLEX and bool(self.salt & _HALVED)

    def _shifted(self, name: str) -> bool:
        """Whether a number lies between an operand and the end of its page."""
        return self.halved and not self.real(name)

    def parts(self, name: str) -> int:
        """The numbers in an operand's memory, with the one that shifts it."""
        return self.places[name].size * (1 if self.real(name) else 2) + self._shifted(name)

    @property
    def special_is_lost(self) -> bool:
        """Whether an operand has a NaN or an infinity."""
        return not all(map(math.isfinite, self.special.values()))

    def special_place(self, name: str) -> int:
        """The place of an operand's special element."""
        where = self.places[name]
        last = self.salt & _LAST and math.isfinite(self.special[name])  # a lost last element is a wrong result alone
        return int(where.place[where.mask][-1 if last else 0])

    def scale(self, name: str) -> int:
        """The divisor of off-diagonal elements, so that products and solutions stay bounded; 0: all are as drawn."""
        one = self.routine.operands[name]
        return max(1, *self._shape(name)) if one.structure is Structure.TRIANGULAR else 0

    def salt_of(self, name: str) -> int:
        return (self.salt + _SALT * [*self.routine.operands].index(name)) % 2**32

    def real(self, name: str) -> bool:
        """Whether an operand or scalar has real elements."""
        return self.dtype not in COMPLEX or any(one.real for one in self.routine.arguments if one.name == name)

    @cached_property
    def memory(self) -> Mapping[str, Array]:
        """The memory of each operand before the call."""
        return {name: self._memory(name) for name in self.routine.operands}

    def _memory(self, name: str) -> Array:
        where, real = self.places[name], self.real(name)
        kind = np.dtype((_REAL if real else ELEMENT)[self.dtype])
        out = np.full(where.size * kind.itemsize, self.filling(name), np.uint8).view(kind)
        if self.unset(name):
            return out
        own = where.place[where.mask]
        salt, scale = self.salt_of(name), self.scale(name)
        drawn = values(own, salt) if real else values(2 * own, salt) + 1j * values(2 * own + 1, salt)
        if scale:
            diagonal = np.eye(where.rows, dtype=bool)[where.mask]
            drawn = np.where(diagonal, drawn + np.where(drawn.real > 0, 1, -1), drawn / scale)
        out[own] = drawn
        if name in self.special:
            out[self.special_place(name)] = self.special[name]
        if name == "param":
            out[0] = self.salt % 4 - 2
        return out if name not in POSITIVE else np.abs(out)

    def record(self) -> tuple[list[int], list[float], list[Buffer]]:
        """Flags, scalars and buffers. The last two buffers are the result and the number of a wrong argument."""
        names = [*self.routine.operands]
        flags = [binding.INDEX[self.function], binding.layout_number(self.layout), len(names)]
        scalars: list[float] = []
        for one in self.routine.arguments:
            flags.append(self._number(one, names))
            value = self.scalars.get(one.name, 0)
            scalars += [complex(value).real, complex(value).imag]
        access = {name: Access.INOUT if self.routine.operands[name].written else Access.IN for name in names}
        buffers = [Buffer(name, access[name], self._placed(name)) for name in names]
        buffers += [
            Buffer("result", Access.INOUT, np.full(2, np.nan)),
            Buffer("report", Access.INOUT, np.zeros(1, int)),
        ]
        return flags, scalars, buffers

    def _placed(self, name: str) -> Array:
        kind = _REAL[self.dtype]
        parts: Array = self.memory[name]
        return np.append(parts.view(kind), np.full(1, np.nan, kind)) if self._shifted(name) else parts

    def own(self, name: str, after: Array) -> Array:
        """An operand's memory in that which the harness gave back."""
        return after[:-1].view(ELEMENT[self.dtype]) if self._shifted(name) else after

    def _number(self, one: Argument, names: list[str]) -> int:
        if one.role is Role.OPERAND:
            return 0 if self.shared and one.name == self.sharing[1] else names.index(one.name)
        if one.role is Role.SCALAR:
            return 0
        value = self.value(one)
        if isinstance(value, int):
            return value
        return cblas_flag(one.name, value) if self.layout != "fortran" else ord(value)

    @property
    def sharing(self) -> tuple[str, str]:
        """The first two operands, where both are inputs of one form; the second can share the memory of the first."""
        first, second = [*self.routine.operands][:2]
        return first, second

    def value(self, one: Argument) -> int | str:
        """The value of a flag, a size, a leading dimension or an increment."""
        wrong = one.name == self.wrong
        match one.role:
            case Role.FLAG:
                return "X" if wrong else self.flags[one.name]
            case Role.SIZE:
                return -1 if wrong else self.sizes[one.name]
            case Role.LEADING:
                return self.least(one.of) - 1 if wrong else self.leading(one.of)
            case _:
                return 0 if wrong else self.steps.get(one.of, 1)


def call(cases: Sequence[BlasCase], after_fork: bool = False) -> Call:
    """The harness's call of one function, or of several calls of it at once. Buffers are named OPERAND@NUMBER."""
    records = [one.record() for one in cases]
    flags, scalars, buffers = [len(records), *(len(part) for part in records[0]), int(after_fork)], [], []
    for number, (of_flags, of_scalars, of_buffers) in enumerate(records):
        flags += of_flags
        scalars += of_scalars
        buffers += [dataclasses.replace(one, name=f"{one.name}@{number}") for one in of_buffers]
    return Call((), (), tuple(scalars), tuple(flags), tuple(buffers), cases[0].placement)
