"""What a call of `lib.gemm` from Python takes beside `numpy.matmul`.

    python benchmarks/python_calls.py DIR [--size 16 64] [--rounds 400]

Both by turns, on one thread, some hundred calls each a round. Printed: the median of the rounds' ratios (above 1: NumPy
is faster) with its quartiles, and the shortest time of each. Plain, with `c=` given, with transposed views, and both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import tensorop

Call = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--size", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--rounds", type=int, default=400)
    arguments = parser.parse_args()
    library = tensorop.load(arguments.folder)
    library.threads = 1
    types = [t for t in (np.float32, np.float64) if {4: "f32", 8: "f64"}[np.dtype(t).itemsize] in library.dtypes]
    print(f"{'':32} ratio  quartiles     ours ns  matmul ns")
    with threadpool_limits(1):
        for dtype in types:
            for size in arguments.size:
                for name, ours, theirs in pairs(library, size, dtype):
                    ratios, mine, other = by_turns(ours, theirs, arguments.rounds)
                    low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
                    what = f"{np.dtype(dtype)} {size:3} {name}"
                    print(f"{what:32} {middle:5.2f}  {low:.2f} - {high:.2f}  {mine:8.0f}  {other:8.0f}")


def pairs(library: tensorop.Library, size: int, dtype: type) -> list[tuple[str, Call, Call]]:
    """(what is called, ours, NumPy's) on square operands."""
    gemm, matmul = library.gemm, np.matmul
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal((size, size)).astype(dtype) for _ in range(3))
    x, y, z = a.T, b.T, np.empty((size, size), dtype).T
    return [
        ("plain", lambda: gemm(a, b), lambda: matmul(a, b)),
        ("c=", lambda: gemm(a, b, c=c), lambda: matmul(a, b, out=c)),
        ("a.T, b.T", lambda: gemm(x, y), lambda: matmul(x, y)),
        ("a.T, b, c=", lambda: gemm(x, b, c=c), lambda: matmul(x, b, out=c)),
        ("a, b.T, c=c.T", lambda: gemm(a, y, c=z), lambda: matmul(a, y, out=z)),
    ]


def by_turns(ours: Call, theirs: Call, rounds: int) -> tuple[list[float], float, float]:
    """The ratio of each round, and the shortest ns a call of each side."""
    calls = max(20, int(2e5 / max(timed(ours, 20), timed(theirs, 20))))
    found = [(timed(ours, calls), timed(theirs, calls)) for _ in range(rounds)]
    return [mine / other for mine, other in found], min(m for m, _ in found), min(o for _, o in found)


def timed(call: Call, calls: int) -> float:
    begin = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - begin) / calls


if __name__ == "__main__":
    main()
