"""The routines beside gemm from Python: what tensorop.load(DIR).trsm and the like do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensorop.package.arguments import flag, overlaps_itself, real, require_apart, require_output

_KINDS = {"f32": ("s", "float", "float32"), "f64": ("d", "double", "float64")}
_ROW, _COLUMN = 101, 102
_DECLARATION = """
int tensorop_{t}gemmtr(int layout, int uplo, int transa, int transb, int64_t n, int64_t k, {real} alpha, const void *a,
                       int64_t lda, const void *b, int64_t ldb, {real} beta, void *c, int64_t ldc);
int tensorop_{t}symm(int layout, int side, int uplo, int64_t m, int64_t n, {real} alpha, const void *a, int64_t lda,
                     const void *b, int64_t ldb, {real} beta, void *c, int64_t ldc);
int tensorop_{t}syrk(int layout, int uplo, int trans, int64_t n, int64_t k, {real} alpha, const void *a, int64_t lda,
                     {real} beta, void *c, int64_t ldc);
int tensorop_{t}syr2k(int layout, int uplo, int trans, int64_t n, int64_t k, {real} alpha, const void *a, int64_t lda,
                      const void *b, int64_t ldb, {real} beta, void *c, int64_t ldc);
int tensorop_{t}trmm(int layout, int side, int uplo, int transa, int diag, int64_t m, int64_t n, {real} alpha,
                     const void *a, int64_t lda, void *b, int64_t ldb);
int tensorop_{t}trsm(int layout, int side, int uplo, int transa, int diag, int64_t m, int64_t n, {real} alpha,
                     const void *a, int64_t lda, void *b, int64_t ldb);
int tensorop_{t}gemv(int layout, int trans, int64_t m, int64_t n, {real} alpha, const void *a, int64_t lda,
                     const void *x, int64_t incx, {real} beta, void *y, int64_t incy);
int tensorop_{t}ger(int layout, int64_t m, int64_t n, {real} alpha, const void *x, int64_t incx, const void *y,
                    int64_t incy, void *a, int64_t lda);
