"""A matrix in memory: leading dimension, transpose, and gaps between its lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.model.number import Number

Array = NDArray[Any]


FAR = 1 << 15  # from this gap on, in elements, each line has memory pages of its own
KEPT = 7  # elements at the start of such a gap that the storage contains


@dataclass(frozen=True)
class Matrix:
    """`outer` lines of `inner` elements, with a distance of `ld` in their storage and no gap after the last line."""

    outer: int
    inner: int
    ld: int
    transposed: bool  # the logical matrix is the transpose of (outer, inner)
    leading: int  # the leading dimension; above `ld` if the storage has only the start of each gap

    @staticmethod
    def of(rows: int, columns: int, layout: str, transpose: bool = False, pad: int = 0) -> Matrix:
        """op(X) of rows x columns as BLAS stores it: X itself is columns x rows when `transpose`.

        layout: "row" | "col"; pad: elements by which the leading dimension exceeds its minimum
        """
        stored_rows, stored_columns = (columns, rows) if transpose else (rows, columns)
        by_column = layout == "col"
        outer, inner = (stored_columns, stored_rows) if by_column else (stored_rows, stored_columns)
        leading = max(1, inner) + pad
        ld = max(1, inner) + KEPT if pad >= FAR and outer > 1 and inner else leading
        return Matrix(outer, inner, ld, by_column != transpose, leading)

    @property
    def apart(self) -> tuple[int, int]:
        """The storage's `Buffer.apart`."""
        return (self.ld, self.leading) if self.leading > self.ld else (0, 0)

    @property
    def size(self) -> int:
        """Number of elements of the storage."""
        return (self.outer - 1) * self.ld + self.inner if self.outer and self.inner else 0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the logical matrix."""
        return (self.inner, self.outer) if self.transposed else (self.outer, self.inner)

    def view(self, storage: Array) -> Array:
        """A view of the logical matrix in its storage; writes change the storage."""
        if not self.size:
            return np.zeros(self.shape, storage.dtype)
        step = storage.itemsize
        lines = np.lib.stride_tricks.as_strided(storage, (self.outer, self.inner), (self.ld * step, step))
        return lines.T if self.transposed else lines

    def store(self, elements: Array, number: Number, rng: np.random.Generator) -> Array:
        """New storage with these elements (logical shape) and poison in the gaps."""
        storage = np.empty(self.size, number.storage)
        if self.ld > self.inner and self.size:
            gaps = replace(self, outer=self.outer - 1, inner=self.ld - self.inner, transposed=False)
            poison = number.poison(gaps.outer * gaps.inner, rng)
            gaps.view(storage[self.inner :])[...] = poison.reshape(gaps.shape)
        self.view(storage)[...] = elements
        return storage

    def touched(self, before: Array, after: Array) -> Array:
        """Indices, in the storage, of gap elements whose bits changed."""
        gap = np.ones(before.size, bool)
        self.view(gap)[...] = False
        return np.flatnonzero(gap & (_bits(before) != _bits(after)))


def _bits(storage: Array) -> Array:
    return storage.view(f"u{storage.itemsize}")
