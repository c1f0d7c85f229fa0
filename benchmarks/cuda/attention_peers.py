"""Times attention on a GPU: PyTorch's cuDNN and flash back ends, FlashAttention 3, and libraries of ours, side by side.

    python benchmarks/cuda/attention_peers.py > peers.jsonl                 # the problems of each class
    python benchmarks/cuda/attention_peers.py --class hd128 decode          # some classes alone
    python benchmarks/cuda/attention_peers.py --drawn 1 2 3                 # 24 drawn problems for each seed
    python benchmarks/cuda/attention_peers.py --ours build/attention-cuda-sm80 --fa3 FOLDER

It needs PyTorch with CUDA. FOLDER is an unpacked wheel of fa3-fwd. The first line describes the machine; each further
line is a problem with the times of its arms, in microseconds for one call.

The calls of an arm are captured in one CUDA graph. They take their operands in turn from enough sets that L2 holds
none of them: 180 MB at least. Each round launches the graph of each arm once, every second round in reverse order, so
that all arms see the same clock and temperature. Before that, some rows of each arm's result are compared with float64.
An arm that cannot compute a problem, or computes it wrongly, has the reason in place of its times.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

ROTATED_BYTES, MOST_BYTES = 180e6, 60e9  # of all sets of operands
GRAPH_US, HEAT_S, ROUNDS = 2000.0, 0.25, 9
DRAWN, MOST_FLOPS = 24, 1.2e13  # problems of a seed; operations of a drawn one
LOOSE = {"bf16": 2e-2, "f16": 4e-3}  # largest error of a row that counts as right: a few roundings of the result
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
FEW = 16  # queries up to which FlashAttention 3 may split the keys
RAGGED_SEED, RAGGED = 1, ((8, 1024, 8192), (64, 128, 2048))  # sequences of a ragged batch, and rows of each
Operands = tuple[torch.Tensor, ...]  # Q, K, V; then where ragged sequences begin; or K and V in pages, table, lengths


@dataclass(frozen=True)
class Problem:
    """One call. left: keys that a query sees before its own, -1: all; causal masks are aligned to the last key.
    lengths: of a ragged batch, queries and keys of each sequence; s and t are those of the longest one then."""

    kind: str  # its class
    b: int
    h: int
    g: int
    s: int
    t: int
    d: int
    v: int
    causal: bool = False
    left: int = -1
    dtype: str = "bf16"
    page: int = 0  # keys of a page; then libraries of ours read pages in an arm more
    lengths: tuple[int, ...] = ()

    @property
    def sequences(self) -> tuple[tuple[int, int], ...]:
        """Queries and keys of each."""
        return tuple((rows, rows) for rows in self.lengths) or ((self.s, self.t),) * self.b

    def pairs(self, s: int, t: int) -> int:
        """Pairs of a query and a key that it sees, in one head of a sequence."""
        own = range(t - s, t)
        if not self.causal and self.left < 0:
            return s * t
        high = [min(one + 1, t) if self.causal else t for one in own]
        low = [max(0, one - self.left) if self.left >= 0 else 0 for one in own]
        return sum(max(0, end - begin) for begin, end in zip(low, high, strict=True))

    @property
    def flops(self) -> float:
        pairs = sum(count * self.pairs(*sizes) for sizes, count in Counter(self.sequences).items())
        return 2.0 * self.h * pairs * (self.d + self.v)

    @property
    def bytes(self) -> int:
        """Of all operands in memory."""
        queries, keys = map(sum, zip(*self.sequences, strict=True))
        return 2 * (self.h * queries + self.g * keys) * (self.d + self.v)


@dataclass
class Arm:
    """A library with its calls of one problem. refused: why it has no times"""

    name: str
    call: Callable[[Operands], torch.Tensor]
    refused: str = ""
    graph: torch.cuda.CUDAGraph | None = None
    us: list[float] = field(default_factory=list)


def of_classes() -> Iterator[Problem]:
    """The problems by class: 16,384 tokens and 2,048 numbers a row, if nothing else is said."""
    for d in (64, 128, 256):
        for causal in (False, True):
            for s in (512, 1024, 2048, 4096, 8192, 16384):
                h = 2048 // d
                yield Problem(f"hd{d}", max(1, 16384 // s), h, h, s, s, d, d, causal)
    for s in (1024, 4096, 8192):
        yield Problem("gqa128", 16384 // s, 32, 8, s, s, 128, 128, True)
    for s in (2048, 4096, 8192):
        yield Problem("mla192", 8192 // s, 16, 16, s, s, 192, 128, True)
    for s in (128, 256, 512):
        yield Problem("short", 32, 16, 16, s, s, 64, 64)
        yield Problem("short", 32, 16, 16, s, s, 128, 128, True)
    for s in (4096, 8192, 16384):
        yield Problem("window", 16384 // s, 16, 16, s, s, 128, 128, True, 1024)
    for s in (1024, 4096):
        yield Problem("f16", 16384 // s, 16, 16, s, s, 128, 128, dtype="f16")
    for b, t in ((1, 4096), (1, 32768), (1, 131072), (8, 4096), (8, 32768), (64, 4096), (64, 32768)):
        yield Problem("decode", b, 64 if t == 131072 else 32, 8, 1, t, 128, 128)
    yield Problem("decode", 8, 32, 32, 1, 4096, 128, 128)
    for b, t in ((8, 4096), (8, 32768), (64, 4096)):
        yield Problem("pages", b, 32, 8, 1, t, 128, 128, page=64)
    rng = random.Random(RAGGED_SEED)
    for b, low, high in RAGGED:
        lengths = tuple(rng.randint(low, high) for _ in range(b))
        most = max(lengths)
        for d, h, g in ((64, 32, 32), (128, 16, 16), (128, 32, 8)):
            for causal in (False, True) if h == g else (True,):
                yield Problem("ragged", b, h, g, most, most, d, d, causal, lengths=lengths)


def drawn(seed: int) -> Iterator[Problem]:
    """The problems of a seed: sizes are log-uniform; every fourth is a decode, half of the others are causal."""
    rng, count = random.Random(seed), 0

    def size(low: int, high: int, step: int = 1) -> int:
        return max(step, round(math.exp(rng.uniform(math.log(low), math.log(high))) / step) * step)

    while count < DRAWN:
        d, g = rng.choice((64, 64, 80, 96, 128, 128, 128, 256)), rng.choice((1, 2, 4, 8, 8, 16))
        h, decode = g * rng.choice((1, 1, 2, 4, 8)), count % 4 == 3
        if decode:
            one = Problem(f"drawn-{seed}", size(1, 64), h, g, rng.randint(1, 16), size(512, 131072), d, d)
        else:
            s = size(64, 16384, rng.choice((1, 8, 64)))
            t = s if rng.random() < 0.7 else size(64, 16384)
            one = Problem(f"drawn-{seed}", size(1, 32), h, g, s, t, d, d, s == t and rng.random() < 0.6)
        if one.flops <= MOST_FLOPS and one.bytes <= MOST_BYTES / 8 and h <= 64:
            count += 1
            yield one


def arms_of(problem: Problem, fa3: Any, ours: dict[str, Any]) -> list[Arm]:
    """One arm for each library that is there."""

    def of_torch(backend: SDPBackend) -> Callable[[Operands], torch.Tensor]:
        def call(of: Operands) -> torch.Tensor:
            with sdpa_kernel([backend]):
                return functional.scaled_dot_product_attention(
                    *of[:3], is_causal=problem.causal, enable_gqa=problem.h != problem.g
                )

        return call

    def flash_by_name(of: Operands) -> torch.Tensor:
        """PyTorch's flash back end below its function, which has neither windows nor masks aligned to the last key."""
        behind = 0 if problem.causal else -1
        found = torch.ops.aten._flash_attention_forward(
            *turned(of), None, None, problem.s, problem.t, 0.0, problem.causal, False,
            window_size_left=problem.left, window_size_right=behind,
        )  # fmt: skip
        return found[0].transpose(1, 2)

    def of_fa3(of: Operands) -> torch.Tensor:
        window = (problem.left, 0 if problem.causal else -1) if problem.left >= 0 else (-1, -1)
        splits = 0 if problem.s <= FEW else 1  # 0: as many as it chooses
        words = {"causal": problem.causal, "window_size": window, "num_splits": splits}
        return first(fa3.flash_attn_func(*turned(of), **words)).transpose(1, 2)

    def of_ours(attention: Any) -> Callable[[Operands], torch.Tensor]:
        window = (problem.left, -1) if problem.left >= 0 else None
        return lambda of: attention(*of[:3], layout="bhsd", causal=problem.causal, window=window)

    def of_pages(attention: Any) -> Callable[[Operands], torch.Tensor]:
        return lambda of: attention(of[0], *of[3:5], layout="bhsd", lengths=of[6], pages=of[5])

    if problem.lengths:
        return ragged_arms_of(problem, fa3, ours)
    window, uneven = problem.left >= 0, problem.causal and problem.s != problem.t
    why = "no sliding window" if window else "its causal mask begins at the first key" if uneven else ""
    found = [Arm("cudnn", of_torch(SDPBackend.CUDNN_ATTENTION), why)]
    found.append(Arm("flash", flash_by_name if why else of_torch(SDPBackend.FLASH_ATTENTION)))
    if fa3 is not None:
        found.append(Arm("fa3", of_fa3))
    found += [Arm(name, of_ours(library.attention)) for name, library in ours.items()]
    pages = ours if problem.page else {}
    return found + [Arm(f"{name}, pages", of_pages(library.attention)) for name, library in pages.items()]


