"""The epilogue of a call of gemm from Python: its C record, and the arrays that it points to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensorop.package.arguments import leading

Matrix = NDArray[Any]
ACTIVATIONS = {"none": 0, "relu": 1, "gelu": 2, "silu": 3}
_RECORD = """
struct tensorop_gemm_{dtype}_epilogue {{
    int activation;
    const void *bias, *residual;
    int64_t ld_residual;
    const void *scale_rows, *scale_columns;
}};
int tensorop_gemm_{dtype}_epilogue(const struct tensorop_gemm_{dtype}_call *call,
    const struct tensorop_gemm_{dtype}_epilogue *epilogue, const void *a, const void *b, void *c);
"""
DTYPES = ("f32", "f64", "bf16", "f16")


def declaration(dtype: str) -> str:
    return _RECORD.format(dtype=dtype) if dtype in DTYPES else ""


class Result(NamedTuple):
    """C as the library writes it. by_row: its rows are contiguous; fresh: it is not read."""

    array: Matrix
    dtype: str
    by_row: bool
    fresh: bool


def require_activation(activation: Any) -> int:
    """Raises ValueError for an unknown one."""
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}; got {activation!r}")
    return ACTIVATIONS[activation]


def finishing(library: Any, of: Result, given: Mapping[str, Any], activation: int) -> tuple[Any, Any, list[Matrix]]:
    """The function of C, its record, and the arrays that must live until it returns.

    given: bias, residual, scale_rows, scale_columns, some None. Arrays are copied where they lie otherwise than C.
    Raises TypeError and ValueError by their names, RuntimeError for a library without epilogues.
    """
    name = f"tensorop_gemm_{of.dtype}_epilogue"
    function = getattr(library.lib, name, None) if of.dtype in DTYPES else None
    if function is None:
        raise RuntimeError(f"this library has no epilogues of {of.dtype}: make the library with --epilogue")
    m, n = of.array.shape
    shapes = {"bias": (n,), "residual": (m, n), "scale_rows": (m,), "scale_columns": (n,)}
    record, kept = library.ffi.new(f"struct {name} *", {"activation": activation}), []
    for key, value in given.items():
        if value is None:
            continue
        one = np.asarray(value)
        if one.shape != shapes[key]:
            wanted, got = (" x ".join(map(str, shape)) for shape in (shapes[key], one.shape))
            raise ValueError(f"{key} is {got}, it must be {wanted}")
        if one.dtype != of.array.dtype:
            raise TypeError(f"{key} is {one.dtype}, it must be {of.array.dtype}: convert it")
        one = one if one.dtype.isnative and one.flags.aligned else np.array(one, one.dtype.newbyteorder("="))
        scaled = given["scale_rows"] is not None or given["scale_columns"] is not None
        if key == "residual":
            one, record.ld_residual = _residual(one, of, in_place=of.fresh and not scaled)
        else:
            one = np.ascontiguousarray(one)
        kept.append(one)
        setattr(record, key, library.ffi.cast("void *", one.ctypes.data))
    return function, record, kept


def _residual(one: Matrix, of: Result, in_place: bool) -> tuple[Matrix, int]:
    """The residual as the library reads it, and its leading dimension. in_place: it may be C itself."""
    whole = all(step % one.itemsize == 0 for step in one.strides)
    found = leading(one.shape, [step // one.itemsize for step in one.strides]) if whole else None
    same = (one.ctypes.data, one.shape, one.strides) == (of.array.ctypes.data, of.array.shape, of.array.strides)
    length = one.shape[1] if of.by_row else one.shape[0]
    if found is None or (found[0] != of.by_row and min(one.shape) > 1) or (same and not in_place):
        return np.array(one, order="C" if of.by_row else "F"), max(length, 1)
    return one, max(found[1], length, 1)
