"""Calls an attention library from PyTorch on a GPU: dense, ragged and paged, compiled, under autocast, in CUDA graphs.

    python benchmarks/cuda/attention_calls.py DIR  # a product of `tensorop attention`; ends with `right`

Each result is compared with torch's own attention in float64, sequence by sequence.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import tensorop

H, G, D, PAGE = 8, 2, 128, 64
LENGTHS = (700, 1, 0, 1068, 65)  # of five sequences


def expected(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """q: (heads, queries, d); k, v: (key heads, keys, d). Causal masks end at the last key; without keys it is 0."""
    s, t = q.shape[1], k.shape[1]
    k, v = (one.repeat_interleave(q.shape[0] // k.shape[0], 0).double() for one in (k, v))
    scores = q.double() @ k.transpose(1, 2) / math.sqrt(q.shape[2])
    if causal:
        hidden = torch.ones(s, t, dtype=torch.bool, device=q.device).triu(t - s + 1)
        scores = scores.masked_fill(hidden, -math.inf)
    return torch.nan_to_num(torch.softmax(scores, 2)) @ v


def close(what: str, got: Any, want: Any) -> None:
    error = float((got.double() - want).abs().max()) if got.numel() else 0.0
    print(f"{what}: largest error {error:.2g}", flush=True)
    assert error < 2e-2, what


def made(*shape: int, dtype: Any = torch.bfloat16) -> Any:
    return torch.randn(*shape, dtype=dtype, device="cuda")


def ints(*values: Any) -> Any:
    return torch.tensor(*values, dtype=torch.int32, device="cuda")


def dense(attention: Any) -> None:
    for s, t in ((1024, 1024), (33, 1500), (1, 5000), (5, 70)):
        q, k, v = made(3, H, s, D), made(3, G, t, D), made(3, G, t, D)
        for causal in (False, True):
            got = attention(q, k, v, is_causal=causal, align="end", enable_gqa=True)
            want = torch.stack([expected(q[i], k[i], v[i], causal) for i in range(3)])
            close(f"dense s{s}t{t} causal={causal}", got, want)


def ragged(attention: Any) -> None:
    starts = ints([0, *torch.tensor(LENGTHS).cumsum(0).tolist()])
    rows = sum(LENGTHS)
    q, k, v = made(rows, H, D), made(rows, G, D), made(rows, G, D)
    for longest in ((0, 0), (1068, 1068)):
        for causal in (False, True):
            got = attention(q, k, v, is_causal=causal, starts=(starts, starts), longest=longest, enable_gqa=True)
            at = 0
            for length in LENGTHS:
                part = slice(at, at := at + length)
                want = expected(*(one[part].transpose(0, 1) for one in (q, k, v)), causal).transpose(0, 1)
                close(f"ragged {length} longest={longest[0]} causal={causal}", got[part], want)


def paged(attention: Any) -> None:
    pages_of = -(-max(LENGTHS) // PAGE)
    table = torch.randperm(2 * len(LENGTHS) * pages_of, device="cuda")[: len(LENGTHS) * pages_of]
    pages, lengths = table.to(torch.int32).view(len(LENGTHS), pages_of), ints(LENGTHS)
    k, v = (made(2 * len(LENGTHS) * pages_of, PAGE, G, D).transpose(1, 2) for _ in range(2))
    for s in (1, 7, 200):
        q = made(len(LENGTHS), H, s, D)
        words = {"align": "end", "enable_gqa": True, "lengths": lengths, "pages": pages}
        got = attention(q, k, v, is_causal=True, **words)
        for i, length in enumerate(LENGTHS):
            own = [one[pages[i].long()].transpose(0, 1).reshape(G, -1, D)[:, :length] for one in (k, v)]
            close(f"paged s{s} of {length} keys", got[i], expected(q[i], *own, True))


def in_graphs(attention: Any) -> None:
    q, k, v = made(2, H, 1, D), made(2, G, 3000, D), made(2, G, 3000, D)

    def call(q: Any, k: Any, v: Any) -> Any:
        return attention(q, k, v, enable_gqa=True)

    want = torch.stack([expected(q[i], k[i], v[i], False) for i in range(2)])
    close("compiled", torch.compile(call, fullgraph=True)(q, k, v), want)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        got = attention(q.float(), k.float(), v.float(), enable_gqa=True)
    assert got.dtype == torch.bfloat16, got.dtype
    close("autocast", got, want)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        call(q, k, v)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call(q, k, v)
    first = None
    for _ in range(1000):
        graph.replay()
        first = out.clone() if first is None else first
        assert torch.equal(first, out)
    close("captured, 1000 replays of the same bits", out, want)


def main(folder: str) -> None:
    torch.manual_seed(0)
    attention = tensorop.load(folder).attention.torch()
    for check in (dense, ragged, paged, in_graphs):
        check(attention)
    print("right")


if __name__ == "__main__":
    main(sys.argv[1])
