"""gemm from Python: what tensorop.load(DIR).gemm does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import _cffi_backend
import numpy as np
from numpy.typing import NDArray

from tensorop.package import torch_module
from tensorop.package.arguments import LARGEST, flag, leading, overlaps_itself, real, require_apart, require_output

from .epilogue_call import Result, declaration, finishing, require_activation

_ROW_MAJOR, _COLUMN_MAJOR = 101, 102
_PLAIN, _TRANSPOSED = 111, 112
_OVERLAP = -2
_BY_ROW, _BY_COLUMN, _GAPS, _COPY = range(4)  # how an array lies; a copy is made where no leading dimension says it
_MOST_PLANS = 1024
_DECLARATION = """
struct tensorop_gemm_{dtype}_call {{
    int layout, transa, transb;
    {real} alpha, beta;
    int64_t m, n, k, lda, ldb, ldc;
}};
int tensorop_gemm_{dtype}_call(const struct tensorop_gemm_{dtype}_call *call, const void *a, const void *b, void *c);
"""

Matrix = NDArray[Any]


@dataclass(frozen=True)
class _Kind:
    """A dtype of the library. arrays: names of the NumPy dtypes of A and B; result: of C; real: C's elements in C."""

    arrays: tuple[str, ...]
    result: str
    real: str


_KINDS = {
    "f32": _Kind(("float32",), "float32", "float"),
    "f64": _Kind(("float64",), "float64", "double"),
    "i8": _Kind(("int8",), "int32", "int32_t"),
    "bf16": _Kind(("bfloat16", "uint16"), "float32", "float"),
    "f16": _Kind(("float16",), "float32", "float"),
}


def declarations(dtypes: Sequence[str]) -> str:
    """The C declarations `bind` uses, for cffi."""
    return "".join(_DECLARATION.format(dtype=dtype, real=_KINDS[dtype].real) + declaration(dtype) for dtype in dtypes)


class _Plan(NamedTuple):
    """What follows from the dtypes, shapes, flags and strides of A, B and C.

    call: the struct of the C function, at alpha = 1 and beta = 0; shape, result: those of C.
    """

    function: Callable[..., int]
    call: Any
    a_lies: int
    b_lies: int
    c_lies: int
    shape: tuple[int, int]
    result: np.dtype[Any]
    dtype: str


