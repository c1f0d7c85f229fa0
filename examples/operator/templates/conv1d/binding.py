"""conv1d from Python: what tensorop.load(DIR).conv1d does."""

import numpy as np

_KINDS = {"f32": ("float32", "float"), "f64": ("float64", "double")}


def declarations(dtypes):
    """The C declarations `bind` uses, for cffi."""
    sizes = "int64_t b, int64_t c, int64_t h, int64_t t, int64_t u, int64_t p"
    texts = (
        f"int tensorop_conv1d_{name}({sizes}, const {real} *x, const {real} *w, {real} *y);"
        for name, (_, real) in ((dtype, _KINDS[dtype]) for dtype in dtypes)
    )
    return "\n".join(texts)


def bind(library):
    """The function that calls a loaded library."""
    by_name = {_KINDS[dtype][0]: dtype for dtype in library.dtypes}

    def conv1d(x, w, *, stride=1, padding=0):
        """y of shape (b, c, outputs) from x (b, c, h) and w (c, t), of one dtype that the library holds.

        Raises TypeError for another dtype, ValueError for shapes that do not fit.
        """
        x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
        if x.dtype.name not in by_name or w.dtype != x.dtype:
            raise TypeError(f"x is {x.dtype}, w {w.dtype}; this library holds {', '.join(sorted(by_name))}")
        (b, c, h), (channels, t) = x.shape, w.shape
        if channels != c:
            raise ValueError(f"x has {c} channels, w {channels}")
        y = np.empty((b, c, max(0, (h + 2 * padding - t) // max(stride, 1) + 1)), x.dtype)
        dtype = by_name[x.dtype.name]
        real = _KINDS[dtype][1]
        at = [library.ffi.cast(f"{real} *", array.ctypes.data) for array in (x, w, y)]
        fault = getattr(library.lib, f"tensorop_conv1d_{dtype}")(b, c, h, t, stride, padding, *at)
        if fault:
            raise ValueError(f"argument {fault} of b, c, h, t, stride, padding cannot be: {x.shape}, {w.shape}")
        return y

    return conv1d
