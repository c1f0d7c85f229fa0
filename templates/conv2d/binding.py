"""conv2d from Python: what tensorop.load(DIR).conv2d does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_KINDS = {"f32": ("float32", "float", "s"), "f64": ("float64", "double", "d")}
_NAMES = (
    "n c h w k r s stride_h stride_w pad_top pad_bottom pad_left pad_right dilation_h dilation_w groups layout relu"
)


def declarations(dtypes: tuple[str, ...]) -> str:
    """The C declarations `bind` uses, for cffi."""
    *sizes, layout, relu = _NAMES.split()
    texts = [f"struct tensorop_conv2d {{ int64_t {', '.join(sizes)}; int {layout}, {relu}; }};"]
    texts += ["const char *tensorop_conv2d_message(int status);"]
    texts += ["int tensorop_conv2d_output(const struct tensorop_conv2d *, int64_t *, int64_t *);"]
    for _, real, letter in (_KINDS[dtype] for dtype in dtypes):
        arrays = f"const {real} *x, const {real} *w, const {real} *bias, {real} *y"
        texts.append(f"int tensorop_{letter}conv2d(const struct tensorop_conv2d *, {arrays}, void *, size_t);")
    return "\n".join(texts)


def _pair(value: int | tuple[int, int], what: str) -> tuple[int, int]:
    pair = (value, value) if isinstance(value, int | np.integer) else tuple(value)
    if len(pair) != 2:
        raise ValueError(f"{what} is a number, or one down and one across; got {value!r}")
    return int(pair[0]), int(pair[1])


def _zeros(value: int | tuple[int, ...]) -> tuple[int, int, int, int]:
    given = (value,) * 4 if isinstance(value, int | np.integer) else tuple(map(int, value))
    if len(given) == 2:
        given = (given[0], given[0], given[1], given[1])
    if len(given) != 4:
        raise ValueError(f"padding is a number, (down, across) or (top, bottom, left, right); got {value!r}")
    return given  # type: ignore[return-value]


def bind(library: Any) -> Callable[..., NDArray[Any]]:
    """The function that calls a loaded library."""
    by_name = {_KINDS[dtype][0]: _KINDS[dtype] for dtype in library.dtypes}
    ffi, lib = library.ffi, library.lib

    def conv2d(
        x: NDArray[Any],
        w: NDArray[Any],
        bias: NDArray[Any] | None = None,
        *,
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        layout: str = "nchw",
        relu: bool = False,
        out: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """y = x * w (+ bias), then ReLU if asked for, all of one dtype that the library holds.

        layout: `nchw`, with w as (k, c / groups, r, s), or `nhwc`, with w as (k, r, s, c / groups); y lies as x.
        stride, dilation: a number, or (down, across); padding: a number, (down, across) or (top, bottom, left, right)
        out: a C-contiguous array for y that overlaps none of the others

        Raises TypeError for another dtype, ValueError for what cannot be, with the library's words.
        """
        x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
        kind = by_name.get(x.dtype.name)
        if kind is None or w.dtype != x.dtype or (bias is not None and np.asarray(bias).dtype != x.dtype):
            raise TypeError(f"x is {x.dtype}, w {w.dtype}; this library holds {', '.join(sorted(by_name))}, all alike")
        if layout not in ("nchw", "nhwc"):
            raise ValueError(f"layout is 'nchw' or 'nhwc', not {layout!r}")
        if x.ndim != 4 or w.ndim != 4:
            raise ValueError(f"x and w have four dimensions each, got {x.shape} and {w.shape}")
        nhwc = layout == "nhwc"
        (n, h, width, c), (k, r, s, of) = (
            (x.shape, w.shape)
            if nhwc
            else ((*x.shape[:1], *x.shape[2:], x.shape[1]), (*w.shape[:1], *w.shape[2:], w.shape[1]))
        )
        if groups > 0 and of * groups != c:
            raise ValueError(f"x has {c} channels, w {of} in each of {groups} groups")
        sizes = (n, c, h, width, k, r, s, *_pair(stride, "stride"), *_zeros(padding), *_pair(dilation, "dilation"))
        conv = ffi.new("struct tensorop_conv2d *", [*sizes, groups, int(nhwc), int(relu)])
        high, wide = ffi.new("int64_t *"), ffi.new("int64_t *")
        _check(lib.tensorop_conv2d_output(conv, high, wide), x, w)
        shape = (n, high[0], wide[0], k) if nhwc else (n, k, high[0], wide[0])
        y = np.empty(shape, x.dtype) if out is None else out
        if y.shape != shape or y.dtype != x.dtype or not y.flags.c_contiguous:
            raise ValueError(f"out is a C-contiguous {x.dtype} array of shape {shape}, got {y.dtype} {y.shape}")
        arrays = [x, w, None if bias is None else np.ascontiguousarray(bias), y]
        if arrays[2] is not None and arrays[2].shape != (k,):
            raise ValueError(f"bias has the shape ({k},), got {arrays[2].shape}")
        if out is not None and any(a is not None and np.may_share_memory(a, out) for a in arrays[:3]):
            raise ValueError("out overlaps another operand")
        _, real, letter = kind
        at = [ffi.NULL if a is None else ffi.cast(f"{real} *", a.ctypes.data) for a in arrays]
        _check(getattr(lib, f"tensorop_{letter}conv2d")(conv, *at, ffi.NULL, 0), x, w)
        return y

    def _check(status: int, x: NDArray[Any], w: NDArray[Any]) -> None:
        if status:
            told = ffi.string(lib.tensorop_conv2d_message(status)).decode()
            raise ValueError(f"{told} (x {x.shape}, w {w.shape})")

    return conv2d
