"""attention as a custom operator of PyTorch: what tensorop.load(DIR).attention.torch() returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.attention.bias import CausalBias, CausalVariant

from tensorop.package.arguments import real, whole

_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
_CPU = ("cpu", "meta")
# Arguments of other attention functions, and the name of what each asks for.
_UNSUPPORTED = {
    "alibi_slopes": "ALiBi",
    "block_table": "a paged cache",
    "page_table": "a paged cache",
    "softcap": "a soft cap of scores",
    "score_mod": "a function of scores",
}


class _Product(NamedTuple):
    """A loaded library: its function for NumPy arrays, and the dtypes that it holds."""

    attention: Callable[..., Any]
    dtypes: tuple[torch.dtype, ...]


_products: dict[str, _Product] = {}  # by the path of the library


@torch.library.custom_op(
    "tensorop::attention",
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor query, Tensor key, Tensor value, str library, int left, int right, str align, float? scale)"
    " -> Tensor",
)
def _attention(
    query: Tensor, key: Tensor, value: Tensor, library: str, left: int, right: int, align: str, scale: float | None
) -> Tensor:
    out = _output(query, key, value, library)
    if out.numel():
        given = [_array(one) for one in (query, key, value)]
        window = (left, right)
        call = _products[library].attention
        call(*given, window=window, align=align, scale=scale, layout="bhsd", out=_array(out))
    return out


@_attention.register_fake
def _(
    query: Tensor, key: Tensor, value: Tensor, library: str, left: int, right: int, align: str, scale: float | None
) -> Tensor:
    return _output(query, key, value, library)


@torch.library.impl("tensorop::attention", "AutocastCPU")
def _(query: Tensor, key: Tensor, value: Tensor, library: str, *others: Any) -> Tensor:
    """Casts as torch's own attention is cast: floating-point tensors of the processor, but not those of 64 bits."""
    wanted, product = torch.get_autocast_dtype("cpu"), _products.get(library)
    given = [
        one.to(wanted) if one.is_cpu and one.is_floating_point() and one.dtype != torch.float64 else one
        for one in (query, key, value)
    ]
    if product is not None and wanted not in product.dtypes and any(one.dtype == wanted for one in given):
        held = ", ".join(map(str, product.dtypes))
        raise TypeError(
            f"torch.autocast casts query, key and value to {wanted}, and this library holds {held}: make one with "
            "--dtype, or call it under torch.autocast('cpu', enabled=False)"
        )
    with torch.autocast("cpu", enabled=False):
        out: Tensor = torch.ops.tensorop.attention(*given, library, *others)
    return out


def _output(query: Tensor, key: Tensor, value: Tensor, library: str) -> Tensor:
    """A new tensor for the result: its rows and heads lie in memory as those of `query`."""
    product = _products.get(library)
    if product is None:
        raise RuntimeError(f"{library} is not loaded: call tensorop.load(DIR).attention.torch() first")
    if query.dtype not in product.dtypes or key.dtype != query.dtype or value.dtype != query.dtype:
        held = ", ".join(map(str, product.dtypes))
        raise TypeError(
            f"query is {query.dtype}, key {key.dtype}, value {value.dtype}: this library holds {held}, all alike"
        )
    _require_axes(query, key, value)
    if key.shape[0] != query.shape[0] or key.shape[3] != query.shape[3]:
        raise ValueError(f"query and key differ in batch or d: {(*query.shape,)}, {(*key.shape,)}")
    if query.stride(3) == 1:
        return torch.empty_like(query)
    return torch.empty_like(query, memory_format=torch.contiguous_format)


def _require_axes(query: Tensor, key: Tensor, value: Tensor) -> None:
    if query.dim() != 4 or key.dim() != 4 or key.shape != value.shape:
        raise ValueError(
            "query, key and value are (batch, heads, rows, d), key and value alike; "
            f"got {(*query.shape,)}, {(*key.shape,)}, {(*value.shape,)}"
        )


def _array(tensor: Tensor) -> Any:
    """The tensor's memory as a NumPy array; bf16, which NumPy lacks, as uint16."""
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy(force=True)