def bind(library: Any) -> Callable[..., Matrix]:
    """The function that calls a loaded library (`library.ffi`, `library.lib`, `library.dtypes`).

    A product of 16 cubed takes less time than one look at `array.ctypes`. So what dtypes, shapes and flags decide is
    worked out once and kept, all but the addresses goes over in one struct, and an address is cffi's `from_buffer`.
    """
    ffi = library.ffi
    from_buffer = _cffi_backend.FFI().from_buffer  # without the Python function that cffi.FFI has around it
    ndarray, empty, one, zero, most = np.ndarray, np.empty, 1.0, 0.0, LARGEST[32]
    by_name = {name: d for d in library.dtypes for name in _KINDS[d].arrays}
    plans: dict[Any, _Plan] = {}

    def planned(key: Any, a: Any, b: Any, c: Any, transpose_a: bool, transpose_b: bool) -> tuple[Matrix, Matrix, _Plan]:
        """A and B as matrices, and the plan, which is kept where they were."""
        x, y = _matrix("a", a), _matrix("b", b)
        if x.dtype.name not in by_name:
            raise TypeError(f"a is {x.dtype}, this library holds {', '.join(sorted(by_name))}")
        if y.dtype != x.dtype:
            raise TypeError(f"a is {x.dtype}, b is {y.dtype}: both must be of one dtype")
        m, k = x.shape[::-1] if transpose_a else x.shape
        inner, n = y.shape[::-1] if transpose_b else y.shape
        if k != inner:
            raise ValueError(f"op(a) is {m} x {k} and op(b) is {inner} x {n}: {k} and {inner} must agree")
        dtype = by_name[x.dtype.name]
        result = np.dtype(_KINDS[dtype].result)
        if c is not None:
            if isinstance(c, ndarray) and c.dtype != result:
                raise TypeError(f"c is {c.dtype}, of {x.dtype} it must be {result}")
            form = "an array that does not overlap itself,"
            apart = not overlaps_itself(c.shape, c.strides, c.itemsize) if isinstance(c, ndarray) else False
            require_output("c", c, ((m, n), result), lambda _: apart, form)
        a_lies, a_by_row, lda = _lying(x)
        b_lies, b_by_row, ldb = _lying(y)
        c_lies, c_by_row, ldc = (_BY_ROW, True, max(n, 1)) if c is None else _lying(c)
        copied = _COPY in (a_lies, b_lies, c_lies)
        if copied and c is not None:
            require_apart("c", c, {"a": x, "b": y})  # the C function looks for it, but does not see what is copied
        call = ffi.new(f"struct tensorop_gemm_{dtype}_call *")
        call.layout = _ROW_MAJOR if c_by_row else _COLUMN_MAJOR
        call.transa = _TRANSPOSED if transpose_a == (a_by_row == c_by_row) else _PLAIN
        call.transb = _TRANSPOSED if transpose_b == (b_by_row == c_by_row) else _PLAIN
        call.alpha = 1
        call.m, call.n, call.k, call.lda, call.ldb, call.ldc = m, n, k, lda, ldb, ldc
        function = getattr(library.lib, f"tensorop_gemm_{dtype}_call")
        plan = _Plan(function, call, a_lies, b_lies, c_lies, (m, n), result, dtype)
        if key is not None and x is a and y is b and not copied:
            if len(plans) >= _MOST_PLANS:
                plans.clear()
            plans[key if _GAPS in (a_lies, b_lies, c_lies) else key[0]] = plan
        return x, y, plan

    def gemm(
        a: Matrix,
        b: Matrix,
        c: Matrix | None = None,
        *,
        alpha: float = one,
        beta: float = zero,
        transpose_a: bool = False,
        transpose_b: bool = False,
        bias: Matrix | None = None,
        residual: Matrix | None = None,
        scale_rows: Matrix | None = None,
        scale_columns: Matrix | None = None,
        activation: str = "none",
    ) -> Matrix:
        """C = alpha * op(A) @ op(B) + beta * C; returns C.

        With an epilogue, of a library made with `--epilogue`, C = activation(scale_rows[:, None] * scale_columns
        * (alpha * op(A) @ op(B) + beta * C) + bias + residual), for all dtypes but int8.

        a: (m, k), or (k, m) with transpose_a
        b: (k, n), or (n, k) with transpose_b
        c: (m, n), written in place; None for a new array, and then beta must be 0
        alpha, beta: numbers, rounded to the type of `c`; at beta = 0, `c` is not read. For int8 they are integers
        transpose_a, transpose_b: whether `a` or `b` is transposed
        bias, scale_columns: (n); scale_rows: (m); residual: (m, n), which may be `c`; all of the dtype of `c`
        activation: `none`, `relu`, `gelu` (its tanh form) or `silu`

        `a` and `b` have one dtype that the library holds: float32, float64, int8, float16 or bfloat16 (of ml_dtypes, or
        its bits as uint16). `c` has the same dtype, but int32 for int8 and float32 for the 16-bit types. int32 results
        are modulo 2**32.

        An array with contiguous rows or columns is used in place, with any leading dimension. Other arrays are copied.

        Raises TypeError for a wrong dtype, and for alpha, beta or a transpose of a wrong type. Raises ValueError for
        shapes that do not fit, and for a `c` that is read-only or overlaps `a`, `b` or itself. Raises ValueError too
        for an alpha or beta that must be an integer, or that is too large for the type of `c`. Raises RuntimeError for
        an epilogue that the library lacks.
        """
        step = 0 if activation == "none" else require_activation(activation)
        plain = step == 0 and bias is residual is scale_rows is scale_columns is None
        if alpha is not one or beta is not zero:
            alpha = alpha if type(alpha) is float else real("alpha", alpha, error=TypeError)
            beta = beta if type(beta) is float else real("beta", beta, error=TypeError)
        if transpose_a is not False or transpose_b is not False:
            transpose_a = flag("transpose_a", transpose_a, TypeError)
            transpose_b = flag("transpose_b", transpose_b, TypeError)
        key: Any = None
        plan = None
        if type(a) is type(b) is ndarray and (c is None or type(c) is ndarray):
            if c is None:
                key = (a.shape, a.flags.num, a.dtype, b.shape, b.flags.num, b.dtype, transpose_a, transpose_b)
            else:
                key = (
                    a.shape, a.flags.num, a.dtype, b.shape, b.flags.num, b.dtype, transpose_a, transpose_b,
                    c.shape, c.flags.num, c.dtype,
                )  # fmt: skip
            plan = plans.get(key)
            if plan is None:  # an array with gaps is known by its strides too
                key = key, a.strides, b.strides, None if c is None else c.strides
                plan = plans.get(key)
        if plan is None:
            a, b, plan = planned(key, a, b, c, transpose_a, transpose_b)
        function, call, a_lies, b_lies, c_lies, shape, result, dtype = plan
        if c is None:
            if beta != 0:
                raise ValueError("beta is not 0, so c must be given")
            c = empty(shape, result)
        out = np.ascontiguousarray(c) if c_lies == _COPY else c
        if alpha != 1 or beta != 0:
            call = ffi.new(ffi.typeof(call), call[0])
            if result.kind == "i":
                call.alpha, call.beta = _integer("alpha", alpha), _integer("beta", beta)
            else:
                if not (-most <= alpha <= most and -most <= beta <= most):
                    bits = 8 * result.itemsize
                    alpha, beta = real("alpha", alpha, bits), real("beta", beta, bits)
                call.alpha, call.beta = alpha, beta
        also: tuple[Any, ...] = ()
        if not plain:
            given = {"bias": bias, "residual": residual, "scale_rows": scale_rows, "scale_columns": scale_columns}
            into = Result(out, dtype, call.layout == _ROW_MAJOR, beta == 0)
            function, record, _kept = finishing(library, into, given, step)
            also = (record,)
        status = function(
            call,
            *also,
            from_buffer(a if a_lies == _BY_ROW else a.T if a_lies == _BY_COLUMN else _first(a, a_lies)),
            from_buffer(b if b_lies == _BY_ROW else b.T if b_lies == _BY_COLUMN else _first(b, b_lies)),
            from_buffer(out if c_lies == _BY_ROW else out.T if c_lies == _BY_COLUMN else _first(out, c_lies)),
        )
        if status == _OVERLAP:
            others = "a or b" if plain else "a, b or an array of the epilogue"
            raise ValueError(f"c overlaps {others}: give an array with memory of its own")
        if status != 0:
            raise RuntimeError(f"gemm returned status {status}; include/tensorop/gemm.h says what it means")
        if out is not c:
            c[...] = out
        return c

    def torch() -> Any:
        op = torch_module.load(Path(__file__).with_name("torch_op.py"))
        return op.Gemm(library, gemm, "cpu")

    gemm.torch = torch  # type: ignore[attr-defined]
    return gemm


