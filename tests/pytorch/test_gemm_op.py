"""torch.ops.tensorop.gemm on tensors that hold nothing: the result's form, one graph, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tensorop
from tensorop.cuda import product
from tensorop.package import publish
from tensorop.specs import platforms
from tests.support import device_products, products

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Of a library for GPUs whose kernels are made up, and none runs."""
    folder = tmp_path_factory.mktemp("gpu") / "gemm"
    content, _ = device_products.made(platforms.load("cuda-sm90"), 2, ("bf16",))
    publish.publish(publish.stage(product.product(content), folder), folder)
    return tensorop.load(folder).gemm.torch()


def on(device: str, *shape: int, dtype: Any = torch.bfloat16) -> Any:
    return torch.empty(shape, dtype=dtype, device=device)


@pytest.mark.parametrize("device", ["cuda", "meta"])
def test_the_result_has_the_form_of_a_product(ours: Any, device: str) -> None:
    with FakeTensorMode():
        a, b, bias = on(device, 3, 5, 8), on(device, 8, 7), on(device, 7)
        scales = on(device, 5, dtype=torch.float32)
        got = ours(a, b, bias=bias, scale_rows=scales, residual=on(device, 5, 7), activation="gelu")
        assert ((*got.shape,), got.dtype, got.is_contiguous()) == ((3, 5, 7), torch.bfloat16, True)
        assert (*ours(a[0].T.contiguous().T, b).shape,) == (5, 7)


def test_it_is_compiled_as_one_graph(ours: Any) -> None:
    compiled = torch.compile(
        lambda a, b, c: ours(a * 2, b, bias=c, activation="silu") + 1, backend="eager", fullgraph=True
    )
    with FakeTensorMode(), torch.no_grad():
        assert (*compiled(on("cuda", 5, 8), on("cuda", 8, 7), on("cuda", 7)).shape,) == (5, 7)


@pytest.mark.parametrize(
    ("kind", "words", "says"),
    [
        (ValueError, {"activation": "tanh"}, "activation must be one of none, relu, gelu, silu; got 'tanh'"),
        (ValueError, {"bias": (8,)}, r"bias must be torch.bfloat16 of shape \(7,\)"),
        (ValueError, {"scale_rows": (5,)}, r"scale_rows must be torch.float32 of shape \(5,\)"),
        (ValueError, {"residual": (7, 5)}, "residual must be"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(ours: Any, kind: Any, words: dict[str, Any], says: str) -> None:
    with FakeTensorMode():
        given = {name: on("cuda", *one) if isinstance(one, tuple) else one for name, one in words.items()}
        with pytest.raises(kind, match=says):
            ours(on("cuda", 5, 8), on("cuda", 8, 7), **given)


def test_gradients_processors_and_other_types_are_refused(ours: Any) -> None:
    with pytest.raises(
        NotImplementedError, match=r"this gemm computes on GPUs; a is on cpu|[Cc]ould not run|not implemented"
    ):
        ours(on("cpu", 5, 8), on("cpu", 8, 7))
    with FakeTensorMode():
        a, b = on("cuda", 5, 8), on("cuda", 8, 7)
        with pytest.raises(NotImplementedError, match=r"a gradient \(bias.requires_grad; use torch.no_grad\(\)\)"):
            ours(a, b, bias=on("cuda", 7).requires_grad_())
        with pytest.raises(TypeError, match=r"this library holds torch\.bfloat16"):
            ours(a.float(), b.float())
        with pytest.raises(ValueError, match=r"a is \(m, k\) and b"):
            ours(a, a)


def test_tensors_on_the_processor(tmp_path: Path) -> None:
    gemm = tensorop.load(products.install("generic", tmp_path / "gemm", epilogue=True)).gemm.torch()
    for dtype in (torch.float32, torch.float64):
        a, b, bias, x = (torch.randn(shape, dtype=dtype) for shape in ((3, 40, 30), (30, 50), (50,), (3, 40, 50)))
        want = torch.nn.functional.gelu(a @ b + bias + x, approximate="tanh")
        torch.testing.assert_close(gemm(a, b, bias=bias, residual=x, activation="gelu"), want)
        scales = torch.rand(40, dtype=dtype), torch.rand(50, dtype=dtype)
        wide = torch.relu(scales[0][:, None] * scales[1] * (a[0] @ b))
        by_column = b.T.contiguous().T
        got = gemm(a[0], by_column, scale_rows=scales[0], scale_columns=scales[1], activation="relu")
        torch.testing.assert_close(got, wide)
    compiled = torch.compile(lambda p, q: gemm(p, q, activation="silu") + 1, backend="eager", fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(compiled(a, b), torch.nn.functional.silu(a @ b) + 1)
    with pytest.raises(TypeError, match=r"this library holds torch\.float"):
        gemm(a.to(torch.bfloat16), b.to(torch.bfloat16))


def test_tensors_of_16_bits_on_the_processor(tmp_path: Path) -> None:
    gemm = tensorop.load(products.install("generic", tmp_path / "gemm", ("bf16", "f16"), epilogue=True)).gemm.torch()
    for dtype in (torch.bfloat16, torch.float16):
        a, b, bias = torch.randn(3, 40, 30).to(dtype), torch.randn(30, 50).to(dtype), torch.randn(50)
        got = gemm(a, b, bias=bias, activation="relu")
        assert got.dtype == torch.float32
        torch.testing.assert_close(got, torch.relu(a.float() @ b.float() + bias))
        with pytest.raises(ValueError, match=r"bias must be torch\.float32"):
            gemm(a, b, bias=bias.to(dtype))
