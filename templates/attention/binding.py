"""attention from Python: what tensorop.load(DIR).attention does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.package import torch_module
from tensorop.package.arguments import flag, real, require_apart, require_output, whole

_KINDS = {  # dtype -> NumPy dtypes, C types of operands and of log-sum-exps, the function
    "f32": (("float32",), "float", "float", "tensorop_sattention"),
    "bf16": (("bfloat16", "uint16"), "uint16_t", "float", "tensorop_attention_bf16"),
    "f16": (("float16",), "uint16_t", "float", "tensorop_attention_f16"),
}
_LAYOUTS = ("bshd", "bhsd")
_ALIGN = {"end": 0, "start": 1}
_V_DIM = 2  # in `align`: v_dim is set
_MOST_KEYS, _MOST_DIM = (1 << 31) - 1, 512  # more the library refuses
Numbers = NDArray[Any]


def declarations(dtypes: tuple[str, ...]) -> str:
    """The C declarations `bind` uses, for cffi."""
    description = Path(__file__).with_name("description.h").read_text(encoding="utf-8")
    texts = [description, "const char *tensorop_attention_message(int status);"]
    for _, held, of_sums, function in (_KINDS[dtype] for dtype in dtypes):
        arrays = f"const {held} *q, const {held} *k, const {held} *v, {held} *o, {of_sums} *lse"
        texts.append(f"int {function}(const struct tensorop_attention *, {arrays}, void *, size_t);")
    return "\n".join(texts)


def bind(library: Any) -> Callable[..., Numbers | tuple[Numbers, Numbers]]:
    """The function that calls a loaded library."""
    by_name = {name: _KINDS[dtype] for dtype in library.dtypes for name in _KINDS[dtype][0]}
    ffi, lib = library.ffi, library.lib

    def attention(
        q: Numbers,
        k: Numbers,
        v: Numbers,
        *,
        causal: bool = False,
        window: tuple[int, int] | None = None,
        align: str = "end",
        scale: float | None = None,
        layout: str = "bshd",
        starts: tuple[Any, Any] | None = None,
        lse: bool = False,
        out: Numbers | None = None,
    ) -> Numbers | tuple[Numbers, Numbers]:
        """softmax(scale * q k^T + mask) v; returns it, with `lse` also the log-sum-exps (batch, heads, queries).

        q: (batch, queries, heads, d) in layout `bshd`, (batch, heads, queries, d) in layout `bhsd`
        k, v: the same with keys for queries; their number of heads divides that of q. Heads of v, and so of the output,
        may have another number of numbers, d
        causal: whether a query sees no key behind its own; as window=(-1, 0)
        window: keys that a query sees before and behind its own, both inclusive; -1: all
        align: `end`: the last query's own key is the last one; `start`: the first query's is the first one
        scale: a number that is finite in float32; None for 1 / sqrt(d)
        starts: of a ragged batch, (batch + 1) rows where its sequences begin, of q and of k and v; then q is
        (rows, heads, d) or (heads, rows, d). Rows outside every sequence are 0, their log-sum-exps -infinity; in a
        given `out` they stay as they are
        out: a writable array for the output that overlaps no other array, its last axis contiguous; None for a new one

        Arrays may be views with any distances of rows, heads and batches. Raises TypeError for a wrong dtype, and
        ValueError for sizes or arrays that do not fit.

        `attention.torch()` is a function for tensors of PyTorch, with the arguments of torch's
        scaled_dot_product_attention. It raises MissingTool without PyTorch.
        """
        if not isinstance(layout, str) or layout not in _LAYOUTS:
            raise ValueError(f"layout is 'bshd' or 'bhsd', not {layout!r:.80}")
        if not isinstance(align, str) or align not in _ALIGN:
            raise ValueError(f"align is 'end' or 'start', not {align!r:.80}")
        q, k, v = (_dense_last(np.asarray(one)) for one in (q, k, v))
        kind = by_name.get(q.dtype.name)
        if kind is None or k.dtype != q.dtype or v.dtype != q.dtype:
            held = f"this library holds {', '.join(sorted(by_name))}, all alike"
            raise TypeError(f"q is {q.dtype}, k {k.dtype}, v {v.dtype}; {held}")
        if q.ndim != (axes := 4 if starts is None else 3) or k.ndim != axes or v.shape[:-1] != k.shape[:-1]:
            raise ValueError(
                f"q, k and v have {axes} dimensions each, k and v alike but for d; got {q.shape}, {k.shape}, {v.shape}"
            )
        offsets = None if starts is None else [_offsets(one) for one in starts]
        if offsets is not None and len(offsets[0]) != len(offsets[1]):
            raise ValueError(f"starts are of {len(offsets[0]) - 1} and {len(offsets[1]) - 1} sequences")
        shape = (*q.shape[:-1], v.shape[-1])
        result = np.empty(shape, q.dtype) if out is None else out
        if out is not None:
            form = "an aligned array, its last axis contiguous,"
            require_output("out", out, (shape, q.dtype), lambda one: _dense_last(one) is one, form)
            require_apart("out", out, {"q": q, "k": k, "v": v})
        (batch, queries, heads), (of_k, keys, key_heads) = (_sizes(one, layout, offsets) for one in (q, k))
        if of_k != batch or k.shape[-1] != q.shape[-1]:
            raise ValueError(f"q and k differ in batch or d: {q.shape}, {k.shape}")
        left, right = _window(causal, window)
        steps = [step for one in (q, k, v, result) for step in _steps(one, layout)]
        usual = 1.0 / np.sqrt(q.shape[-1]) if q.shape[-1] else 1.0
        scale = usual if scale is None else real("scale", scale, 32)
        held = [ffi.NULL, ffi.NULL] if offsets is None else [ffi.from_buffer("int32_t[]", one) for one in offsets]
        z = ffi.new(
            "struct tensorop_attention *",
            [batch, heads, key_heads, queries, keys, q.shape[-1], *steps, scale, left, right, _ALIGN[align] | _V_DIM,
             *held, v.shape[-1]],
        )  # fmt: skip
        wanted = flag("lse", lse)
        sums = np.empty((batch if offsets is None else 1, heads, queries), np.float32) if wanted else None
        _, stored, of_sums, function = kind
        at = [ffi.cast(f"{stored} *", one.ctypes.data) for one in (q, k, v, result)]
        at.append(ffi.NULL if sums is None else ffi.cast(f"{of_sums} *", sums.ctypes.data))
        status = getattr(lib, function)(z, *at, ffi.NULL, 0)
        if status:
            text = ffi.string(lib.tensorop_attention_message(status)).decode()
            raise ValueError(f"{text} (q {q.shape}, k {k.shape})")
        if offsets is not None:
            for rows in (slice(0, offsets[0][0]), slice(offsets[0][-1], None)):  # outside every sequence: not written
                if out is None:
                    result[rows if layout == "bshd" else np.s_[:, rows]] = 0
                if sums is not None:
                    sums[..., rows] = -np.inf
        return result if sums is None else (result, sums if offsets is None else sums[0])

    def torch() -> Any:
        op = torch_module.load(Path(__file__).with_name("torch_op.py"))
        return op.ScaledDotProductAttention(library, attention, "cpu", _MOST_DIM)

    attention.torch = torch  # type: ignore[attr-defined]
    return attention


def _dense_last(array: Numbers) -> Numbers:
    """The array, or a copy if its last axis is not contiguous, its bytes are swapped, or it is not aligned."""
    native = array.dtype.newbyteorder("=")
    size = array.itemsize
    fits = (
        array.flags.aligned and array.dtype == native and all(step >= 0 and step % size == 0 for step in array.strides)
    )
    if fits and (array.shape[-1:] in ((), (1,)) or array.strides[-1] == size):
        return array
    return np.require(array, native, "CA")


def _offsets(given: Any) -> NDArray[np.int32]:
    found = np.ascontiguousarray(given)
    most = 1 << 31
    if found.ndim != 1 or not found.size or found.dtype.kind not in "iu" or found.max() >= most or found.min() < -most:
        raise ValueError(f"starts are one-dimensional integers of 32 bits, one more than sequences; got {given!r:.80}")
    return found.astype(np.int32)


def _sizes(array: Numbers, layout: str, offsets: list[NDArray[np.int32]] | None) -> tuple[int, int, int]:
    """Batch, rows, heads."""
    batch = array.shape[0] if offsets is None else len(offsets[0]) - 1
    rows, heads = array.shape[-3:-1] if layout == "bshd" else array.shape[-2:-4:-1]
    return batch, rows, heads


def _steps(array: Numbers, layout: str) -> tuple[int, int, int]:
    """Distances of batches, rows and heads, in elements; 0 for an axis of one."""
    steps = [0 if size < 2 else step // array.itemsize for size, step in zip(array.shape, array.strides, strict=True)]
    rows, heads = steps[-3:-1] if layout == "bshd" else steps[-2:-4:-1]
    return steps[0] if len(steps) == 4 else 0, rows, heads


def _window(causal: Any, window: Any) -> tuple[int, int]:
    causal = flag("causal", causal)
    try:
        left, right = (-1, -1) if window is None else (whole("window", one) for one in window)
    except (TypeError, ValueError):
        raise ValueError(f"window is two integers, keys before and behind; got {window!r:.80}") from None
    if min(left, right) < -1:
        raise ValueError(f"left and right must be -1 or more; got {left}, {right}")
    left, right = (min(one, _MOST_KEYS) for one in (left, right))  # a wider window has no other keys
    return left, min(right, 0) if causal and right >= 0 else 0 if causal else right
