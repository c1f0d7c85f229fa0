"""attention as a custom operator of PyTorch: what tensorop.load(DIR).attention.torch() returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.attention.bias import CausalBias, CausalVariant

from tensorop.package.arguments import real, whole

_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
_WHERE = {"cpu": "the processor", "cuda": "GPUs"}
# Arguments of other attention functions, and the name of what each asks for.
_UNSUPPORTED = {
    "alibi_slopes": "ALiBi",
    "block_table": "a paged cache",
    "page_table": "a paged cache",
    "softcap": "a soft cap of scores",
    "score_mod": "a function of scores",
}


class _Product(NamedTuple):
    """A loaded library: its function for arrays, the dtypes that it holds, the kind of device, and the largest head."""

    attention: Callable[..., Any]
    dtypes: tuple[torch.dtype, ...]
    device: str  # cpu | cuda
    most: int


_products: dict[str, _Product] = {}  # by the path of the library


class _Lying(NamedTuple):
    """Where sequences lie: the operator's arguments from `starts_q` on."""

    starts_q: Tensor | None = None
    starts_k: Tensor | None = None
    lengths: Tensor | None = None
    pages: Tensor | None = None
    most_queries: int = 0
    most_keys: int = 0


@torch.library.custom_op(
    "tensorop::attention",
    mutates_args=(),
    device_types=tuple(_WHERE),
    schema="(Tensor query, Tensor key, Tensor value, str library, int left, int right, str align, float? scale, "
    "Tensor? starts_q=None, Tensor? starts_k=None, Tensor? lengths=None, Tensor? pages=None, SymInt most_queries=0, "
    "SymInt most_keys=0) -> Tensor",
)
def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    library: str,
    left: int,
    right: int,
    align: str,
    scale: float | None,
    *lying: Any,
) -> Tensor:
    of = _Lying(*lying)
    out = _output(query, key, value, library, of)
    if out.numel():
        call, words = _products[library], {"window": (left, right), "align": align, "scale": scale}
        compute = _on_device if call.device == "cuda" else _on_processor
        compute(call.attention, (query, key, value, out), of, words)
    return out


def _on_processor(attention: Callable[..., Any], given: tuple[Tensor, ...], of: _Lying, words: dict[str, Any]) -> None:
    q, k, v, out = map(_array, given)
    if of.starts_q is None:
        attention(q, k, v, layout="bhsd", out=out, **words)
    else:
        attention(q, k, v, starts=(_array(of.starts_q), _array(of.starts_k)), out=out, **words)


def _on_device(attention: Callable[..., Any], given: tuple[Tensor, ...], of: _Lying, words: dict[str, Any]) -> None:
    """Rows before heads: so do ragged ones lie, and the others are turned."""
    lying = [one.detach() if one.stride(-1) == 1 else one.detach().contiguous() for one in given]
    q, k, v, out = (one.transpose(1, 2) if one.dim() == 4 else one for one in lying)
    longest = None if of.most_queries == of.most_keys == 0 else (max(1, of.most_queries), max(1, of.most_keys))
    where = {"starts": (of.starts_q, of.starts_k), "longest": longest, "lengths": of.lengths, "pages": of.pages}
    attention(q, k, v, out=out, **where, **words)


@_attention.register_fake
def _(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    library: str,
    left: int,
    right: int,
    align: str,
    scale: float | None,
    *lying: Any,
) -> Tensor:
    return _output(query, key, value, library, _Lying(*lying))


def _autocast(kind: str) -> None:
    @torch.library.impl("tensorop::attention", f"Autocast{kind.upper()}")
    def _(query: Tensor, key: Tensor, value: Tensor, library: str, *others: Any) -> Tensor:
        """Casts as torch's own attention is cast: floating-point tensors of the device, but not those of 64 bits."""
        wanted, product = torch.get_autocast_dtype(kind), _products.get(library)

        def cast(one: Tensor) -> Tensor:
            narrow = one.device.type == kind and one.is_floating_point() and one.dtype != torch.float64
            return one.to(wanted) if narrow else one

        given = [cast(one) for one in (query, key, value)]
        if product is not None and wanted not in product.dtypes and any(one.dtype == wanted for one in given):
            held = ", ".join(map(str, product.dtypes))
            raise TypeError(
                f"torch.autocast casts query, key and value to {wanted}, and this library holds {held}: make one with "
                f"--dtype, or call it under torch.autocast('{kind}', enabled=False)"
            )
        with torch.autocast(kind, enabled=False):
            out: Tensor = torch.ops.tensorop.attention(*given, library, *others)
        return out


