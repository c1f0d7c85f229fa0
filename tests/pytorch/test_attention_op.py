"""torch.ops.tensorop.attention against torch's own attention: layouts, masks, fake tensors, and what it refuses."""

from __future__ import annotations

import copy
import multiprocessing
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tensorop
from tests.support import attention_products
from tests.support.commands import ROOT

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.nn.attention.bias import causal_lower_right, causal_upper_left  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention as theirs  # noqa: E402

PAGE = ROOT / "docs" / "how-to" / "use-attention.md"
TOLERANCE = {torch.float32: (1e-4, 1e-5), torch.float16: (2e-3, 1e-3), torch.bfloat16: (2e-2, 1e-2)}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


@pytest.fixture(scope="module")
def ours(made: Path) -> Callable[..., Any]:
    return tensorop.load(made).attention.torch()


@pytest.fixture(scope="module", params=DTYPES)
def dtype(request: pytest.FixtureRequest, made: Path) -> Any:
    if request.param not in tensorop.load(made).dtypes:
        pytest.skip(f"the library has no {request.param}")
    return DTYPES[request.param]


def drawn(b: int, h: int, g: int, s: int, t: int, d: int, dtype: Any = torch.float32) -> tuple[Any, Any, Any]:
    torch.manual_seed(b + h + g + s + t + d)
    return tuple(torch.randn(b, heads, rows, d).to(dtype) for heads, rows in ((h, s), (g, t), (g, t)))


def close(got: Any, want: Any) -> None:
    rtol, atol = TOLERANCE[got.dtype]
    torch.testing.assert_close(got, want, rtol=rtol, atol=atol)