class ScaledDotProductAttention:
    """A function that replaces torch.nn.functional.scaled_dot_product_attention; help(function.__call__) describes it.

    It can be pickled, also in a module: it is the path of its product then, which is loaded again.
    """

    def __init__(self, library: Any, attention: Callable[..., Any]) -> None:
        """library: as `bind` has it; attention: its function for NumPy arrays"""
        self._library, self._again = str(library.file), library.again("attention.torch")
        _products[self._library] = _Product(attention, tuple(_DTYPES[one] for one in library.dtypes))

    def __reduce__(self) -> Any:
        return self._again

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
        *,
        align: str = "start",
        window: tuple[int, int] = (-1, -1),
        **others: Any,
    ) -> Tensor:
        """softmax(scale * query key^T + mask) value by torch.ops.tensorop.attention, in inference.

        query: (batch, heads, rows, d) on the processor, with any distances of batches, heads and rows
        key, value: the same with keys for rows; with `enable_gqa`, their number of heads divides that of `query`
        attn_mask: None, or torch.nn.attention.bias.causal_lower_right(rows, keys) or causal_upper_left
        is_causal: whether a query sees no key behind its own
        scale: None for 1 / sqrt(d)
        align: `start`: the first query's own key is the first one, as torch's is_causal has it; `end`: the last query's
        is the last one, as with a cache of keys
        window: keys that a query sees before and behind its own, both inclusive; -1: all

        The arguments before `align` are those of torch's function. Raises NotImplementedError by the name of what is
        not supported: gradients, dropout, masks of numbers or booleans, ALiBi, soft caps and paged caches.
        """
        _refuse(query, key, value, attn_mask, dropout_p, others)
        _require_axes(query, key, value)
        if isinstance(attn_mask, CausalBias):
            if is_causal:
                raise ValueError("is_causal and a causal attn_mask exclude each other")
            rows, keys = attn_mask.seq_len_q, attn_mask.seq_len_kv
            if (rows, keys) != (query.shape[-2], key.shape[-2]):
                raise ValueError(
                    f"attn_mask is for {rows} rows and {keys} keys; there are {query.shape[-2]} and {key.shape[-2]}"
                )
            is_causal, align = True, "end" if attn_mask.variant == CausalVariant.LOWER_RIGHT else "start"
        heads, of_keys = query.shape[-3], key.shape[-3]
        if heads != of_keys and not (enable_gqa and of_keys and heads % of_keys == 0):
            more = "with enable_gqa=True the number of key's divides that of query's, else they are equal"
            raise ValueError(f"query has {heads} heads and key {of_keys}: {more}")
        left, right = (whole("window", one) for one in window)
        right = 0 if is_causal else right
        scale = None if scale is None else real("scale", scale, 32)
        out: Tensor = torch.ops.tensorop.attention(query, key, value, self._library, left, right, align, scale)
        return out


def _refuse(query: Tensor, key: Tensor, value: Tensor, attn_mask: Any, dropout_p: float, more: dict[str, Any]) -> None:
    """Raises NotImplementedError for what a caller asks for and the library lacks, TypeError for unknown arguments."""
    asked = []
    if torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad):
        asked.append("a gradient (requires_grad; use torch.no_grad())")
    if dropout_p:
        asked.append(f"dropout (dropout_p={dropout_p})")
    if attn_mask is not None and not isinstance(attn_mask, CausalBias):
        kind = "booleans" if torch.as_tensor(attn_mask).dtype == torch.bool else "numbers"
        asked.append(f"a mask of {kind} (attn_mask; is_causal, align and window describe one)")
    for name, wanted in more.items():
        if name not in _UNSUPPORTED:
            raise TypeError(f"unexpected keyword argument '{name}'")
        if wanted is not None and not (isinstance(wanted, int | float) and wanted == 0):
            asked.append(f"{_UNSUPPORTED[name]} ({name})")
    if asked:
        raise NotImplementedError(f"this attention does not support {', '.join(asked)}")
    for one in (query, key, value):
        if one.device.type not in _CPU:
            raise NotImplementedError(f"this attention computes on the processor; a tensor is on {one.device}")