_autocast("cpu")
_autocast("cuda")


def _output(query: Tensor, key: Tensor, value: Tensor, library: str, of: _Lying) -> Tensor:
    """A new tensor for the result: its rows and heads lie in memory as those of `query`."""
    product = _products.get(library)
    if product is None:
        raise RuntimeError(f"{library} is not loaded: call tensorop.load(DIR).attention.torch() first")
    for one in (query, key, value):
        if one.device.type not in (product.device, "meta"):
            where = _WHERE[product.device]
            raise NotImplementedError(f"this attention computes on {where}; a tensor is on {one.device}")
    if query.dtype not in product.dtypes or key.dtype != query.dtype or value.dtype != query.dtype:
        held = ", ".join(map(str, product.dtypes))
        raise TypeError(
            f"query is {query.dtype}, key {key.dtype}, value {value.dtype}: this library holds {held}, all alike"
        )
    _require_axes(query, key, value, of)
    cache = of.lengths is not None or of.pages is not None or (of.starts_q is None) != (of.starts_k is None)
    if cache and product.device == "cpu":
        what = "lengths, pages, or starts of one operand alone; on processors there are starts of both"
        raise NotImplementedError(f"this attention does not support {what}")
    for one in (query, value):
        if one.shape[-1] > product.most:
            what = f"a head of {one.shape[-1]} numbers; on {_WHERE[product.device]} it has at most {product.most}"
            raise NotImplementedError(f"this attention does not support {what}")
    batches = query.dim() == 4 and key.dim() == 4 and of.pages is None
    if (batches and key.shape[0] != query.shape[0]) or key.shape[-1] != query.shape[-1]:
        raise ValueError(f"query and key differ in batch or d: {(*query.shape,)}, {(*key.shape,)}")
    if value.shape[-1] != query.shape[-1]:
        return _between(query, value.shape[-1])
    if query.stride(-1) == 1:
        return torch.empty_like(query)
    return torch.empty_like(query, memory_format=torch.contiguous_format)


def _between(query: Tensor, dim: int) -> Tensor:
    """A dense tensor of the shape of `query` with heads of `dim` numbers, its axes in memory in the same order."""
    order = sorted(range(query.dim() - 1), key=query.stride, reverse=True)
    made = query.new_empty([query.shape[axis] for axis in order] + [dim])
    return made.permute(*map(order.index, range(query.dim() - 1)), query.dim() - 1)


def _require_axes(query: Tensor, key: Tensor, value: Tensor, of: _Lying) -> None:
    """Raises ValueError for tensors with other axes than such a call has."""
    dense, ragged = "(batch, heads, rows, d)", "(rows, heads, d)"
    of_query = dense if of.starts_q is None else ragged
    of_key = "(pages, heads, page, d)" if of.pages is not None else dense if of.starts_k is None else ragged
    axes = [one.count(",") + 1 for one in (of_query, of_key)]
    if [query.dim(), key.dim()] != axes or key.shape[:-1] != value.shape[:-1]:
        named = f"query is {of_query}, key and value are {of_key}"
        if of_key == of_query:
            named = f"query, key and value are {of_query}"
        raise ValueError(
            f"{named}, key and value alike but for d; got {(*query.shape,)}, {(*key.shape,)}, {(*value.shape,)}"
        )


def _array(tensor: Tensor | None) -> Any:
    """The tensor's memory as a NumPy array; bf16, which NumPy lacks, as uint16."""
    if tensor is None:
        return None
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy(force=True)