def by_rows(x: Any) -> Any:
    """The same numbers with rows outside heads in memory, as a projection leaves them."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def with_gaps(x: Any) -> Any:
    b, h, s, d = x.shape
    wide = torch.zeros(b, s, 3, h, d, dtype=x.dtype)
    wide[:, :, 1] = x.transpose(1, 2)
    return wide[:, :, 1].transpose(1, 2)


def across(x: Any) -> Any:
    """The last axis is not contiguous."""
    return x.transpose(2, 3).contiguous().transpose(2, 3)


@pytest.mark.parametrize("lying", [lambda x: x, by_rows, with_gaps, across])
@pytest.mark.parametrize("sizes", [(2, 4, 4, 33, 33, 16), (1, 6, 2, 20, 50, 24), (2, 3, 1, 1, 70, 64)])
def test_it_computes_as_torch_does(ours: Any, dtype: Any, lying: Any, sizes: tuple[int, ...]) -> None:
    q, k, v = map(lying, drawn(*sizes, dtype))
    grouped = {"enable_gqa": sizes[1] != sizes[2]}
    got = ours(q, k, v, **grouped)
    close(got, theirs(q, k, v, **grouped))
    assert got.stride(3) == 1
    close(ours(q, k, v, is_causal=True, scale=0.3, **grouped), theirs(q, k, v, is_causal=True, scale=0.3, **grouped))


def test_the_output_lies_as_the_query(ours: Any) -> None:
    q, k, v = map(by_rows, drawn(2, 4, 4, 33, 33, 16))
    assert ours(q, k, v).transpose(1, 2).is_contiguous()


@pytest.mark.parametrize("lying", [lambda x: x, by_rows, with_gaps])
def test_heads_of_value_have_a_length_of_their_own(ours: Any, lying: Any) -> None:
    (q, k, _), (_, _, v) = (map(lying, drawn(2, 4, 2, 33, 50, d)) for d in (24, 40))
    got = ours(q, k, v, enable_gqa=True)
    close(got, theirs(q, k, v, enable_gqa=True))
    assert got.transpose(1, 2).is_contiguous() == (q.stride(1) < q.stride(2))
    with FakeTensorMode() as mode:
        fake = ours(*map(mode.from_tensor, (q, k, v)), enable_gqa=True)
    assert (fake.shape, fake.stride()) == (got.shape, got.stride())


@pytest.mark.parametrize(("s", "t"), [(20, 50), (50, 50), (50, 20), (1, 50)])
def test_causal_masks_are_aligned_as_asked(ours: Any, s: int, t: int) -> None:
    q, k, v = drawn(1, 2, 2, s, t, 16)
    start, own = torch.ones(s, t, dtype=torch.bool).tril(), torch.ones(s, t, dtype=torch.bool).tril(t - s)
    close(ours(q, k, v, is_causal=True), theirs(q, k, v, attn_mask=start))
    close(ours(q, k, v, attn_mask=causal_upper_left(s, t)), theirs(q, k, v, attn_mask=start))
    if t >= s:  # else the first rows see no key, which torch's masks of older versions make NaN
        close(ours(q, k, v, is_causal=True, align="end"), theirs(q, k, v, attn_mask=own))
        close(ours(q, k, v, attn_mask=causal_lower_right(s, t)), theirs(q, k, v, attn_mask=own))
        near = own.triu(t - s - 7)
        close(ours(q, k, v, is_causal=True, align="end", window=(7, -1)), theirs(q, k, v, attn_mask=near))
    else:
        assert not ours(q, k, v, is_causal=True, align="end")[:, :, : s - t].any()


@pytest.mark.parametrize("sizes", [(0, 2, 2, 3, 3, 8), (1, 2, 2, 0, 3, 8), (1, 2, 2, 3, 0, 8), (1, 0, 0, 3, 3, 8)])
def test_sizes_of_zero(ours: Any, sizes: tuple[int, ...]) -> None:
    q, k, v = drawn(*sizes)
    got = ours(q, k, v)
    assert got.shape == q.shape
    assert not got.any()


def library(made: Path) -> str:
    return str(tensorop.load(made).operators["attention"].file)


def samples() -> list[tuple[Any, ...]]:
    plain, grouped = drawn(1, 2, 2, 9, 9, 16), drawn(2, 4, 2, 5, 12, 8)
    more = [plain, grouped, tuple(map(by_rows, grouped)), tuple(map(with_gaps, plain)), tuple(map(across, plain))]
    return [*more, drawn(1, 2, 2, 3, 0, 8), drawn(1, 2, 2, 0, 3, 8)]


@pytest.mark.parametrize("number", range(len(samples())))
def test_it_is_an_operator_as_torch_wants_them(ours: Any, made: Path, number: int) -> None:
    given = (*samples()[number], library(made), -1, 0, "end", None)
    torch.library.opcheck(torch.ops.tensorop.attention.default, given)


def test_fake_and_meta_tensors_have_the_same_form(ours: Any) -> None:
    for q, k, v in samples():
        want = ours(q, k, v, enable_gqa=True)
        with FakeTensorMode() as mode:
            fake = ours(*map(mode.from_tensor, (q, k, v)), enable_gqa=True)
        meta = ours(*(one.to("meta") for one in (q, k, v)), enable_gqa=True)
        assert (fake.shape, fake.stride(), fake.dtype) == (want.shape, want.stride(), want.dtype)
        assert (meta.shape, meta.dtype) == (want.shape, want.dtype)
    with pytest.raises(ValueError, match="query and key differ in batch or d"):
        ours(torch.empty(1, 2, 3, 8, device="meta"), *[torch.empty(1, 2, 3, 4, device="meta")] * 2)


def test_it_is_compiled_as_one_graph(ours: Any) -> None:
    compiled = torch.compile(lambda q, k, v: ours(q * 2, k, v, is_causal=True) + 1, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        for rows in (9, 12, 20):
            q, k, v = map(by_rows, drawn(1, 2, 2, rows, rows, 16))
            close(compiled(q, k, v), theirs(q * 2, k, v, is_causal=True) + 1)


class Heads(torch.nn.Module):
    """An attention layer: q and k come from layers that autocast casts, v in the input's own type."""

    def __init__(self, attention: Callable[..., Any]) -> None:
        super().__init__()
        self.attention, self.qk = attention, torch.nn.Linear(64, 128)

    def forward(self, x: Any) -> Any:
        q, k = self.qk(x).unflatten(-1, (2, 4, 16)).permute(2, 0, 3, 1, 4)
        return self.attention(q, k, x.unflatten(-1, (4, 16)).transpose(1, 2), is_causal=True)


