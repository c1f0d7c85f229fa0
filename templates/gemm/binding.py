"""gemm from Python: what tensorop.load(DIR).gemm does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROW_MAJOR = 101
_PLAIN, _TRANSPOSED = 111, 112
_PROTOTYPE = (
    "int {function}(int layout, int transa, int transb, int64_t m, int64_t n, int64_t k, {real} alpha, "
    "const {operand} *a, int64_t lda, const {operand} *b, int64_t ldb, {real} beta, {real} *c, int64_t ldc);\n"
)

Matrix = NDArray[Any]


@dataclass(frozen=True)
class _Kind:
    """A dtype of the library. arrays: names of the NumPy dtypes of A and B; result: of C; operand, real: in C."""

    function: str
    arrays: tuple[str, ...]
    result: str
    operand: str
    real: str


_KINDS = {
    "f32": _Kind("tensorop_sgemm", ("float32",), "float32", "float", "float"),
    "f64": _Kind("tensorop_dgemm", ("float64",), "float64", "double", "double"),
    "i8": _Kind("tensorop_gemm_i8", ("int8",), "int32", "int8_t", "int32_t"),
    "bf16": _Kind("tensorop_gemm_bf16", ("bfloat16", "uint16"), "float32", "uint16_t", "float"),
    "f16": _Kind("tensorop_gemm_f16", ("float16",), "float32", "uint16_t", "float"),
}


def declarations(dtypes: Sequence[str]) -> str:
    """The C prototypes `bind` uses, for cffi."""
    return "".join(
        _PROTOTYPE.format(function=kind.function, operand=kind.operand, real=kind.real)
        for kind in (_KINDS[d] for d in dtypes)
    )


def bind(library: Any) -> Callable[..., Matrix]:
    """The function that calls a loaded library (`library.ffi`, `library.lib`, `library.dtypes`)."""
    entries = {
        name: (getattr(library.lib, _KINDS[d].function), _KINDS[d]) for d in library.dtypes for name in _KINDS[d].arrays
    }
    ffi = library.ffi

    def pointer(array: Matrix, kind: str) -> Any:
        return ffi.cast(f"{kind} *", array.ctypes.data)

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
        None for a new array (then beta must be 0). a and b are of one dtype that the library holds: float32,
        float64, int8, float16, or bfloat16 (ml_dtypes), whose bits as uint16 do as well. c is of the same, but int32
        for int8, where alpha and beta are integers and sums are modulo 2**32, and float32 for the 16-bit ones. An
        array whose rows or columns are contiguous is used as it lies, padding between them included; another
        is copied, and an awkward `c` is computed aside and copied back. At beta = 0, `c` is not read.

        Raises TypeError for a dtype the library does not hold or that differs, ValueError for shapes that do not fit,
        for an alpha or beta that is no integer beside integers, and for a `c` that is read-only or overlaps `a` or `b`.
        """
        a, b = _matrix("a", a), _matrix("b", b)
        if a.dtype.name not in entries:
            raise TypeError(f"a is {a.dtype}, this library holds {', '.join(sorted(entries))}")
        if b.dtype != a.dtype:
            raise TypeError(f"a is {a.dtype}, b is {b.dtype}: both must be of one dtype")
        function, kind = entries[a.dtype.name]
        factors = [_coefficient(name, value, kind) for name, value in (("alpha", alpha), ("beta", beta))]
        m, k = a.shape[::-1] if transpose_a else a.shape
        inner, n = b.shape[::-1] if transpose_b else b.shape
        if k != inner:
            raise ValueError(f"op(a) is {m} x {k} and op(b) is {inner} x {n}: {k} and {inner} must agree")
        if c is None:
            if beta != 0:
                raise ValueError("beta is not 0, so c must be given")
            c = np.empty((m, n), kind.result)
        _output(c, (m, n), np.dtype(kind.result), a, b)
        target = c if _leading(c) is not None else np.ascontiguousarray(c)
        by_row, ldc = _leading(target) or (True, 1)
        # A column-major C is computed as the row-major C^T = op(B)^T op(A)^T.
        first, second = ((a, transpose_a), (b, transpose_b)) if by_row else ((b, not transpose_b), (a, not transpose_a))
        rows, columns = (m, n) if by_row else (n, m)
        x, x_code, ldx = _operand(*first)
        y, y_code, ldy = _operand(*second)
        status = function(
            _ROW_MAJOR, x_code, y_code, rows, columns, k, factors[0], pointer(x, kind.operand), ldx,
            pointer(y, kind.operand), ldy, factors[1], pointer(target, kind.real), ldc,
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


def _coefficient(name: str, value: float, kind: _Kind) -> float:
    if np.dtype(kind.result).kind != "i":
        return value
    if value != int(value) or not -(2**31) <= value < 2**31:
        raise ValueError(f"{name} is {value}, beside integers it must be one, of 32 bits")
    return int(value)


def _output(c: Any, shape: tuple[int, int], dtype: np.dtype[Any], a: Matrix, b: Matrix) -> None:
    if not isinstance(c, np.ndarray):
        raise TypeError("c is written in place, so it must be an array")
    if c.shape != shape:
        raise ValueError(f"c is {' x '.join(map(str, c.shape))}, the product is {shape[0]} x {shape[1]}")
    if c.dtype != dtype:
        raise TypeError(f"c is {c.dtype}, of {a.dtype} it must be {dtype}")
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