class ScaledDotProductAttention:
    """A function that replaces torch.nn.functional.scaled_dot_product_attention; help(function.__call__) describes it.

    It can be pickled, also in a module: it is the path of its product then, which is loaded again.
    """

    def __init__(self, library: Any, attention: Callable[..., Any], device: str, most: int) -> None:
        """library: as `bind` has it; attention: its function for arrays; device, most: as in _Product"""
        self._library, self._again = str(library.file), library.again("attention.torch")
        _products[self._library] = _Product(attention, tuple(_DTYPES[one] for one in library.dtypes), device, most)

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
        starts: tuple[Tensor | None, Tensor | None] = (None, None),
        longest: tuple[int, int] = (0, 0),
        lengths: Tensor | None = None,
        pages: Tensor | None = None,
        **others: Any,
    ) -> Tensor:
        """softmax(scale * query key^T + mask) value by torch.ops.tensorop.attention, in inference.

        query: (batch, heads, rows, d) on the library's device, with any distances of batches, heads and rows
        key, value: the same with keys for rows; with `enable_gqa`, their number of heads divides that of `query`. d of
        value, and so of the result, may be another
        attn_mask: None, or torch.nn.attention.bias.causal_lower_right(rows, keys) or causal_upper_left
        is_causal: whether a query sees no key behind its own
        scale: None for 1 / sqrt(d)
        align: `start`: the first query's own key is the first one, as torch's is_causal has it; `end`: the last query's
        is the last one, as with a cache of keys
        window: keys that a query sees before and behind its own, both inclusive; -1: all
        starts: of a ragged batch, int32 (batch + 1) where its sequences begin, of query and of key and value, which
        are (rows, heads, d) then, as torch.nn.attention.varlen_attn has them. On GPUs one of the two may be None
        longest: rows of the longest sequence or more, of query and of key; 0: unknown, which is slower on GPUs
        lengths: on GPUs, int32 (batch): the first rows of key and value, so many, are keys of the sequence
        pages: on GPUs, int32 (batch, pages of a sequence) with `lengths`: the pages that have a sequence's keys; key
        and value are (pages, heads, page, d) then

        On GPUs what `starts`, `lengths` and `pages` hold is trusted: a wrong number makes the GPU read and write other
        memory.

        The arguments before `align` are those of torch's function. Raises NotImplementedError by the name of what is
        not supported: gradients, dropout, masks of numbers or booleans, ALiBi, soft caps, other head sizes,
        and caches on processors.
        """
        _refuse(query, key, value, attn_mask, dropout_p, others)
        of = _Lying(*starts, lengths, pages, *longest)
        _require_axes(query, key, value, of)
        if isinstance(attn_mask, CausalBias):
            if is_causal:
                raise ValueError("is_causal and a causal attn_mask exclude each other")
            if any(one is not None for one in of[:4]):
                raise ValueError("attn_mask is for batches of equal sequences: give is_causal and align")
            rows, keys = attn_mask.seq_len_q, attn_mask.seq_len_kv
            if (rows, keys) != (query.shape[-2], key.shape[-2]):
                raise ValueError(
                    f"attn_mask is for {rows} rows and {keys} keys; there are {query.shape[-2]} and {key.shape[-2]}"
                )
            is_causal, align = True, "end" if attn_mask.variant == CausalVariant.LOWER_RIGHT else "start"
        heads, of_keys = (one.shape[-3 if one.dim() == 4 else -2] for one in (query, key))
        if heads != of_keys and not (enable_gqa and of_keys and heads % of_keys == 0):
            more = "with enable_gqa=True the number of key's divides that of query's, else they are equal"
            raise ValueError(f"query has {heads} heads and key {of_keys}: {more}")
        left, right = (whole("window", one) for one in window)
        right = 0 if is_causal else right
        scale = None if scale is None else real("scale", scale, 32)
        out: Tensor = torch.ops.tensorop.attention(query, key, value, self._library, left, right, align, scale, *of)
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
            more_of = "; here it is pages" if "table" in name and query.is_cuda else ""
            asked.append(f"{_UNSUPPORTED[name]} ({name}{more_of})")
    if asked:
        raise NotImplementedError(f"this attention does not support {', '.join(asked)}")