def _matrix(name: str, value: Any) -> Matrix:
    array = np.asarray(value)
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimensions, a matrix has 2")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array


def _integer(name: str, value: float) -> int:
    if not -(2**31) <= value < 2**31 or value != int(value):
        raise ValueError(f"{name} is {value}, beside integers it must be one, of 32 bits")
    return int(value)


def _first(array: Matrix, lies: int) -> Matrix:
    """What `from_buffer` takes, which wants an array without gaps, in place of one that has some or must be copied."""
    return np.ascontiguousarray(array) if lies == _COPY else array[:1, :1]


def _lying(array: Matrix) -> tuple[int, bool, int]:
    """(how it lies, rows are contiguous, leading dimension in elements) of the array, or of its copy."""
    rows, columns = array.shape
    if array.flags.aligned and array.flags.c_contiguous:
        return _BY_ROW, True, max(columns, 1)
    if array.flags.aligned and array.flags.f_contiguous:
        return _BY_COLUMN, False, max(rows, 1)
    size = array.itemsize
    whole = array.flags.aligned and all(step % size == 0 for step in array.strides)
    found = leading(array.shape, [step // size for step in array.strides]) if whole else None
    if found is None:
        return _COPY, True, max(columns, 1)
    by_row, ld = found
    return _GAPS, by_row, max(ld, columns if by_row else rows, 1)