@pytest.mark.parametrize("cast", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("run", [lambda f: f, lambda f: torch.compile(f, backend="aot_eager", fullgraph=True)])
def test_autocast_casts_as_torch_s_own(ours: Any, made: Path, cast: Any, run: Any) -> None:
    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
    torch.compiler.reset()
    got = run(lambda *given: ours(*given, is_causal=True))
    for dtypes in ((f32, f32, f32), (f32, f32, bf16), (f16, f32, bf16), (bf16, bf16, bf16)):
        given = [one.to(dtype) for one, dtype in zip(drawn(1, 2, 2, 20, 20, 16), dtypes, strict=True)]
        with torch.no_grad(), torch.autocast("cpu", cast):
            want = theirs(*given, is_causal=True)
            for o in (got(*given), torch.ops.tensorop.attention(*given, library(made), -1, 0, "start", None)):
                assert o.dtype == want.dtype == cast
                close(o, want)
            with torch.autocast("cpu", enabled=False):
                whole = [one.float() for one in given]
                assert ours(*whole).dtype == f32
    double = [one.double() for one in given]
    with torch.autocast("cpu", cast), pytest.raises(TypeError, match=r"query is torch\.float64"):
        ours(*double)


def test_without_autocast_types_that_differ_are_refused_as_by_torch(ours: Any) -> None:
    q, k, v = drawn(1, 2, 2, 4, 4, 8)
    for function in (ours, theirs):
        with pytest.raises((TypeError, RuntimeError), match=r"(?i)bfloat16"):
            function(q, k, v.bfloat16())


@pytest.mark.parametrize("run", [lambda f: f, lambda f: torch.compile(f, backend="aot_eager", fullgraph=True)])
def test_autocast_in_a_module(ours: Any, run: Any) -> None:
    torch.manual_seed(0)
    mine, x = Heads(ours).eval(), torch.randn(2, 12, 64)
    other = Heads(theirs).eval()
    other.load_state_dict(mine.state_dict())
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        o, want = run(mine)(x), run(other)(x)
    assert o.dtype == torch.bfloat16
    close(o, want)


def test_autocast_to_a_type_that_the_library_lacks_is_refused_by_name(made: Path) -> None:
    loaded = tensorop.load(made)
    held = loaded.operators["attention"]
    held.dtypes = ("f32",)  # as of a library that was made with --dtype f32
    attention = loaded.attention.torch()
    try:
        with torch.autocast("cpu", torch.bfloat16), pytest.raises(TypeError, match=r"casts .* to torch\.bfloat16, and"):
            attention(*drawn(1, 2, 2, 4, 4, 8))
    finally:
        tensorop.load(made).attention.torch()


def test_a_module_that_holds_it_is_saved(ours: Any, made: Path, tmp_path: Path) -> None:
    """It goes as the path of its product, to another process too."""
    torch.manual_seed(0)
    module, x = Heads(ours).eval(), torch.randn(1, 5, 64)
    module.library = tensorop.load(made)
    torch.save((module, x), tmp_path / "module.pt")
    with torch.no_grad():
        want = module(x)
        again, given = torch.load(tmp_path / "module.pt", weights_only=False)
        assert torch.equal(again(given), want)
        assert torch.equal(copy.deepcopy(module)(x), want)
    assert again.library.dtypes == module.library.dtypes
    given = drawn(1, 2, 2, 4, 4, 8)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert torch.equal(pool.apply(ours, given), ours(*given))


REFUSED = (
    ({"dropout_p": 0.1}, r"dropout \(dropout_p=0.1\)"),
    ({"attn_mask": torch.ones(4, 4, dtype=torch.bool)}, r"a mask of booleans \(attn_mask"),
    ({"attn_mask": torch.zeros(4, 4)}, r"a mask of numbers \(attn_mask"),
    ({"attn_mask": [[0.0] * 4] * 4}, r"a mask of numbers \(attn_mask"),
    ({"attn_mask": [[True] * 4] * 4}, r"a mask of booleans \(attn_mask"),
    ({"alibi_slopes": torch.zeros(2)}, r"ALiBi \(alibi_slopes\)"),
    ({"softcap": 30.0}, r"a soft cap of scores \(softcap\)"),
    ({"block_table": torch.zeros(1, 1)}, r"a paged cache \(block_table\)"),
    ({"softcap": 1.0, "dropout_p": 0.5}, r"dropout \(dropout_p=0.5\), a soft cap"),
)


@pytest.mark.parametrize(("more", "named"), REFUSED)
def test_what_is_not_supported_is_refused_by_name(ours: Any, more: dict[str, Any], named: str) -> None:
    with pytest.raises(NotImplementedError, match=named):
        ours(*drawn(1, 2, 2, 4, 4, 8), **more)


def test_gradients_are_refused_by_name(ours: Any) -> None:
    q, k, v = drawn(1, 2, 2, 4, 4, 8)
    q.requires_grad_()
    with pytest.raises(NotImplementedError, match=r"a gradient \(requires_grad; use torch.no_grad"):
        ours(q, k, v)
    with torch.no_grad():
        close(ours(q, k, v), theirs(q, k, v))
    with torch.inference_mode():
        close(ours(q, k, v), theirs(q, k, v))


def test_the_operator_itself_has_no_gradient(ours: Any, made: Path) -> None:
    q, k, v = drawn(1, 2, 2, 4, 4, 8)
    o = torch.ops.tensorop.attention(q.requires_grad_(), k, v, library(made), -1, -1, "end", None)
    with pytest.raises(RuntimeError, match=r"tensorop.attention.* no autograd formula was registered"):
        o.sum().backward()


def test_values_without_effect_pass(ours: Any) -> None:
    q, k, v = drawn(1, 2, 2, 4, 4, 8)
    close(ours(q, k, v, alibi_slopes=None, softcap=0.0, dropout_p=0.0), theirs(q, k, v))


def test_wrong_arguments_are_named(ours: Any) -> None:
    q, k, v = drawn(1, 4, 2, 4, 6, 8)
    for error, given, more, sentence in (
        (ValueError, (q, k, v), {}, "query has 4 heads and key 2: with enable_gqa=True"),
        (ValueError, (q[:, :3], k, v), {"enable_gqa": True}, "query has 3 heads and key 2"),
        (ValueError, (q, k[..., :4], v), {"enable_gqa": True}, "query and key differ in batch or d"),
        (ValueError, (q, k, v[:, :, :4]), {"enable_gqa": True}, "key and value alike but for d"),
        (ValueError, (q[0], k[0], v[0]), {}, "query, key and value are (batch, heads, rows, d)"),
        (ValueError, (q[0, 0], k[0, 0], v[0, 0]), {}, "query, key and value are (batch, heads, rows, d)"),
        (ValueError, (k, k, v), {"is_causal": True, "attn_mask": causal_lower_right(6, 6)}, "exclude each other"),
        (ValueError, (k, k, v), {"attn_mask": causal_lower_right(5, 6)}, "attn_mask is for 5 rows and 6 keys"),
        (ValueError, (k, k, v), {"align": "middle"}, "align is 'end' or 'start'"),
        (TypeError, (k, k, v), {"windows": 3}, "unexpected keyword argument 'windows'"),
        (TypeError, (k.double(), k.double(), v.double()), {}, "query is torch.float64"),
        (TypeError, (k, k, v.double()), {}, "value torch.float64"),
        (ValueError, (k, k, v), {"scale": 1e300}, "scale is 1e+300: it must be at most 3.40282e+38"),
        (ValueError, (k, k, v), {"scale": True}, "scale is True: it must be a real number"),
        (ValueError, (k, k, v), {"scale": "2"}, "scale is '2': it must be a real number"),
        (ValueError, (k, k, v), {"window": (True, 0)}, "window is True: it must be an integer of 64 bits"),
    ):
        with pytest.raises(error, match=re.escape(sentence)):
            ours(*given, **more)


@pytest.mark.parametrize("causal", [False, True])
def test_a_ragged_batch_is_its_sequences(ours: Any, causal: bool) -> None:
    lengths, dtype = ((5, 9), (0, 3), (7, 2)), torch.float32
    each = [drawn(1, 4, 2, s, t, 16) for s, t in lengths]
    q, k, v = (torch.cat([one[0].transpose(0, 1) for one in parts]) for parts in zip(*each, strict=True))
    starts = [torch.tensor([0, *torch.tensor(n).cumsum(0)], dtype=torch.int32) for n in zip(*lengths, strict=True)]
    got = ours(q, k, v, is_causal=causal, enable_gqa=True, starts=tuple(starts))
    assert (got.shape, got.dtype) == (q.shape, dtype)
    want = [ours(*one, is_causal=causal, enable_gqa=True)[0].transpose(0, 1) for one in each]
    assert torch.equal(got, torch.cat(want))


@pytest.fixture(scope="module")
def on_gpu(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """That of a library for GPUs, beside the processor's in this process; its kernels are made up, and none runs."""
    return tensorop.load(attention_products.made(tmp_path_factory.mktemp("gpu") / "attention", "bf16", b"kit\0"))


def on_cuda(*shape: int, dtype: Any = torch.bfloat16) -> Any:
    return torch.empty(shape, dtype=dtype, device="cuda")


def test_fake_tensors_of_a_gpu_have_the_form_of_the_result(on_gpu: Any, ours: Any) -> None:
    attention = on_gpu.attention.torch()
    with FakeTensorMode(), torch.no_grad():
        q, k = on_cuda(2, 8, 33, 64), on_cuda(2, 2, 50, 64)
        starts, lengths, pages = (on_cuda(*shape, dtype=torch.int32) for shape in ((3,), (2,), (2, 5)))
        rows_q, rows_k, in_pages = on_cuda(70, 8, 64), on_cuda(90, 2, 64), on_cuda(9, 2, 16, 64)
        of_rows = torch.empty_strided(q.shape, (33 * 512, 64, 512, 1), dtype=q.dtype, device="cuda")
        for query, keys, more in (
            (q, k, {}),
            (of_rows, k, {"is_causal": True, "window": (7, -1)}),
            (q, k, {"lengths": lengths}),
            (q, in_pages, {"lengths": lengths, "pages": pages, "align": "end"}),
            (rows_q, rows_k, {"starts": (starts, starts), "longest": (40, 50)}),
            (rows_q, in_pages, {"starts": (starts, None), "lengths": lengths, "pages": pages}),
        ):
            o = attention(query, keys, keys, enable_gqa=True, **more)
            assert (o.shape, o.stride(), o.dtype, o.device) == (query.shape, query.stride(), query.dtype, query.device)
        with pytest.raises(NotImplementedError, match="this attention computes on the processor; a tensor is on cuda"):
            ours(*[on_cuda(2, 8, 33, 64, dtype=torch.float32)] * 3)
    q, k, v = drawn(1, 2, 2, 4, 4, 8)
    close(ours(q, k, v), theirs(q, k, v))  # both are in one process


def test_a_gpu_s_attention_is_compiled_as_one_graph(on_gpu: Any) -> None:
    attention = on_gpu.attention.torch()
    compiled = torch.compile(lambda q, k, **more: attention(q * 2, k, k, **more) + 1, backend="eager", fullgraph=True)
    with torch.no_grad():
        q, k = (torch.empty(70, 2, 64, dtype=torch.bfloat16, device="meta") for _ in range(2))
        starts = torch.empty(3, dtype=torch.int32, device="meta")
        assert compiled(q, k, starts=(starts, starts), longest=(40, 40)).shape == q.shape
        q = q.view(1, 2, 70, 64)
        assert compiled(q, q, is_causal=True).shape == q.shape


def test_autocast_of_a_gpu_casts_too(on_gpu: Any) -> None:
    attention, before = on_gpu.attention.torch(), torch.is_autocast_enabled("cuda")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", torch.bfloat16)
    try:
        with FakeTensorMode(), torch.no_grad():
            q = on_cuda(1, 2, 9, 64, dtype=torch.float32)
            assert attention(q, q, on_cuda(1, 2, 9, 64)).dtype == torch.bfloat16
            torch.set_autocast_dtype("cuda", torch.float16)
            with pytest.raises(TypeError, match=r"casts .* to torch\.float16, and this library holds torch\.bfloat16"):
                attention(q, q, q)
    finally:
        torch.set_autocast_enabled("cuda", before)


def test_what_a_gpu_s_attention_lacks_is_refused_by_name(on_gpu: Any, ours: Any) -> None:
    attention = on_gpu.attention.torch()
    with FakeTensorMode():
        q = on_cuda(1, 2, 4, 64)
        wide, single, host = (
            on_cuda(1, 2, 4, 264),
            on_cuda(1, 2, 4, 64, dtype=torch.float32),
            torch.empty(q.shape).bfloat16(),
        )
        rows = on_cuda(8, 2, 64)
        for error, given, more, sentence in (
            (NotImplementedError, (on_cuda(1, 2, 4, 64).requires_grad_(), q, q), {}, "a gradient (requires_grad"),
            (NotImplementedError, (q, q, q), {"dropout_p": 0.1}, "dropout (dropout_p=0.1)"),
            (NotImplementedError, (q, q, q), {"attn_mask": torch.ones(4, 4)}, "a mask of numbers (attn_mask"),
            (NotImplementedError, (q, q, q), {"alibi_slopes": torch.zeros(2)}, "ALiBi (alibi_slopes)"),
            (NotImplementedError, (q, q, q), {"softcap": 30.0}, "a soft cap of scores (softcap)"),
            (NotImplementedError, (q, q, q), {"block_table": q}, "a paged cache (block_table; here it is pages)"),
            (NotImplementedError, (wide, wide, wide), {}, "a head of 264 numbers; on GPUs it has at most 256"),
            (NotImplementedError, (host, host, host), {}, "computes on GPUs; a tensor is on cpu"),
            (TypeError, (single, single, single), {}, "query is torch.float32, key torch.float32"),
            (ValueError, (q, q, q), {"starts": (q, q)}, "query, key and value are (rows, heads, d), key and value"),
            (ValueError, (q, q, q), {"starts": (None, q)}, "query is (batch, heads, rows, d), key and value are (rows"),
            (
                ValueError,
                (q, rows, rows),
                {"pages": q},
                "key and value are (pages, heads, page, d), key",
            ),
        ):
            with pytest.raises(error, match=re.escape(sentence)):
                attention(*given, **more)
    q, k, v = drawn(1, 2, 2, 4, 4, 8)
    with pytest.raises(NotImplementedError, match="on processors there are starts of both"):
        ours(q, k, v, lengths=torch.ones(1, dtype=torch.int32))


def test_a_library_that_is_not_loaded_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"nowhere.so is not loaded: call tensorop.load"):
        torch.ops.tensorop.attention(*drawn(1, 2, 2, 4, 4, 8), "nowhere.so", -1, -1, "end", None)


def test_the_page_s_example_runs(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (source,) = [
        one for one in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "import torch" in one
    ]
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "attention-native").symlink_to(made)
    monkeypatch.chdir(tmp_path)
    exec(compile(source, str(PAGE), "exec"), {})