"""

Array = NDArray[Any]


def declarations(dtypes: Sequence[str]) -> str:
    """The C declarations `bind` uses, for cffi."""
    return "".join(_DECLARATION.format(t=_KINDS[dtype][0], real=_KINDS[dtype][1]) for dtype in dtypes)


class _Laid(NamedTuple):
    """A matrix in memory. turned: its transpose lies in the layout of the call"""

    array: Array
    ld: int
    turned: bool


def bind(library: Any) -> Mapping[str, Callable[..., Array]]:
    """The functions that call a loaded library (`library.ffi`, `library.lib`, `library.dtypes`)."""
    letters = {_KINDS[dtype][2]: _KINDS[dtype][0] for dtype in library.dtypes}

    def at(array: Array) -> Any:
        return library.ffi.cast("void *", array.ctypes.data)

    def called(routine: str, dtype: np.dtype[Any], *arguments: Any) -> None:
        status = getattr(library.lib, f"tensorop_{letters[dtype.name]}{routine}")(*arguments)
        if status != 0:
            raise RuntimeError(f"{routine} returned status {status}; include/tensorop/blas.h says what it means")

    def given(dimensions: Mapping[str, int], **arrays: Any) -> list[Array]:
        """The arrays, of one dtype and with so many dimensions; 2 where none are named."""
        found = [np.asarray(value) for value in arrays.values()]
        first, *_ = arrays
        for name, array in zip(arrays, found, strict=True):
            wanted = dimensions.get(name, 2)
            if array.ndim != wanted:
                raise ValueError(f"{name} has {array.ndim} dimensions, expected {wanted}")
            if array.dtype.name not in letters or array.dtype != found[0].dtype or not array.dtype.isnative:
                of = f"as {first}, " if array.dtype.name in letters else ""
                raise TypeError(f"{name} is {array.dtype}, expected {of}one of {', '.join(sorted(letters))}")
        return found

    def numbers(dtype: np.dtype[Any], alpha: float, beta: float) -> tuple[float, float]:
        bits = 8 * dtype.itemsize
        return real("alpha", alpha, bits, TypeError), real("beta", beta, bits, TypeError)

    def result(
        name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any], beta: float, read: Mapping[str, Array]
    ) -> Array:
        """The array that is written: a new one of zeros for None."""
        if array is None:
            if beta != 0:
                raise ValueError(f"beta is not 0, so {name} must be given")
            return np.zeros(shape, dtype)
        form = "an array with contiguous rows or columns," if len(shape) == 2 else "an array"
        require_output(name, array, (shape, dtype), _written_in_place, form)
        require_apart(name, array, read)
        return np.asarray(array)

    def gemmtr(
        a: Array,
        b: Array,
        c: Array | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        lower: bool = False,
        transpose_a: bool = False,
        transpose_b: bool = False,
    ) -> Array:
        """One triangle of C = alpha * op(A) @ op(B) + beta * C; returns C.

        a: (n, k), or (k, n) with transpose_a
        b: (k, n), or (n, k) with transpose_b
        c: (n, n), written in place; None for a new array of zeros
        lower: the lower triangle, else the upper one; the other one is neither read nor written
        """
        x, y = given({}, a=a, b=b)
        (n, k), (inner, columns) = x.shape[:: -1 if transpose_a else 1], y.shape[:: -1 if transpose_b else 1]
        _fits("op(a)", (n, k), "op(b)", (inner, columns), k == inner and n == columns)
        alpha, beta = numbers(x.dtype, alpha, beta)
        out = result("c", c, (n, n), x.dtype, beta, {"a": x, "b": y})
        layout, ldc = _layout(out)
        one, two = _laid(x, layout), _laid(y, layout)
        flags = _uplo(lower), _trans(transpose_a, one), _trans(transpose_b, two)
        called(
            "gemmtr", x.dtype, layout, *flags, n, k, alpha, at(one.array), one.ld, at(two.array), two.ld, beta, at(out),
            ldc,
        )  # fmt: skip
        return out

    def syrk(
        a: Array,
        c: Array | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        lower: bool = False,
        transpose: bool = False,
    ) -> Array:
        """One triangle of C = alpha * op(A) @ op(A).T + beta * C; returns C.

        a: (n, k), or (k, n) with transpose
        c: (n, n), written in place; None for a new array of zeros
        lower: the lower triangle, else the upper one; the other one is neither read nor written
        """
        (x,) = given({}, a=a)
        n, k = x.shape[:: -1 if transpose else 1]
        alpha, beta = numbers(x.dtype, alpha, beta)
        out = result("c", c, (n, n), x.dtype, beta, {"a": x})
        layout, ldc = _layout(out)
        one = _laid(x, layout)
        flags = _uplo(lower), _trans(transpose, one)
        called("syrk", x.dtype, layout, *flags, n, k, alpha, at(one.array), one.ld, beta, at(out), ldc)
        return out

    def syr2k(
        a: Array,
        b: Array,
        c: Array | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        lower: bool = False,
        transpose: bool = False,
    ) -> Array:
        """One triangle of C = alpha * (op(A) @ op(B).T + op(B) @ op(A).T) + beta * C; returns C.

        a, b: (n, k), or (k, n) with transpose
        c: (n, n), written in place; None for a new array of zeros
        lower: the lower triangle, else the upper one; the other one is neither read nor written
        """
        x, y = given({}, a=a, b=b)
        _fits("a", x.shape, "b", y.shape, x.shape == y.shape)
        n, k = x.shape[:: -1 if transpose else 1]
        alpha, beta = numbers(x.dtype, alpha, beta)
        out = result("c", c, (n, n), x.dtype, beta, {"a": x, "b": y})
        layout, ldc = _layout(out)
        one = _laid(x, layout)
        two = _laid(y, layout, one.turned)
        flags = _uplo(lower), _trans(transpose, one)
        called(
            "syr2k", x.dtype, layout, *flags, n, k, alpha, at(one.array), one.ld, at(two.array), two.ld, beta, at(out),
            ldc,
        )  # fmt: skip
        return out

    def symm(
        a: Array,
        b: Array,
        c: Array | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        lower: bool = False,
        right: bool = False,
    ) -> Array:
        """C = alpha * A @ B + beta * C with a symmetric A, or alpha * B @ A + beta * C with right; returns C.

        a: (m, m), or (n, n) with right
        b: (m, n)
        c: (m, n), written in place; None for a new array
        lower: the lower triangle of A is read, else the upper one
        """
        x, y = given({}, a=a, b=b)
        m, n = y.shape
        order = n if right else m
        _fits("a", x.shape, "b", y.shape, x.shape == (order, order))
        alpha, beta = numbers(x.dtype, alpha, beta)
        out = result("c", c, (m, n), x.dtype, beta, {"a": x, "b": y})
        layout, ldc = _layout(out)
        one, two = _laid(x, layout), _laid(y, layout, False)
        flags = _side(right), _uplo(lower != one.turned)
        called(
            "symm", x.dtype, layout, *flags, m, n, alpha, at(one.array), one.ld, at(two.array), two.ld, beta, at(out),
            ldc,
        )  # fmt: skip
        return out

    def triangular(
        routine: str, a: Array, b: Array, alpha: float, lower: bool, right: bool, transpose: bool, unit: bool
    ) -> Array:
        x, y = given({}, a=a, b=b)
        m, n = y.shape
        order = n if right else m
        _fits("a", x.shape, "b", y.shape, x.shape == (order, order))
        alpha, _ = numbers(x.dtype, alpha, 0.0)
        out = result("b", b, (m, n), x.dtype, 0.0, {"a": x})
        layout, ldb = _layout(out)
        one = _laid(x, layout)
        diag = 132 if flag("unit", unit, TypeError) else 131
        flags = _side(right), _uplo(lower != one.turned), _trans(transpose, one), diag
        called(routine, x.dtype, layout, *flags, m, n, alpha, at(one.array), one.ld, at(out), ldb)
        return out

    def trmm(
        a: Array,
        b: Array,
        *,
        alpha: float = 1.0,
        lower: bool = False,
        right: bool = False,
        transpose: bool = False,
        unit: bool = False,
    ) -> Array:
        """B = alpha * op(A) @ B with a triangular A, or alpha * B @ op(A) with right; writes and returns B.

        a: (m, m), or (n, n) with right
        b: (m, n), written in place
        lower: A is lower triangular, else upper; the other triangle is not read
        unit: the diagonal of A is 1, and is not read
        """
        return triangular("trmm", a, b, alpha, lower, right, transpose, unit)

    def trsm(
        a: Array,
        b: Array,
        *,
        alpha: float = 1.0,
        lower: bool = False,
        right: bool = False,
        transpose: bool = False,
        unit: bool = False,
    ) -> Array:
        """The X of op(A) @ X = alpha * B with a triangular A, or of X @ op(A) = alpha * B with right; in place of B.

        a: (m, m), or (n, n) with right
        b: (m, n), written in place, and returned
        lower: A is lower triangular, else upper; the other triangle is not read
        unit: the diagonal of A is 1, and is not read
        """
        return triangular("trsm", a, b, alpha, lower, right, transpose, unit)

    def gemv(
        a: Array,
        x: Array,
        y: Array | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        transpose: bool = False,
    ) -> Array:
        """y = alpha * op(A) @ x + beta * y; returns y.

        a: (m, n)
        x: (n,), or (m,) with transpose
        y: (m,), or (n,) with transpose, written in place; None for a new array
        """
        matrix, vector = given({"x": 1}, a=a, x=x)
        rows, columns = matrix.shape[:: -1 if transpose else 1]
        _fits("op(a)", (rows, columns), "x", vector.shape, vector.shape == (columns,))
        alpha, beta = numbers(matrix.dtype, alpha, beta)
        out = result("y", y, (rows,), matrix.dtype, beta, {"a": matrix, "x": vector})
        one = _laid(matrix, _ROW)
        (first, incx), (to, incy) = _stepping(vector), _stepping(out)
        m, n = matrix.shape[::-1] if one.turned else matrix.shape
        called(
            "gemv", matrix.dtype, _ROW, _trans(transpose, one), m, n, alpha, at(one.array), one.ld, at(first), incx,
            beta, at(to), incy,
        )  # fmt: skip
        return out

    def ger(x: Array, y: Array, a: Array, *, alpha: float = 1.0) -> Array:
        """A = alpha * outer(x, y) + A; writes and returns A.

        x: (m,)
        y: (n,)
        a: (m, n), written in place
        """
        one, two, _ = given({"x": 1, "y": 1}, x=x, y=y, a=a)
        alpha, _ = numbers(one.dtype, alpha, 0.0)
        shape = (one.shape[0], two.shape[0])
        out = result("a", a, shape, one.dtype, 0.0, {"x": one, "y": two})
        layout, lda = _layout(out)
        (first, incx), (second, incy) = _stepping(one), _stepping(two)
        called("ger", one.dtype, layout, *shape, alpha, at(first), incx, at(second), incy, at(out), lda)
        return out

    found = (gemmtr, symm, syrk, syr2k, trmm, trsm, gemv, ger)
    return {function.__name__: function for function in found}


def _fits(one: str, shape: tuple[int, ...], other: str, second: tuple[int, ...], holds: bool) -> None:
    if not holds:
        raise ValueError(f"{one} has the shape {shape} and {other} {second}: they do not fit")


def _uplo(lower: bool) -> int:
    return 122 if flag("lower", lower, TypeError) else 121


def _side(right: bool) -> int:
    return 142 if flag("right", right, TypeError) else 141


def _trans(transpose: bool, of: _Laid) -> int:
    return 112 if flag("transpose", transpose, TypeError) != of.turned else 111


def _ld(array: Array, by_row: bool) -> int | None:
    """The leading dimension of an array with contiguous rows, or columns, in elements; None where they are not."""
    size, shape = array.itemsize, array.shape if by_row else array.shape[::-1]
    strides = array.strides if by_row else array.strides[::-1]
    if not array.flags.aligned or any(step % size for step in strides):
        return None
    (lines, length), (step, within) = shape, (step // size for step in strides)
    if (within != 1 and length > 1) or (step < length and lines > 1):
        return None
    return max(step if lines > 1 else 1, length, 1)


def _written_in_place(array: Array) -> bool:
    if array.ndim == 1:
        step = array.strides[0]
        whole = array.flags.aligned and step % array.itemsize == 0 and (step != 0 or array.size < 2)
        return bool(whole)
    lies = any(_ld(array, by_row) is not None for by_row in (True, False))
    return lies and not overlaps_itself(array.shape, array.strides, array.itemsize)


def _layout(written: Array) -> tuple[int, int]:
    """The layout of a call, which is that of its result, and the result's leading dimension."""
    by_row = _ld(written, True)
    return (_ROW, by_row) if by_row is not None else (_COLUMN, _ld(written, False) or 1)


def _laid(array: Array, layout: int, turned: bool | None = None) -> _Laid:
    """An operand in a call of this layout; a copy where it does not lie so. turned: how it must lie, if that matters"""
    ways = (False, True) if turned is None else (turned,)
    for way in ways:
        if (ld := _ld(array, (layout == _ROW) != way)) is not None:
            return _Laid(array, ld, way)
    by_row = (layout == _ROW) != ways[0]
    array = np.array(array, order="C" if by_row else "F")
    return _Laid(array, _ld(array, by_row) or 1, ways[0])


def _stepping(vector: Array) -> tuple[Array, int]:
    """What begins at a vector's lowest address, and the vector's increment."""
    step, size = vector.strides[0], vector.itemsize
    if not vector.flags.aligned or step % size or (step == 0 and vector.size > 1):
        return np.ascontiguousarray(vector), 1
    if vector.size < 2:
        return vector, 1
    return (vector, step // size) if step > 0 else (vector[::-1], step // size)
