"""gemm with its epilogue as a custom operator of PyTorch: what tensorop.load(DIR).gemm.torch() returns.

Tensors are on the GPU, or of a library for processors on the processor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tensorop.package.arguments import real

_DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16}
_ACTIVATIONS = ("none", "relu", "gelu", "silu")


class _Product(NamedTuple):
    """A loaded library: its function for arrays, and the dtypes of A and B, each with that of the result."""

    gemm: Callable[..., Any]
    dtypes: dict[torch.dtype, torch.dtype]
    device: str  # "cuda" or "cpu"


_products: dict[str, _Product] = {}  # by the path of the library


@torch.library.custom_op(
    "tensorop::gemm",
    mutates_args=(),
    device_types=("cuda", "cpu"),
    schema="(Tensor a, Tensor b, str library, Tensor? bias=None, Tensor? residual=None, Tensor? scale_rows=None, "
    "Tensor? scale_columns=None, str activation='none', float alpha=1.0) -> Tensor",
)
def _gemm(a: Tensor, b: Tensor, library: str, *epilogue: Any) -> Tensor:
    out = _output(a, b, library, *epilogue)
    if out.numel():
        bias, residual, scale_rows, scale_columns, activation, alpha = _whole(epilogue)
        x, y, residual = (_dense(one) for one in (a, b, residual))
        vectors = {"bias": bias, "scale_rows": scale_rows, "scale_columns": scale_columns}
        given = {name: None if one is None else one.detach().contiguous() for name, one in vectors.items()}
        of, device = _products[library].gemm, _products[library].device
        compute = of if device == "cuda" else partial(_each, of)
        compute(x, y, out, residual=residual, activation=activation, alpha=alpha, **given)
    return out


def _each(gemm: Callable[..., Any], a: Tensor, b: Tensor, out: Tensor, *, residual: Tensor | None, **more: Any) -> None:
    """The products of a batch, one after the other, by a library for NumPy arrays."""
    given = {name: _array(one) if isinstance(one, Tensor) else one for name, one in more.items()}
    for at in range(out.shape[0]) if out.dim() == 3 else (...,):
        x, y, z = (None if one is None else _array(one[at] if one.dim() == 3 else one) for one in (a, b, residual))
        gemm(x, y, out[at].numpy(), residual=z, **given)


def _array(one: Tensor) -> Any:
    """On the tensor's memory; bfloat16, which NumPy lacks, as its bits."""
    return one.view(torch.int16).numpy().view("uint16") if one.dtype == torch.bfloat16 else one.numpy()


@_gemm.register_fake
def _(a: Tensor, b: Tensor, library: str, *epilogue: Any) -> Tensor:
    return _output(a, b, library, *epilogue)


