"""attention on a GPU from Python: what tensorop.load(DIR).attention does of a product for a device."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tensorop.package import arguments, device_binding
from tensorop.package import device_arrays as arrays
from tensorop.package.device_arrays import Array
from tensorop.package.device_binding import DeviceCall, DeviceCalls, DevicePlan, flag, real, refuse, span

CARD = "tensorop_attention_cuda_card"
_TYPES = {"bfloat16": 0, "uint16": 0, "float16": 1}
_DTYPES = {"bfloat16": "bf16", "uint16": "bf16", "float16": "f16"}
_MOST_DIM, _TOO_LARGE = 256, 4  # status of the header
_LAYOUTS = ("bshd", "bhsd")
_ALIGN = {"end": 0, "start": 1}
_RECORD = """
int type, align;
int64_t batch, heads, key_heads, queries, keys, dim;
int64_t q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head, o_batch, o_row, o_head;
double scale;
int64_t left, right;
uintptr_t lse;
"""


def declarations(dtypes: Sequence[str]) -> str:
    """The C declarations `bind` uses, for cffi."""
    return device_binding.declarations("attention", ("q", "k", "v", "o"), _RECORD)


def bind(library: Any) -> Callable[..., Any]:
    """The function that calls a loaded library (`library.ffi`, `library.lib`, `library.dtypes`)."""
    calls = DeviceCalls(library, "attention")
    held = {kind for kind, dtype in _DTYPES.items() if dtype in library.dtypes}

    def planned(q: Array, k: Array, v: Array, o: Array | None, layout: str) -> DevicePlan:
        """o: None for a new one. Raises TypeError and ValueError."""
        for one in (q, k, v):
            if one.dtype not in held:
                said = f"{one.name} is {one.dtype}, this library holds {', '.join(sorted(held))}: convert it"
                raise refuse(TypeError, said, arrays.UNSUPPORTED)
            if one.dtype != q.dtype:
                said = f"q is {q.dtype}, {one.name} is {one.dtype}: all must be of one dtype, convert one"
                raise refuse(TypeError, said, arrays.UNSUPPORTED)
            if len(one.shape) != 4:
                raise refuse(ValueError, f"{one.name} has {len(one.shape)} dimensions, expected 4 in order {layout}")
        if v.shape != k.shape:
            raise refuse(ValueError, f"k is {k.shape} and v is {v.shape}: they must agree")
        o = device_binding.new_result("out", q.shape, q.dtype, 2) if o is None else o
        device_binding.require_result(o, q.shape, q.dtype, q, "output")
        batch, queries, heads, dim = _sizes(q, layout)
        of_k, keys, key_heads, _ = _sizes(k, layout)
        if of_k != batch or k.shape[-1] != dim:
            raise refuse(ValueError, f"q is {q.shape} and k is {k.shape}: batch and numbers of a head must agree")
        if dim > _MOST_DIM:
            said = f"q has {dim} numbers a head, this library serves up to {_MOST_DIM}: use another library"
            raise refuse(ValueError, said, _TOO_LARGE)
        if not key_heads or heads % key_heads:
            raise refuse(ValueError, f"q has {heads} heads and k has {key_heads}: those of k must divide those of q")
        fields = {
            "type": _TYPES[q.dtype], "batch": batch, "heads": heads, "key_heads": key_heads, "queries": queries,
            "keys": keys, "dim": dim, "left": -1, "right": -1,
        }  # fmt: skip
        for letter, one in (("q", q), ("k", k), ("v", v), ("o", o)):
            fields |= {f"{letter}_{name}": step for name, step in zip(_AXES, _steps(one, layout), strict=True)}
        problem = calls.ffi.new("struct tensorop_attention_problem *", fields)
        return DevicePlan(problem, q.shape, (span(q), span(k), span(v), span(o)))

    def attention(
        q: Any,
        k: Any,
        v: Any,
        *,
        causal: bool = False,
        window: tuple[int, int] | None = None,
        align: str = "end",
        scale: float | None = None,
        layout: str = "bshd",
        lse: Any = None,
        out: Any = None,
        stream: Any = None,
        workspace: Any = None,
    ) -> Any:
        """softmax(scale * q k^T + mask) v on the GPU that holds the arrays. The call is enqueued; it returns O.

        q: (batch, queries, heads, d) in layout `bshd`, (batch, heads, queries, d) in layout `bhsd`
        k, v: the same with keys for queries; their number of heads divides that of q
        causal: whether a query sees no key behind its own; as window=(-1, 0)
        window: keys that a query sees before and behind its own, both inclusive; -1: all
        align: `end`: the last query's own key is the last one; `start`: the first query's is the first one
        scale: a number that is finite in float32; None for 1 / sqrt(d)
        lse: a float32 array (batch, heads, queries), which gets the logarithms of the sums; None: they are not stored
        out: written in place; None for a new array of the library of `q` (torch, cupy or jax only)
        stream: of torch or cupy, or a number; by default the one that the library of `q` uses now
        workspace: an array of bytes on the device that nothing else uses during the call; by default one is allocated

        Arrays are any with `__dlpack__` or `__cuda_array_interface__` (torch, cupy, jax, numba), bfloat16 (or its bits
        as uint16) or float16. They are never copied: the last axis is contiguous, the others have any strides. A call
        can be captured in a CUDA graph. Gradients are not computed.

        Raises TypeError, ValueError or RuntimeError with the header's status as `status`; nothing is enqueued then.
        """
        if not isinstance(layout, str) or layout not in _LAYOUTS:
            raise refuse(ValueError, f"layout is {layout!r:.80}, expected 'bshd' or 'bhsd'")
        if not isinstance(align, str) or align not in _ALIGN:
            raise refuse(ValueError, f"align is {align!r:.80}, expected 'end' or 'start'")
        left, right = _window(flag("causal", causal), window)
        call = DeviceCall(calls, {"q": q, "k": k, "v": v}, ("out", out), stream)
        plan = calls.planned((call.key, layout), lambda: planned(*call.inputs, call.result, layout))
        problem = calls.ffi.new("struct tensorop_attention_problem *", plan.problem[0])
        problem.scale = real("scale", scale) if scale is not None else 1 / math.sqrt(max(problem.dim, 1))
        problem.left, problem.right, problem.align = left, right, _ALIGN[align]
        if lse is not None:
            sums = calls.protocols.read("lse", lse, call.stream, False)
            shape = problem.batch, problem.heads, problem.queries
            device_binding.require_result(sums, shape, "float32", call.inputs[0], "log-sum-exp")
            if sums.strides != arrays.dense(shape):
                raise refuse(ValueError, f"lse has strides {sums.strides}: give a dense array")
            if sums.behind is not None:
                calls.protocols.wait(call.stream, sums.behind)
            problem.lse = sums.address
        return call.run(plan, problem, (layout, left, right), "", workspace)

    return attention


_AXES = ("batch", "row", "head")


def _sizes(of: Array, layout: str) -> tuple[int, int, int, int]:
    """Batch, rows, heads, numbers of a head."""
    batch, first, second, dim = of.shape
    return (batch, first, second, dim) if layout == "bshd" else (batch, second, first, dim)


def _steps(of: Array, layout: str) -> tuple[int, int, int]:
    """Distances of batches, rows and heads. Raises ValueError for those that the library does not take."""
    steps = tuple(0 if size < 2 else step for size, step in zip(of.shape, of.strides, strict=True))
    if steps[3] not in (0, 1) or min(steps) < 0:
        raise refuse(ValueError, f"{of.name} has strides {of.strides}: give an array whose last axis is contiguous")
    batch, first, second = steps[:3]
    return (batch, first, second) if layout == "bshd" else (batch, second, first)


def _window(causal: bool, window: Any) -> tuple[int, int]:
    try:
        left, right = (-1, -1) if window is None else (arguments.whole("window", one) for one in window)
    except (TypeError, ValueError):
        what = f"window is {window!r:.80}, expected two integers: keys before and behind"
        raise refuse(ValueError, what) from None
    if min(left, right) < -1:
        raise refuse(ValueError, f"window is {left}, {right}: each must be -1 or more")
    left, right = (min(one, (1 << 62) - 1) for one in (left, right))
    return left, 0 if causal else right
