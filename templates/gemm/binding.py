"""gemm from Python: what tensorop.load(DIR).gemm does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROW_MAJOR = 101
_PLAIN, _TRANSPOSED = 111, 112
_KINDS = {"f32": ("float32", "s", "float"), "f64": ("float64", "d", "double")}
_PROTOTYPE = (
    "int tensorop_{letter}gemm(int layout, int transa, int transb, int64_t m, int64_t n, int64_t k, {real} alpha, "
    "const {real} *a, int64_t lda, const {real} *b, int64_t ldb, {real} beta, {real} *c, int64_t ldc);\n"
)

Matrix = NDArray[np.floating[Any]]


def declarations(dtypes: Sequence[str]) -> str:
    """The C prototypes `bind` uses, for cffi."""
    return "".join(_PROTOTYPE.format(letter=_KINDS[d][1], real=_KINDS[d][2]) for d in dtypes)


def bind(library: Any) -> Callable[..., Matrix]:
    """The function that calls a loaded library (`library.ffi`, `library.lib`, `library.dtypes`)."""
    entries = {
        np.dtype(_KINDS[d][0]): (getattr(library.lib, f"tensorop_{_KINDS[d][1]}gemm"), _KINDS[d][2])
        for d in library.dtypes
    }
    ffi = library.ffi

    def pointer(array: Matrix, real: str) -> Any:
        return ffi.cast(f"{real} *", array.ctypes.data)

    def gemm(
        a: Matrix,
        b: Matrix,
        c: Matrix | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        transpose_a: bool = False,
        transpose_b: bool = False,
    ) -> Matrix:
        """C = alpha * op(A) @ op(B) + beta * C; returns C.

        a: (m, k), or (k, m) with transpose_a; b: (k, n), or (n, k) with transpose_b; c: (m, n), written in place, or
        None for a new array (then beta must be 0). All of one dtype, float32 or float64, as far as the library holds
        it. An array whose rows or columns are contiguous is used as it lies, padding between them included; another
        is copied, and an awkward `c` is computed aside and copied back. At beta = 0, `c` is not read.

        Raises TypeError for a dtype the library does not hold or that differs, ValueError for shapes that do not fit
        and for a `c` that is read-only or overlaps `a` or `b`.
        """
        a, b = _matrix("a", a), _matrix("b", b)
        if a.dtype not in entries:
            raise TypeError(f"a is {a.dtype}, this library holds {', '.join(sorted(str(d) for d in entries))}")
        if b.dtype != a.dtype:
            raise TypeError(f"a is {a.dtype}, b is {b.dtype}: both must be of one dtype")
        m, k = a.shape[::-1] if transpose_a else a.shape
        inner, n = b.shape[::-1] if transpose_b else b.shape
        if k != inner:
            raise ValueError(f"op(a) is {m} x {k} and op(b) is {inner} x {n}: {k} and {inner} must agree")
        if c is None:
            if beta != 0:
                raise ValueError("beta is not 0, so c must be given")
            c = np.empty((m, n), a.dtype)
        _output(c, (m, n), a, b)
        target = c if _leading(c) is not None else np.ascontiguousarray(c)
        by_row, ldc = _leading(target) or (True, 1)
        # A column-major C is computed as the row-major C^T = op(B)^T op(A)^T.
        first, second = ((a, transpose_a), (b, transpose_b)) if by_row else ((b, not transpose_b), (a, not transpose_a))
        rows, columns = (m, n) if by_row else (n, m)
        x, x_code, ldx = _operand(*first)
        y, y_code, ldy = _operand(*second)
        function, real = entries[a.dtype]
        status = function(
            _ROW_MAJOR, x_code, y_code, rows, columns, k, alpha, pointer(x, real), ldx, pointer(y, real), ldy, beta,
            pointer(target, real), ldc,
        )  # fmt: skip
        if status != 0:
            raise RuntimeError(f"gemm returned status {status}; include/tensorop/gemm.h says what it means")
        if target is not c:
            c[...] = target
        return c

    return gemm


def _matrix(name: str, value: Any) -> Matrix:
    array = np.asarray(value)
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimensions, a matrix has 2")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array


def _output(c: Any, shape: tuple[int, int], a: Matrix, b: Matrix) -> None:
    if not isinstance(c, np.ndarray):
        raise TypeError("c is written in place, so it must be an array")
    if c.shape != shape:
        raise ValueError(f"c is {' x '.join(map(str, c.shape))}, the product is {shape[0]} x {shape[1]}")
    if c.dtype != a.dtype:
        raise TypeError(f"c is {c.dtype}, a is {a.dtype}: all must be of one dtype")
    if not c.flags.writeable:
        raise ValueError("c is read-only")
    if np.may_share_memory(c, a) or np.may_share_memory(c, b):
        raise ValueError("c overlaps a or b")


def _leading(array: Matrix) -> tuple[bool, int] | None:
    """(rows are contiguous, leading dimension in elements), or None when neither rows nor columns are contiguous."""
    size = array.itemsize
    rows, columns = array.shape
    across, along = array.strides
    if across % size or along % size or not array.flags.aligned:
        return None
    if (along == size or columns <= 1) and (across >= columns * size or rows <= 1):
        return True, max(across // size if rows > 1 else columns, columns, 1)
    if (across == size or rows <= 1) and (along >= rows * size or columns <= 1):
        return False, max(along // size if columns > 1 else rows, rows, 1)
    return None


def _operand(array: Matrix, transposed: bool) -> tuple[Matrix, int, int]:
    """The array, or a copy that can be used, with CBLAS's transpose code for row-major and its leading dimension."""
    lying = _leading(array)
    if lying is None:
        array = np.ascontiguousarray(array)
        lying = (True, max(array.shape[1], 1))
    by_row, ld = lying
    return array, _TRANSPOSED if transposed == by_row else _PLAIN, ld
