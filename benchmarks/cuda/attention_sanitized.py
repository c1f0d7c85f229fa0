"""Small calls of an attention library under compute-sanitizer: memcheck, racecheck and synccheck.

    python benchmarks/cuda/attention_sanitized.py DIR  # a product of `tensorop attention`; a line for each tool

It needs PyTorch with CUDA and compute-sanitizer. The tools watch kernels of the library alone. Each result is compared
with float64 too; both dtypes, each head size, and dense, strided, ragged and paged calls take their turn.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import tensorop
from benchmarks.cuda.attention_calls import expected

TOOLS = ("memcheck", "racecheck", "synccheck")
HEADS = ((32, 32), (64, 64), (80, 80), (96, 96), (128, 128), (192, 128), (192, 192), (256, 256))  # of keys, of values
LENGTHS, PAGE = (130, 0, 1, 67), 16
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def results(attention: Any, dtype: Any, d: int, v: int) -> Iterator[tuple[str, Any, Any]]:
    """What is called, the result, and what is right; operands are drawn on the host, so that no other kernel runs."""

    def made(*shape: int) -> Any:
        return torch.randn(*shape, dtype=dtype)

    def right(q: Any, k: Any, values: Any, causal: bool) -> Any:
        return torch.stack([expected(*one, causal) for one in zip(q, k, values, strict=True)])

    for s, t in ((1, 700), (5, 300), (200, 200)):
        for causal in (False, True):
            q, k, values = made(2, 4, s, d), made(2, 2, t, d), made(2, 2, t, v)
            on_device = [one.cuda() for one in (q, k, values)]
            got = attention(*on_device, is_causal=causal, align="end", enable_gqa=True)
            yield f"s{s}t{t} causal={causal}", got, right(q, k, values, causal)
    whole = made(2, 2, 90, d + 1)  # rows that are not aligned
    turned = whole.cuda()[..., :d]
    plain, values = whole[..., :d], made(2, 2, 90, v)
    yield "strided", attention(turned, turned, values.cuda()), right(plain, plain, values, False)
    starts = torch.tensor([0, *torch.tensor(LENGTHS).cumsum(0).tolist()], dtype=torch.int32)
    q, k, values = made(sum(LENGTHS), 4, d), made(sum(LENGTHS), 2, d), made(sum(LENGTHS), 2, v)
    on_device, begins = [one.cuda() for one in (q, k, values)], starts.cuda()
    got = attention(*on_device, starts=(begins, begins), longest=(130, 130), is_causal=True, enable_gqa=True)
    rows = [slice(starts[i], starts[i + 1]) for i in range(len(LENGTHS))]
    want = [expected(*(one[row].transpose(0, 1) for one in (q, k, values)), True).transpose(0, 1) for row in rows]
    yield "ragged", got, torch.cat(want)
    table = torch.randperm(4 * 10)[: 4 * 9].to(torch.int32).view(4, 9)
    k, values = made(4 * 10, PAGE, 2, d).transpose(1, 2), made(4 * 10, PAGE, 2, v).transpose(1, 2)
    of_pages = {"pages": table.cuda(), "lengths": torch.tensor(LENGTHS, dtype=torch.int32).cuda()}
    for s in (1, 70):
        q = made(4, 4, s, d)
        got = attention(q.cuda(), k.cuda(), values.cuda(), align="end", enable_gqa=True, **of_pages)
        own = [[one[table[i].long()].transpose(0, 1).reshape(2, -1, one.shape[3])[:, :n] for one in (k, values)]
               for i, n in enumerate(LENGTHS)]  # fmt: skip
        yield f"paged s{s}", got, torch.stack([expected(q[i], *own[i], False) for i in range(4)])


def calls(folder: str, part: int) -> None:
    """Every third head size from part on."""
    torch.manual_seed(part)
    attention = tensorop.load(folder).attention.torch()
    for name, dtype in DTYPES.items():
        for d, v in HEADS[part::3]:
            for what, got, want in results(attention, dtype, d, v):
                error = float((got.cpu().double() - want).abs().max())
                print(f"call {name} d{d}v{v} {what}: largest error {error:.2g}", flush=True)
                assert error < 2e-2, what


def main(folder: str) -> int:
    failed = 0
    for tool in TOOLS:
        words = ["compute-sanitizer", "--tool", tool, "--kernel-name", "kns=tensorop_kernel", "--error-exitcode", "9"]
        parts = [
            subprocess.Popen([*words, sys.executable, __file__, folder, str(part)], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for part in range(3)
        ]  # fmt: skip
        said = "".join(part.communicate()[0] for part in parts)
        print(said, file=sys.stderr)
        counted = sum(map(int, re.findall(r"(?:ERROR SUMMARY:|RACECHECK SUMMARY:) (\d+)", said)))
        statuses = [part.returncode for part in parts]
        failed += any(statuses)
        print(f"{tool}: {len(re.findall('^call ', said, re.M))} calls, {counted} found, exit {statuses}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) == 3:
        calls(sys.argv[1], int(sys.argv[2]))
    else:
        sys.exit(main(sys.argv[1]))
