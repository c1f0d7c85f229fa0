"""attention on a GPU from Python: what tensorop.load(DIR).attention does of a product for a device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorop.package import arguments, device_binding, torch_module
from tensorop.package import device_arrays as arrays
from tensorop.package.device_arrays import Array
from tensorop.package.device_binding import DeviceCall, DeviceCalls, DevicePlan, flag, real, refuse, span

CARD = "tensorop_attention_cuda_card"
_TYPES = {"bfloat16": 0, "uint16": 0, "float16": 1}
_DTYPES = {"bfloat16": "bf16", "uint16": "bf16", "float16": "f16"}
_MOST_DIM, _TOO_LARGE = 256, 4  # status of the header
_LAYOUTS = ("bshd", "bhsd")
_ALIGN = {"end": 0, "start": 1}
_V_DIM = 2  # in `align`: v_dim is set
_RECORD = """
int type, align;
int64_t batch, heads, key_heads, queries, keys, dim;
int64_t q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head, o_batch, o_row, o_head;
double scale;
int64_t left, right;
uintptr_t lse, starts_q, starts_k, lengths, pages;
int64_t most_queries, most_keys, page, pages_row, v_dim;
"""


def declarations(dtypes: Sequence[str]) -> str:
    """The C declarations `bind` uses, for cffi."""
    return device_binding.declarations("attention", ("q", "k", "v", "o"), _RECORD)


def bind(library: Any) -> Callable[..., Any]:
    """The function that calls a loaded library (`library.ffi`, `library.lib`, `library.dtypes`)."""
    calls = DeviceCalls(library, "attention")
    held = {kind for kind, dtype in _DTYPES.items() if dtype in library.dtypes}

    def planned(q: Array, k: Array, v: Array, o: Array | None, layout: str, where: Mapping[str, Array]) -> DevicePlan:
        """o: None for a new one; where: the arrays of `_sequences`. Raises TypeError and ValueError."""
        for one, starts in ((q, "starts_q"), (k, "starts_k"), (v, "starts_k")):
            if one.dtype not in held:
                said = f"{one.name} is {one.dtype}, this library holds {', '.join(sorted(held))}: convert it"
                raise refuse(TypeError, said, arrays.UNSUPPORTED)
            if one.dtype != q.dtype:
                said = f"q is {q.dtype}, {one.name} is {one.dtype}: all must be of one dtype, convert one"
                raise refuse(TypeError, said, arrays.UNSUPPORTED)
            if len(one.shape) != len(order := layout[starts in where :]):
                said = f"{one.name} has {len(one.shape)} dimensions, expected {len(order)} in order {order}"
                raise refuse(ValueError, said)
        if v.shape[:-1] != k.shape[:-1]:
            raise refuse(ValueError, f"k is {k.shape} and v is {v.shape}: they must agree but for numbers of a head")
        (batch, queries, heads, dim), (of_k, keys, key_heads, _) = (_sizes(one, layout) for one in (q, k))
        sizes = {"queries": queries, "keys": keys}
        if table := where.get("pages"):
            of_k, sizes["keys"] = table.shape[0], table.shape[1] * keys
            sizes |= {"page": keys, "pages_row": table.strides[0]}
        counts = {name: one.shape[0] - (name != "lengths") for name, one in where.items() if name != "pages"}
        batch, of_k = counts.get("starts_q", batch), counts.get("starts_k", of_k)
        if of_k != batch or counts.get("lengths", batch) != batch or k.shape[-1] != dim:
            more = "".join(f", {name} is {one.shape}" for name, one in where.items())
            what = f"q is {q.shape} and k is {k.shape}{more}: batch and numbers of a head must agree"
            raise refuse(ValueError, what)
        shape = (*q.shape[:-1], v.shape[-1])
        o = device_binding.new_result("out", shape, q.dtype, 2) if o is None else o
        device_binding.require_result(o, shape, q.dtype, q, "output")
        for one in (q, v):
            if one.shape[-1] > _MOST_DIM:
                what = f"{one.name} has {one.shape[-1]} numbers a head, this library serves up to {_MOST_DIM}"
                raise refuse(ValueError, f"{what}: use another library", _TOO_LARGE)
        if not key_heads or heads % key_heads:
            raise refuse(ValueError, f"q has {heads} heads and k has {key_heads}: those of k must divide those of q")
        if table and keys not in _PAGES:
            raise refuse(ValueError, f"k has pages of {keys} keys, expected one of {', '.join(map(str, _PAGES))}")
        fields = {
            "type": _TYPES[q.dtype], "batch": batch, "heads": heads, "key_heads": key_heads, **sizes, "dim": dim,
            "v_dim": v.shape[-1], "left": -1, "right": -1,
        }  # fmt: skip
        for letter, one in (("q", q), ("k", k), ("v", v), ("o", o)):
            fields |= {f"{letter}_{name}": step for name, step in zip(_AXES, _steps(one, layout), strict=True)}
        problem = calls.ffi.new("struct tensorop_attention_problem *", fields)
        return DevicePlan(problem, shape, (span(q), span(k), span(v), span(o)))

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
        starts: tuple[Any, Any] = (None, None),
        longest: tuple[int, int] | None = None,
        lengths: Any = None,
        pages: Any = None,
        lse: Any = None,
        out: Any = None,
        stream: Any = None,
        workspace: Any = None,
    ) -> Any:
        """softmax(scale * q k^T + mask) v on the GPU that holds the arrays. The call is enqueued; it returns O.

        q: (batch, queries, heads, d) in layout `bshd`, (batch, heads, queries, d) in layout `bhsd`
        k, v: the same with keys for queries; their number of heads divides that of q. Heads of v, and so of O, may have
        another number of numbers, d; each has at most 256
        causal: whether a query sees no key behind its own; as window=(-1, 0)
        window: keys that a query sees before and behind its own, both inclusive; -1: all
        align: `end`: the last query's own key is the last one; `start`: the first query's is the first one
        scale: a number that is finite in float32; None for 1 / sqrt(d)
        starts: of a ragged batch, two int32 arrays (batch + 1): the rows where its sequences begin, of q and of k and
        v, which then are (rows, heads, d) or (heads, rows, d). One of the two may be None
        longest: queries and keys of the longest sequence, or more; None: unknown, which is slower
        lengths: an int32 array (batch): the first keys of k and v, so many, are those of the sequence
        pages: an int32 array (batch, pages of a sequence) with `lengths`: the pages that have a sequence's keys. Then k
        and v are (pages, page, heads, d) or (pages, heads, page, d); a page has 16, 32, 64, 128 or 256 keys
        lse: a float32 array (batch, heads, queries), of a ragged batch (heads, rows), which gets the logarithms of the
        sums; None: they are not stored
        out: written in place; None for a new array of the library of `q` (torch, cupy or jax only)
        stream: of torch or cupy, or a number; by default the one that the library of `q` uses now
        workspace: an array of bytes on the device that nothing else uses during the call; by default one is allocated

        Arrays are any with `__dlpack__` or `__cuda_array_interface__` (torch, cupy, jax, numba), bfloat16 (or its bits
        as uint16) or float16. They are never copied: the last axis is contiguous, the others have any strides. A call
        can be captured in a CUDA graph. Gradients are not computed. What `starts`, `lengths` and `pages` hold is
        trusted: a wrong number makes the GPU read and write other memory.

        `attention.torch()` is a function for tensors of PyTorch, with the arguments of torch's
        scaled_dot_product_attention. It raises MissingTool without PyTorch.

        Raises TypeError, ValueError or RuntimeError with the header's status as `status`; nothing is enqueued then.
        """
        if not isinstance(layout, str) or layout not in _LAYOUTS:
            raise refuse(ValueError, f"layout is {layout!r:.80}, expected 'bshd' or 'bhsd'")
        if not isinstance(align, str) or align not in _ALIGN:
            raise refuse(ValueError, f"align is {align!r:.80}, expected 'end' or 'start'")
        left, right = _window(flag("causal", causal), window)
        most = (0, 0) if longest is None else _two("longest", longest, "queries and keys", 1)
        call = DeviceCall(calls, {"q": q, "k": k, "v": v}, ("out", out), stream)
        where = _sequences(call, starts, lengths, pages)
        key = call.key, layout, *((name, one.shape, one.strides) for name, one in where.items())
        plan = calls.planned(key, lambda: planned(*call.inputs, call.result, layout, where))
        problem = calls.ffi.new("struct tensorop_attention_problem *", plan.problem[0])
        problem.scale = real("scale", scale) if scale is not None else 1 / math.sqrt(max(problem.dim, 1))
        problem.left, problem.right, problem.align = left, right, _ALIGN[align] | _V_DIM
        problem.most_queries, problem.most_keys = most
        for name, one in where.items():
            setattr(problem, name, one.address)
        if lse is not None:
            sums = call.beside("lse", lse)
            shape = (problem.batch, problem.heads, problem.queries)["starts_q" in where :]
            device_binding.require_result(sums, shape, "float32", call.inputs[0], "log-sum-exp")
            if sums.strides != arrays.dense(shape):
                raise refuse(ValueError, f"lse has strides {sums.strides}: give a dense array")
            problem.lse = sums.address
        return call.run(plan, problem, (key, left, right, most), "", workspace)

    def torch() -> Any:
        op = torch_module.load(Path(__file__).parents[1] / "torch_op.py")
        return op.ScaledDotProductAttention(library, attention, "cuda", _MOST_DIM)

    attention.torch = torch  # type: ignore[attr-defined]
    return attention


_AXES = ("batch", "row", "head")
_PAGES = (16, 32, 64, 128, 256)


def _sequences(call: DeviceCall, starts: Any, lengths: Any, pages: Any) -> dict[str, Array]:
    """The arrays that say where sequences lie, by their names in the record. Raises TypeError and ValueError."""
    try:
        starts_q, starts_k = starts
    except (TypeError, ValueError):
        raise refuse(ValueError, f"starts is {starts!r:.80}, expected two arrays: of q, and of k and v") from None
    given = {"starts_q": starts_q, "starts_k": starts_k, "lengths": lengths, "pages": pages}
    found = {name: call.beside(name, one) for name, one in given.items() if one is not None}
    if "starts_k" in found and "lengths" in found:
        raise refuse(ValueError, "starts of k and lengths exclude each other: leave one out")
    if "pages" in found and "lengths" not in found:
        raise refuse(ValueError, "pages need lengths: the keys of each sequence")
    for name, one in found.items():
        axes, least = 1 + (name == "pages"), int(name.startswith("starts"))
        if one.dtype != "int32":
            raise refuse(TypeError, f"{name} is {one.dtype}, expected int32: convert it", arrays.UNSUPPORTED)
        if len(one.shape) != axes or one.shape[0] < least or (one.shape[-1] > 1 and one.strides[-1] != 1):
            what = f"{name} has shape {one.shape} and strides {one.strides}, expected {axes} dimensions"
            raise refuse(ValueError, f"{what}, the last one contiguous")
    return found


def _sizes(of: Array, layout: str) -> tuple[int, int, int, int]:
    """Batch, rows, heads, numbers of a head; the batch of an array without that axis is 1."""
    *batch, first, second, dim = of.shape
    return (*(batch or [1]), *((first, second) if layout == "bshd" else (second, first)), dim)  # type: ignore[return-value]


def _steps(of: Array, layout: str) -> tuple[int, int, int]:
    """Distances of batches, rows and heads. Raises ValueError for those that the library does not take."""
    steps = tuple(0 if size < 2 else step for size, step in zip(of.shape, of.strides, strict=True))
    if steps[-1] not in (0, 1) or min(steps) < 0:
        raise refuse(ValueError, f"{of.name} has strides {of.strides}: give an array whose last axis is contiguous")
    first, second = steps[-3:-1]
    batch = steps[0] if len(steps) == 4 else 0
    return (batch, first, second) if layout == "bshd" else (batch, second, first)


def _two(name: str, given: Any, what: str, least: int) -> tuple[int, int]:
    """Two integers. Raises ValueError."""
    try:
        first, second = (arguments.whole(name, one) for one in given)
    except (TypeError, ValueError):
        raise refuse(ValueError, f"{name} is {given!r:.80}, expected two integers: {what}") from None
    if min(first, second) < least:
        raise refuse(ValueError, f"{name} is {first}, {second}: each must be {least} or more")
    return first, second


def _window(causal: bool, window: Any) -> tuple[int, int]:
    left, right = _two("window", (-1, -1) if window is None else window, "keys before and behind", -1)
    left, right = (min(one, (1 << 62) - 1) for one in (left, right))
    return left, 0 if causal else right