def ragged_arms_of(problem: Problem, fa3: Any, ours: dict[str, Any]) -> list[Arm]:
    """The same for sequences one behind the other; PyTorch's back ends are called as torch.nn.attention.varlen does."""
    causal, longest = problem.causal, (problem.s, problem.t)

    def of_cudnn(of: Operands) -> torch.Tensor:
        starts = of[3], of[3], *longest
        return first(torch.ops.aten._cudnn_attention_forward(*of[:3], None, *starts, False, 0.0, causal, False))

    def of_flash(of: Operands) -> torch.Tensor:
        return first(torch.ops.aten._flash_attention_forward(*of[:3], of[3], of[3], *longest, 0.0, causal, False))

    def of_fa3(of: Operands) -> torch.Tensor:
        return first(fa3.flash_attn_varlen_func(*of[:3], of[3], of[3], *longest, causal=causal))

    def of_ours(attention: Any) -> Callable[[Operands], torch.Tensor]:
        return lambda of: attention(*of[:3], causal=causal, starts=(of[3], of[3]), longest=longest)

    found = [Arm("cudnn", of_cudnn), Arm("flash", of_flash)]
    if fa3 is not None:
        found.append(Arm("fa3", of_fa3))
    return found + [Arm(name, of_ours(library.attention)) for name, library in ours.items()]