def _whole(epilogue: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operator's arguments behind `library`, those left out with their defaults."""
    return (*epilogue, *(None, None, None, None, "none", 1.0)[len(epilogue) :])


def _dense(one: Tensor | None) -> Tensor | None:
    """A tensor whose last axis is contiguous, as the library needs it; b may lie by columns."""
    if one is None:
        return None
    lies = one.detach()
    return lies if 1 in lies.stride()[-2:] else lies.contiguous()


def _output(a: Tensor, b: Tensor, library: str, *epilogue: Any) -> Tensor:
    """A new tensor for the result. Raises TypeError and ValueError by the names of what does not fit."""
    product = _products.get(library)
    if product is None:
        raise RuntimeError(f"{library} is not loaded: call tensorop.load(DIR).gemm.torch() first")
    bias, residual, scale_rows, scale_columns, activation, _ = _whole(epilogue)
    if activation not in _ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(_ACTIVATIONS)}; got {activation!r}")
    given = {"bias": bias, "residual": residual, "scale_rows": scale_rows, "scale_columns": scale_columns}
    for name, one in (("a", a), ("b", b), *given.items()):
        if one is not None and one.device.type not in (product.device, "meta"):
            where = "GPUs" if product.device == "cuda" else "processors"
            raise NotImplementedError(f"this gemm computes on {where}; {name} is on {one.device}")
    if a.dtype not in product.dtypes or b.dtype != a.dtype:
        held = ", ".join(map(str, product.dtypes))
        raise TypeError(f"a is {a.dtype}, b {b.dtype}: this library holds {held}, both alike")
    if a.dim() not in (2, 3) or b.dim() not in (2, 3) or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"a is (m, k) and b (k, n), or batches of them; got {(*a.shape,)}, {(*b.shape,)}")
    if a.dim() == b.dim() == 3 and a.shape[0] != b.shape[0]:
        raise ValueError(f"a has {a.shape[0]} matrices and b {b.shape[0]}: they must agree")
    batch = a.shape[:-2] if a.dim() == 3 else b.shape[:-2]
    out = a.new_empty((*batch, a.shape[-2], b.shape[-1]), dtype=product.dtypes[a.dtype])
    m, n = out.shape[-2:]
    shapes = {"bias": (n,), "residual": (*out.shape,), "scale_rows": (m,), "scale_columns": (n,)}
    for name, one in given.items():
        if one is None:
            continue
        dtype = torch.float32 if name.startswith("scale") and product.device == "cuda" else out.dtype
        fits = (*one.shape,) == shapes[name] or (name == "residual" and (*one.shape,) == (m, n))
        if not fits or one.dtype != dtype:
            raise ValueError(f"{name} must be {dtype} of shape {shapes[name]}; got {one.dtype} of {(*one.shape,)}")
    return out


class Gemm:
    """A function of tensors on GPUs or processors; help(function.__call__) describes it.

    It can be pickled, also in a module: it is the path of its product then, which is loaded again.
    """

    def __init__(self, library: Any, gemm: Callable[..., Any], device: str = "cuda") -> None:
        """library: as `bind` has it; gemm: its function for arrays on the device, "cuda" or "cpu" """
        self._library, self._again = str(library.file), library.again("gemm.torch")
        wide = device == "cpu" or any(dtype.endswith("_f32") for dtype in library.dtypes)
        kinds = {_DTYPES[held] for dtype in library.dtypes if (held := dtype.partition("_")[0]) in _DTYPES}
        results = {one: torch.float32 if wide and one.itemsize < 4 else one for one in kinds}
        _products[self._library] = _Product(gemm, results, device)

    def __reduce__(self) -> Any:
        return self._again

    def __call__(
        self,
        a: Tensor,
        b: Tensor,
        *,
        bias: Tensor | None = None,
        residual: Tensor | None = None,
        scale_rows: Tensor | None = None,
        scale_columns: Tensor | None = None,
        activation: str = "none",
        alpha: float = 1.0,
    ) -> Tensor:
        """activation(scale_rows[:, None] * scale_columns * alpha * (a @ b) + bias + residual) in inference.

        a: (m, k) or (batch, m, k); b: (k, n) or (batch, k, n), either one for a whole batch. On processors the result
        of bfloat16 and float16 is float32
        bias: (n); residual: (m, n), of the result's dtype
        scale_rows, scale_columns: (m), (n), float32; on processors of the result's dtype
        activation: `none`, `relu`, `gelu` (its tanh form) or `silu`

        Raises NotImplementedError by the name of what is not supported: gradients, and tensors elsewhere.
        """
        tensors = {"a": a, "b": b, "bias": bias, "residual": residual, "scale_rows": scale_rows}
        tensors["scale_columns"] = scale_columns
        for name, one in tensors.items():
            if torch.is_grad_enabled() and one is not None and one.requires_grad:
                what = f"a gradient ({name}.requires_grad; use torch.no_grad())"
                raise NotImplementedError(f"this gemm does not support {what}")
        vectors = bias, residual, scale_rows, scale_columns
        scale = real("alpha", alpha, 64 if a.dtype == torch.float64 else 32)
        out: Tensor = torch.ops.tensorop.gemm(a, b, self._library, *vectors, activation, scale)
        return out
