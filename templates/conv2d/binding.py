"""conv2d from Python: what tensorop.load(DIR).conv2d does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.package.arguments import dense, flag, require_apart, require_output, whole

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


def _listed(value: Any, what: str, form: str, lengths: tuple[int, ...]) -> list[int]:
    """One whole number, or as many as `lengths` allow."""
    if isinstance(value, str | bytes) or not (isinstance(value, Sequence) or np.ndim(value) == 1):
        return [whole(what, value)]
    given = list(value)
    if len(given) not in lengths:
        raise ValueError(f"{what} is {form}; got {value!r:.80}")
    return [whole(what, one) for one in given]


def _pair(value: Any, what: str) -> tuple[int, int]:
    down, *across = _listed(value, what, "a number, or one down and one across", (2,))
    return down, across[0] if across else down


def _zeros(
    value: Any, filters: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Above, below, on the left and on the right. `same` gives y the size of x; of an odd number of zeros the one more
    is below and on the right, as in PyTorch."""
    if isinstance(value, str) and value == "valid":
        return 0, 0, 0, 0
    if isinstance(value, str) and value == "same":
        if stride != (1, 1):
            raise ValueError(f"padding is 'same', which needs stride 1; got {stride}")
        down, across = (apart * (size - 1) for apart, size in zip(dilation, filters, strict=True))
        return down // 2, down - down // 2, across // 2, across - across // 2
    form = "a number, (down, across), (top, bottom, left, right), 'same' or 'valid'"
    if isinstance(value, str):
        raise ValueError(f"padding is {form}; got {value!r:.80}")
    given = _listed(value, "padding", form, (2, 4))
    if len(given) == 1:
        given *= 4
    elif len(given) == 2:
        given = [given[0], given[0], given[1], given[1]]
    top, bottom, left, right = given
    return top, bottom, left, right


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
        padding: int | tuple[int, ...] | str = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        layout: str = "nchw",
        relu: bool = False,
        out: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """y = x * w (+ bias), then ReLU if `relu`; returns y. All arrays have one dtype that the library holds.

        x: images, in the layout
        w: filters; (k, c / groups, r, s) in layout `nchw`, (k, r, s, c / groups) in layout `nhwc`
        bias: (k,), or None
        stride, dilation: a number, or (down, across)
        padding: a number, (down, across), (top, bottom, left, right), "valid" for none, or "same" for a y of the size
        of x, which needs stride 1
        groups: number of groups that channels and filters are split into
        layout: `nchw` or `nhwc`, of x and y
        relu: whether negative results become 0
        out: an aligned, C-contiguous array for y that is writable and overlaps no other array; None for a new one

        Raises TypeError for a wrong dtype, and ValueError for sizes or arrays that do not fit.
        """
        x, w, b = dense(x), dense(w), None if bias is None else dense(bias)
        kind = by_name.get(x.dtype.name)
        if kind is None or w.dtype != x.dtype or (b is not None and b.dtype != x.dtype):
            said = f"x is {x.dtype}, w {w.dtype}" + ("" if b is None else f", bias {b.dtype}")
            raise TypeError(f"{said}; this library holds {', '.join(sorted(by_name))}, all alike")
        if not isinstance(layout, str) or layout not in ("nchw", "nhwc"):
            raise ValueError(f"layout is 'nchw' or 'nhwc', not {layout!r:.80}")
        rectified = flag("relu", relu)
        if x.ndim != 4 or w.ndim != 4:
            raise ValueError(f"x and w have four dimensions each, got {x.shape} and {w.shape}")
        nhwc = layout == "nhwc"
        (n, h, width, c), (k, r, s, of) = (
            (x.shape, w.shape)
            if nhwc
            else ((*x.shape[:1], *x.shape[2:], x.shape[1]), (*w.shape[:1], *w.shape[2:], w.shape[1]))
        )
        groups = whole("groups", groups)
        if groups > 0 and of * groups != c:
            raise ValueError(f"x has {c} channels, w {of} in each of {groups} groups")
        steps, apart = _pair(stride, "stride"), _pair(dilation, "dilation")
        zeros = _zeros(padding, (r, s), steps, apart)
        sizes = (n, c, h, width, k, r, s, *steps, *zeros, *apart, groups)
        conv = ffi.new("struct tensorop_conv2d *", [*sizes, int(nhwc), int(rectified)])
        high, wide = ffi.new("int64_t *"), ffi.new("int64_t *")
        _check(lib.tensorop_conv2d_output(conv, high, wide), x, w)
        shape = (n, high[0], wide[0], k) if nhwc else (n, k, high[0], wide[0])
        y = np.empty(shape, x.dtype) if out is None else out
        require_output("out", y, (shape, x.dtype), lambda one: dense(one) is one, "an aligned, C-contiguous array")
        if b is not None and b.shape != (k,):
            raise ValueError(f"bias has the shape ({k},), got {b.shape}")
        if out is not None:
            require_apart("out", out, {"x": x, "w": w, "bias": b})
        _, real, letter = kind
        at = [ffi.NULL if a is None else ffi.cast(f"{real} *", a.ctypes.data) for a in (x, w, b, y)]
        _check(getattr(lib, f"tensorop_{letter}conv2d")(conv, *at, ffi.NULL, 0), x, w)
        return y

    def _check(status: int, x: NDArray[Any], w: NDArray[Any]) -> None:
        if status:
            told = ffi.string(lib.tensorop_conv2d_message(status)).decode()
            raise ValueError(f"{told} (x {x.shape}, w {w.shape})")

    return conv2d