def first(found: Any) -> torch.Tensor:
    """The result of a function that may return log-sum-exps and more with it."""
    result: torch.Tensor = found[0] if isinstance(found, tuple | list) else found
    return result


def turned(of: Operands) -> Iterator[torch.Tensor]:
    """Q, K and V with rows before heads."""
    return (one.transpose(1, 2) for one in of[:3])


def operands(problem: Problem) -> list[Operands]:
    """Sets of N(0, 1), as [batch, rows, heads, numbers] in memory; of a ragged batch [all rows, heads, numbers]."""
    count = max(2, math.ceil(ROTATED_BYTES / problem.bytes))
    starts = [0, *accumulate(problem.lengths)]

    def made(heads: int, rows: int, numbers: int) -> torch.Tensor:
        shape = (starts[-1],) if problem.lengths else (problem.b, rows)
        of = torch.randn(*shape, heads, numbers, device="cuda", dtype=DTYPES[problem.dtype])
        return of if problem.lengths else of.transpose(1, 2)

    p = problem
    sets = [(made(p.h, p.s, p.d), made(p.g, p.t, p.d), made(p.g, p.t, p.v)) for _ in range(count)]
    if p.lengths:
        return [(*of, torch.tensor(starts, dtype=torch.int32, device="cuda")) for of in sets]
    return [(*of, *paged(of[1], of[2], p.page)) for of in sets] if p.page else sets


