"""attention by a product for a device, on arrays that only tell of themselves by a protocol: argv is its folder.

A process of its own has the fake driver, whose kernel computes what the library passes on (test_device_attention.py).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import tensorop
from tests.support.device_arrays import FAKE, ByDlpack, ByInterface, Held, memory
from tests.support.device_calls import bits

attention = tensorop.load(sys.argv[1]).attention


def array(values: np.ndarray, pad: int = 0, shift: int = 0) -> Held:
    """Rows with `pad` elements between them, `shift` elements behind a multiple of 256 bytes."""
    *lines, dim = values.shape
    view = memory(int(np.prod(lines)) * (dim + pad), shift).reshape(*lines, dim + pad)[..., :dim]
    view[...] = bits(values, 1)
    return ByDlpack(view)


class Floats(ByDlpack):
    """Of float32."""

    @property
    def numbers(self) -> np.ndarray:
        return self.view


def whole(numbers: Any) -> Held:
    """Of int32."""
    return ByDlpack(np.array(numbers, np.int32), code=0)


def expected(q: Any, k: Any, v: Any, scale: float, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Output and log-sum-exps of arrays (batch, rows, heads, d); query i sees the keys from i + low to i + high."""
    (_, s, h, _), (_, t, g, _) = q.shape, k.shape
    scores = scale * np.einsum("bihd,bjhd->bhij", q, np.repeat(k, h // g, axis=2))
    apart = np.arange(t)[None, :] - np.arange(s)[:, None]
    w = np.where((apart >= low) & (apart <= high), np.exp(scores), 0)
    total = w.sum(axis=3, keepdims=True)
    o = np.einsum("bhij,bjhd->bihd", w / np.where(total == 0, 1, total), np.repeat(v, h // g, axis=2))
    with np.errstate(divide="ignore"):
        return o, np.log(total[..., 0])


def test_calls_are_right() -> None:
    far = 1 << 40
    for number in range(24):
        rng = np.random.default_rng(number)
        b, g, s, t, d = (int(rng.integers(1, most)) for most in (3, 3, 9, 12, 20))
        h, dv = g * int(rng.integers(1, 4)), d if number % 2 else int(rng.integers(1, 20))
        q, k, v, out = (
            rng.standard_normal(shape).astype(np.float16).astype(np.float64)
            for shape in ((b, s, h, d), (b, t, g, d), (b, t, g, dv), (b, s, h, dv))
        )
        left, right = ((-1, -1), (-1, 0), (2, 1), (0, -1))[number % 4]
        align, by_head = ("end", "start")[number // 4 % 2], bool(number // 8 % 2)
        scale = (None, -0.75, 0.3)[number % 3]
        own = 0 if align == "start" else t - s
        o, lse = expected(q, k, v, 1 / np.sqrt(d) if scale is None else scale,
                          own - left if left >= 0 else -far, own + right if right >= 0 else far)  # fmt: skip
        given = [array(x.swapaxes(1, 2) if by_head else x, (0, 8, 3)[number % 3], number % 2) for x in (q, k, v, out)]
        sums = Floats(np.full((b, h, s), 7, np.float32), code=2)
        layout = "bhsd" if by_head else "bshd"
        more = {"causal": True} if (left, right) == (-1, 0) else {"window": (left, right)}
        got = attention(*given[:3], align=align, layout=layout, scale=scale, lse=sums, out=given[3], stream=64, **more)
        assert got is given[3]
        found = got.values().swapaxes(1, 2) if by_head else got.values()
        assert np.allclose(found, o, rtol=2e-3, atol=1e-3), number
        assert np.allclose(sums.numbers, lse, rtol=1e-5, atol=1e-4), number
        assert given[0].asked == [64]


def ragged(number: int) -> tuple[np.random.Generator, dict[str, Any], list[np.ndarray], list[np.ndarray]]:
    """Numbers, starts, and Q, K and V of each sequence and of all: rows, heads, d."""
    rng = np.random.default_rng(number)
    lengths = rng.integers(0, 7, (4, 2))
    g, d = 1 + number % 2, 8
    each = [[rng.standard_normal((n, heads, d)).astype(np.float16).astype(float)
             for n, heads in ((s, 2 * g), (t, g), (t, g))] for s, t in lengths]  # fmt: skip
    starts = [np.concatenate([[0], np.cumsum(lengths[:, side])]) for side in (0, 1)]
    return rng, starts, each, [np.concatenate(parts) for parts in zip(*each, strict=True)]


def wanted(each: Any, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Outputs of sequences, one behind the other, and their log-sum-exps."""
    found = []
    for q, k, v in each:
        high = k.shape[0] - q.shape[0] if causal else 99
        found.append(expected(q[None], k[None], v[None], 1 / np.sqrt(8), -99, high))
    return np.concatenate([o[0] for o, _ in found]), np.concatenate([lse[0] for _, lse in found], axis=1)


def test_ragged_batches_and_caches_are_read_where_they_lie() -> None:
    for number in range(12):
        rng, (starts_q, starts_k), each, (q, k, v) = ragged(number)
        causal, by_head = bool(number % 2), bool(number // 2 % 2)
        o, lse = wanted(each, causal)
        lengths, page = np.diff(starts_k), (16, 32)[number % 2]
        pools = []
        table = rng.permutation(4)[:, None]  # of one page each
        for side in (1, 2):  # K and V in pages, which hold other numbers too
            pool = rng.standard_normal((4, page, *k.shape[1:]))
            for at, sequence in zip(table[:, 0], each, strict=True):
                pool[at, : len(sequence[side])] = sequence[side]
            pools.append(pool)
        caches = [pool[table[:, 0]] for pool in pools]
        for keys, more in (
            ((k, v), {"starts": (whole(starts_q), whole(starts_k)), "longest": (6, 6)}),
            (pools, {"starts": (whole(starts_q), None), "lengths": whole(lengths), "pages": whole(table)}),
            (caches, {"starts": (whole(starts_q), None), "lengths": whole(lengths), "longest": (6, 1)}),
        ):
            given = [array(x.swapaxes(-2, -3) if by_head else x, 8 * (number % 2)) for x in (q, *keys, q)]
            sums = Floats(np.full(lse.shape, 7, np.float32), code=2)
            words = {"layout": "bhsd" if by_head else "bshd", "causal": causal, "lse": sums, "stream": 64, **more}
            got = attention(*given[:3], out=given[3], **words)
            found = got.values().swapaxes(-2, -3) if by_head else got.values()
            assert np.allclose(found, o, rtol=2e-3, atol=1e-3), (number, sorted(more))
            assert np.allclose(sums.numbers, lse, rtol=1e-5, atol=1e-4), (number, sorted(more))


def test_few_queries_of_caches_share_the_keys_among_blocks() -> None:
    """In pages, from a ragged Q or one of batches; in a workspace, then without one."""
    for number, lengths in enumerate([[2000, 0, 1234], [1, 2047, 1500]]):
        rng = np.random.default_rng(number)
        counts = [2, 1, 3] if number else [2, 2, 2]
        each = [[rng.standard_normal((n, heads, 8)).astype(np.float16).astype(float)
                 for n, heads in ((s, 4), (t, 2), (t, 2))] for s, t in zip(counts, lengths, strict=True)]  # fmt: skip
        o, lse = wanted(each, causal=True)
        table = rng.permutation(3 * 64).reshape(3, 64)
        pools = [np.full((3 * 64, 32, 2, 8), np.nan) for _ in range(2)]
        for pages, sequence in zip(table, each, strict=True):
            for pool, keys in zip(pools, sequence[1:], strict=True):
                for j, row in enumerate(keys):
                    pool[pages[j // 32], j % 32] = row
        q = np.concatenate([sequence[0] for sequence in each])
        starts = {"starts": (whole([0, *np.cumsum(counts)]), None), "longest": (3, 2048)}
        shape, more = ((*q.shape,), starts) if number else ((3, 2, *q.shape[1:]), {})
        given = [array(x) for x in (q.reshape(shape), *pools, np.zeros(shape))]
        for room in (1 << 20, 1 << 8):
            sums = Floats(np.full(lse.shape if number else (3, 4, 2), 7, np.float32), code=2)
            space, before = np.full(room + 256, 0xFF, np.uint8), FAKE.fake_launches()
            given[3].view[...] = 0
            at = -space.ctypes.data % 256
            attention(*given[:3], out=given[3], lse=sums, causal=True, lengths=whole(lengths), pages=whole(table),
                      stream=64, workspace=ByInterface(space[at : at + room], typestr="|u1"), **more)  # fmt: skip
            found = sums.numbers if number else sums.numbers.swapaxes(0, 1).reshape(lse.shape)
            assert np.allclose(given[3].values().reshape(o.shape), o, rtol=2e-3, atol=1e-3), number
            assert np.allclose(found, lse, rtol=1e-5, atol=1e-4), number
            assert FAKE.fake_launches() - before == 1 + (room > 1 << 8), number


def test_what_is_wrong_with_sequences_is_said() -> None:
    q, k, pool = (array(np.ones(shape)) for shape in ((6, 2, 8), (9, 2, 8), (3, 16, 2, 8)))
    starts, lengths, pages = whole([0, 2, 6]), whole([4, 5]), whole([[0, 1], [2, 0]])
    for given, more, status, said in (
        ((q, k, k), {}, 1, "q has 3 dimensions, expected 4 in order bshd"),
        ((q, pool, pool), {"starts": (starts, starts)}, 1, "k has 4 dimensions, expected 3 in order shd"),
        ((q, k, k), {"starts": starts}, 1, "starts is .*, expected two arrays: of q, and of k and v"),
        ((q, k, k), {"starts": (starts, whole([0, 9]))}, 1, r"starts_k is \(2,\): batch and"),
        (
            (q, k, k),
            {"starts": (starts, ByDlpack(np.zeros(3), code=1))},
            3,
            "starts_k is 8, expected int32: convert it",
        ),
        (
            (q, k, k),
            {"starts": (starts, pages)},
            1,
            r"starts_k has shape \(2, 2\) and strides \(2, 1\), expected 1 dim",
        ),
        ((q, k, k), {"starts": (starts, whole([]))}, 1, r"starts_k has shape \(0,\)"),
        ((q, k, k), {"starts": (starts, starts), "longest": (0, 4)}, 1, "longest is 0, 4: each must be 1 or more"),
        ((q, k, k), {"starts": (starts, starts), "longest": 4}, 1, "longest is 4, expected two integers"),
        ((q, k, k), {"starts": (starts, starts), "lengths": lengths}, 1, "starts of k and lengths exclude each other"),
        ((q, pool, pool), {"starts": (starts, None), "pages": pages}, 1, "pages need lengths: the keys of each"),
        ((q, pool, pool), {"starts": (starts, None), "pages": pages, "lengths": whole([1])}, 1, "batch and numbers"),
        (
            (q, *[array(np.ones((3, 24, 2, 8)))] * 2),
            {"starts": (starts, None), "pages": pages, "lengths": lengths},
            1,
            "k has pages of 24 keys, expected one of 16, 32, 64, 128, 256",
        ),
        (
            (q, k, k),
            {"starts": (starts, ByDlpack(np.zeros(3, np.int32), code=0, device=1))},
            9,
            "starts_k is on device 1, q on 0: bring them to one",
        ),
    ):
        before = FAKE.fake_launches()
        with pytest.raises((TypeError, ValueError, RuntimeError), match=said) as caught:
            attention(*given, **{"out": array(np.ones(q.view.shape)), "stream": 64, **more})
        assert caught.value.status == status, said
        assert FAKE.fake_launches() == before


def test_a_record_whose_lists_cannot_be_is_refused() -> None:
    of = tensorop.load(sys.argv[1]).operators["attention"]
    handle, found = of.ffi.new("tensorop_attention_handle *"), of.ffi.new("size_t *")
    assert of.lib.tensorop_attention_create(handle, 0) == 0
    usual = {
        "type": 1,
        "batch": 2,
        "heads": 1,
        "key_heads": 1,
        "queries": 4,
        "keys": 64,
        "dim": 8,
        "scale": 1,
        "left": -1,
    }
    steps = {f"{operand}_row": 8 for operand in "qkvo"} | {f"{operand}_batch": 512 for operand in "qkvo"}
    usual |= {**steps, "right": -1, "lengths": 4096, "pages": 4096, "page": 16, "pages_row": 4}
    for status, more in (
        (0, {}), (1, {"page": 8}), (1, {"page": 48}), (1, {"page": 512}), (1, {"pages_row": 3}),
        (0, {"pages_row": 3, "batch": 1}), (1, {"lengths": 0}), (1, {"starts_k": 4096}), (1, {"most_keys": -1}),
        (1, {"most_queries": -1}), (2, {"lengths": 4098}), (2, {"pages": 4097}), (2, {"starts_q": 4097}),
        (2, {"lengths": 0, "pages": 0, "starts_k": 4097}), (0, {"v_dim": -1}),
        (1, {"v_dim": 0, "align": 2}), (0, {"v_dim": 8, "align": 3}), (4, {"v_dim": 257, "align": 2}),
        (1, {"align": 4}), (4, {"keys": 1 << 30, "pages_row": 1 << 26}),
    ):  # fmt: skip
        problem = of.ffi.new("struct tensorop_attention_problem *", usual | more)
        assert of.lib.tensorop_attention_workspace(handle[0], problem, 4096, 4096, 4096, 4096, found) == status, more
    assert of.lib.tensorop_attention_destroy(handle[0]) == 0


def test_few_queries_share_the_keys_among_blocks() -> None:
    """Each call twice in a workspace that begins as NaN, then in one that is too small, where another kernel serves."""
    for number, (b, h, g, s, t, d, dv) in enumerate(
        [
            (1, 4, 1, 1, 4096, 32, 32),
            (2, 6, 2, 3, 3000, 20, 36),
            (1, 8, 8, 1, 2100, 24, 24),
            (2, 4, 2, 2, 2500, 100, 51),
        ]
    ):
        rng = np.random.default_rng(number)
        q, k, v, out = (
            rng.standard_normal(shape).astype(np.float16).astype(np.float64)
            for shape in ((b, s, h, d), (b, t, g, d), (b, t, g, dv), (b, s, h, dv))
        )
        left, right, align = [(-1, -1, "end"), (1500, 0, "end"), (-1, 0, "end"), (0, 0, "start")][number]
        own = 0 if align == "start" else t - s
        o, lse = expected(q, k, v, 0.2, own - left if left >= 0 else -t, own + right if right >= 0 else t)
        by_head = number % 2 == 1
        given = [array(x.swapaxes(1, 2) if by_head else x, -x.shape[-1] % 8) for x in (q, k, v, out)]
        more = {"window": (left, right), "align": align, "scale": 0.2, "layout": "bhsd" if by_head else "bshd"}
        for room in (1 << 20, 1 << 20, 1 << 8):
            sums = Floats(np.full((b, h, s), 7, np.float32), code=2)
            space, before = np.full(room + 256, 0xFF, np.uint8), FAKE.fake_launches()
            given[3].view[...] = 0
            at = -space.ctypes.data % 256
            attention(*given[:3], out=given[3], lse=sums, stream=64,
                      workspace=ByInterface(space[at : at + room], typestr="|u1"), **more)  # fmt: skip
            found = given[3].values().swapaxes(1, 2) if by_head else given[3].values()
            assert np.allclose(found, o, rtol=2e-3, atol=1e-3), number
            assert np.allclose(sums.numbers, lse, rtol=1e-5, atol=1e-4), number
            assert FAKE.fake_launches() - before == 1 + (room > 1 << 8), number


def test_a_head_that_no_kernel_serves_is_refused() -> None:
    one = [array(np.ones((1, 4, 1, 264))) for _ in range(4)]
    with pytest.raises(ValueError, match="q has 264 numbers a head, this library serves up to 256") as caught:
        attention(*one[:3], out=one[3], stream=64)
    assert caught.value.status == 4
    short = array(np.ones((1, 4, 1, 8)))
    with pytest.raises(ValueError, match="v has 264 numbers a head, this library serves up to 256") as caught:
        attention(short, short, one[2], out=one[3], stream=64)
    assert caught.value.status == 4


def test_what_is_wrong_is_said_with_status_and_next_step() -> None:
    def ones(*shape: int) -> Held:
        return array(np.ones(shape))

    q, k = ones(1, 4, 6, 16), ones(1, 5, 2, 16)
    for given, more, status, said in (
        ((ones(4, 6, 16), k, k), {}, 1, "q has 3 dimensions, expected 4 in order bshd"),
        ((q, k, ones(1, 6, 2, 16)), {}, 1, "they must agree but for numbers of a head"),
        ((q, ones(1, 5, 4, 16), ones(1, 5, 4, 16)), {}, 1, "q has 6 heads and k has 4: those of k must divide"),
        ((q, ones(1, 5, 2, 8), ones(1, 5, 2, 8)), {}, 1, "batch and numbers of a head must agree"),
        ((ByDlpack(memory(768).reshape(1, 4, 6, 32)[..., ::2]), k, k), {}, 1, "whose last axis is contiguous"),
        (
            (q, ByDlpack(memory(160).reshape(1, 5, 2, 16), code=4), k),
            {},
            3,
            "k is bfloat16, this library holds float16: convert it",
        ),
        ((q, k, k), {"layout": "sbhd"}, 1, "layout is 'sbhd', expected 'bshd' or 'bhsd'"),
        ((q, k, k), {"align": "left"}, 1, "align is 'left', expected 'end' or 'start'"),
        ((q, k, k), {"window": 3}, 1, "window is 3, expected two integers"),
        ((q, k, k), {"window": (-2, 0)}, 1, "window is -2, 0: each must be -1 or more"),
        ((q, k, k), {"scale": float("inf")}, 1, "an argument is invalid"),
        ((q, k, k), {"scale": "2"}, 1, "scale is '2': it must be a real number"),
        ((q, k, k), {"causal": 2}, 1, "causal is 2: it must be True or False"),
        ((q, k, k), {"out": ones(1, 4, 6, 8)}, 1, "out is 1 x 4 x 6 x 8, the output is 1 x 4 x 6 x 16"),
        ((q, k, k), {"lse": ones(1, 6, 4)}, 3, "lse is float16, of float16 it must be float32"),
        ((q, k, k), {"out": q}, 1, "out overlaps q"),
    ):
        before = FAKE.fake_launches()
        words = {"out": ones(1, 4, 6, 16), "stream": 64, **more}
        with pytest.raises((TypeError, ValueError, RuntimeError), match=said) as caught:
            attention(*given, **words)
        assert caught.value.status == status, said
        assert FAKE.fake_launches() == before


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
    sys.stdout.write("as expected\n")