def paged(k: torch.Tensor, v: torch.Tensor, page: int) -> Operands:
    """The same keys and values in pages that lie in no order: (pages, heads, page, d); their table, and the lengths."""
    b, g, t, _ = k.shape
    order = torch.randperm(b * t // page, device="cuda")

    def scattered(of: torch.Tensor) -> torch.Tensor:
        pages = of.transpose(1, 2).reshape(-1, page, g, of.shape[-1])
        return pages[torch.argsort(order)].transpose(1, 2)

    lengths = torch.full((b,), t, dtype=torch.int32, device="cuda")
    return scattered(k), scattered(v), order.int().view(b, -1), lengths


def error(problem: Problem, of: Operands, got: torch.Tensor) -> float:
    """The largest error of up to 32 rows of the first and the last head, against float64."""
    starts, most = [0, *accumulate(problem.lengths)], 0.0

    def part(one: torch.Tensor, number: int, head: int) -> torch.Tensor:
        return one[starts[number] : starts[number + 1], head] if problem.lengths else one[number, head]

    for number, head in ((0, 0), (problem.b - 1, problem.h - 1)):
        s, t = problem.sequences[number]
        rows = torch.linspace(0, s - 1, min(32, s), device="cuda").round().long()
        kept = head // (problem.h // problem.g)
        q = part(of[0], number, head)[rows].double()
        k, v = (part(one, number, kept).double() for one in of[1:3])
        own, key = (rows + t - s)[:, None], torch.arange(t, device="cuda")[None, :]
        seen = torch.ones(len(rows), t, dtype=torch.bool, device="cuda")
        if problem.causal:
            seen &= key <= own
        if problem.left >= 0:
            seen &= key >= own - problem.left
        scores = (q @ k.T / math.sqrt(problem.d)).masked_fill(~seen, -math.inf)
        apart = part(got, number, head)[rows].double() - torch.softmax(scores, 1) @ v
        most = max(most, float(apart.abs().max()) if bool(torch.isfinite(apart).all()) else math.inf)
    return most


def capture(arm: Arm, sets: list[Operands], launches: int) -> torch.cuda.CUDAGraph:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # first calls allocate and choose, which no capture may
        for of in sets[:2]:
            arm.call(of)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(launches):
            arm.call(sets[i % len(sets)])
    return graph


def took(arm: Arm, launches: int) -> float:
    """Microseconds of one call."""
    begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    assert arm.graph is not None
    begun.record()
    arm.graph.replay()
    ended.record()
    ended.synchronize()
    return begun.elapsed_time(ended) * 1e3 / launches


def prepared(problem: Problem, arms: list[Arm], sets: list[Operands]) -> int:
    """Captures each arm's graph; the number of launches in it, a multiple of the sets."""
    fastest = math.inf
    for arm in arms:
        if arm.refused:
            continue
        try:
            wrong = error(problem, sets[0], arm.call(sets[0]))
            if not wrong <= LOOSE[problem.dtype]:
                arm.refused = f"wrong: an error of {wrong:.3g}"
                continue
            arm.graph = capture(arm, sets, len(sets))
            took(arm, len(sets))
            fastest = min(fastest, took(arm, len(sets)))
        except Exception as refusal:  # of a library, in words of its own
            arm.refused = str(refusal).strip().split("\n")[0][-120:] or type(refusal).__name__
            torch.cuda.synchronize()
    if not math.isfinite(fastest):
        return len(sets)
    turns = max(1, min(2000 // len(sets), math.ceil(GRAPH_US / (fastest * len(sets)))))
    for arm in arms if turns > 1 else ():
        if arm.graph is not None:
            arm.graph = capture(arm, sets, turns * len(sets))
    return turns * len(sets)


def timed(problem: Problem, arms: list[Arm], rounds: int) -> dict[str, Any]:
    """The row of a problem."""
    sets = operands(problem)
    launches = prepared(problem, arms, sets)
    there = [arm for arm in arms if arm.graph is not None]
    end = time.perf_counter() + HEAT_S
    while there and time.perf_counter() < end:
        for arm in there:
            took(arm, launches)
    for number in range(rounds):
        for arm in there if number % 2 == 0 else there[::-1]:
            arm.us.append(took(arm, launches))
    row = {**asdict(problem), "flops": problem.flops, "bytes": problem.bytes, "sets": len(sets), "launches": launches}
    row |= board() | {"arms": {arm.name: _figures(problem, arm) for arm in arms}}
    medians = {arm.name: statistics.median(arm.us) for arm in there}
    return row | {"fastest": min(medians, key=lambda name: medians[name]) if medians else None}


def _figures(problem: Problem, arm: Arm) -> dict[str, Any]:
    if arm.refused:
        return {"refused": arm.refused}
    middle = statistics.median(arm.us)
    return {
        "us": round(middle, 3),
        "low": round(min(arm.us), 3),
        "high": round(max(arm.us), 3),
        "tflops": round(problem.flops / middle / 1e6, 1),
        "gbs": round(problem.bytes / middle / 1e3),
    }


def board() -> dict[str, Any]:
    """The clock in MHz and the power in watts, by nvidia-smi; nothing without it."""
    words = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits", "--id=0"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True).stdout.split(",")
        return {"mhz": round(float(said[0])), "watts": round(float(said[1]))}
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return {}


def machine(ours: dict[str, Any], fa3: Any) -> dict[str, Any]:
    """What the times were measured with, and the rate at which this device reads memory."""
    large = torch.empty(1 << 28, device="cuda")
    reading = Arm("read", lambda of: torch.sum(large))
    reading.graph = capture(reading, [(large, large, large)], 4)
    rates = sorted(large.numel() * 4 / took(reading, 4) / 1e3 for _ in range(9))
    return {
        "gpu": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "fa3": fa3 is not None,
        "ours": list(ours),
        "read_gbs": round(rates[4]),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("--class", dest="classes", nargs="+", metavar="NAME", help="classes to time, such as hd128")
    asked.add_argument("--drawn", nargs="+", type=int, metavar="SEED", help="time drawn problems, such as --drawn 1 2")
    asked.add_argument(
        "--ours", nargs="+", type=Path, default=[], metavar="DIR", help="products of `tensorop attention`"
    )
    asked.add_argument("--fa3", type=Path, metavar="FOLDER", help="an unpacked wheel of fa3-fwd")
    asked.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"rounds of a problem; default {ROUNDS}")
    asked.add_argument("--seconds", type=float, default=math.inf, metavar="S", help="begin no problem after so long")
    words = asked.parse_args()
    problems = [one for seed in words.drawn for one in drawn(seed)] if words.drawn else [*of_classes()]
    known = list(dict.fromkeys(one.kind for one in problems))
    if strange := [name for name in words.classes or () if name not in known]:
        asked.error(f"--class {' '.join(strange)}: no such class; expected some of {', '.join(known)}")
    fa3, ours = None, {}
    if words.fa3:
        sys.path.insert(0, str(words.fa3))
        import fa3_fwd_interface as fa3
    if words.ours:
        import tensorop

        ours = {folder.name: tensorop.load(folder) for folder in words.ours}
    torch.manual_seed(0)
    begun = time.monotonic()
    print(json.dumps(machine(ours, fa3)), flush=True)
    for one in problems:
        if words.classes and one.kind not in words.classes:
            continue
        if time.monotonic() - begun > words.seconds:
            print(f"{words.seconds:g} s have passed: the problems that remain are not timed", file=sys.stderr)
            break
        print(json.dumps(timed(one, arms_of(one, fa3, ours), words.rounds)), flush=True)
        torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
