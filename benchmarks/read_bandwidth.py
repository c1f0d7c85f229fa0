"""What share of the bandwidth to memory a product has that reads one large matrix once.

    python benchmarks/read_bandwidth.py DIR [--side 8192] [--rounds 15]

On one thread, by turns: plain loops that read as many bytes (read_bandwidth.c, by zig at -O3 for this CPU; the fastest
of them counts) and the library's products of one row or one column with a matrix of `side` squared, in both layouts.
Printed: GB/s, and the median of the rounds' shares with its quartiles. Needs a product for the machine it runs on.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import tensorop
from tensorop.build import tool
from tensorop.measure import clock

LOOPS = [
    f"read_{width}_{how}" for width in (16, 32, 64) for how in ("1_0", "2_0", "4_0", "8_0", "1_512", "4_512", "4_128")
]
BEST = 3  # of the loops, that are measured in each round
Call = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--side", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    library = tensorop.load(arguments.folder)
    library.threads = 1
    with tempfile.TemporaryDirectory() as folder, clock.alone():
        for dtype in (
            t for t in (np.float32, np.float64) if {4: "f32", 8: "f64"}[np.dtype(t).itemsize] in library.dtypes
        ):
            matrix = (
                np.random.default_rng(0).standard_normal((arguments.side, arguments.side), np.float32).astype(dtype)
            )
            reading = loops(Path(folder), matrix)
            fastest = sorted(reading, key=lambda name: -max(timed(reading[name], matrix.nbytes) for _ in range(3)))[
                :BEST
            ]
            print(f"{np.dtype(dtype)}, {arguments.side} x {arguments.side}: loops {', '.join(fastest)}")
            ours = products(library, matrix)
            rounds = [
                (max(timed(reading[name], matrix.nbytes) for name in fastest), each(ours, matrix.nbytes))
                for _ in range(arguments.rounds)
            ]
            print(f"  {'plain loop':34} {np.median([best for best, _ in rounds]):6.1f} GB/s")
            for name in ours:
                low, middle, high = np.quantile([rates[name] / best for best, rates in rounds], (0.25, 0.5, 0.75))
                rate = np.median([rates[name] for _, rates in rounds])
                print(f"  {name:34} {rate:6.1f} GB/s  {middle:5.2f} of the loop's, {low:.2f} to {high:.2f}")


def loops(folder: Path, matrix: np.ndarray) -> dict[str, Call]:
    """The plain loops over a matrix's bytes, by name."""
    made = folder / "read_bandwidth.so"
    if not made.exists():
        source = Path(__file__).with_suffix(".c")
        subprocess.run(tool.cc("-O3", "-mcpu=native", "-shared", "-fPIC", "-o", str(made), str(source)), check=True)
    found = ctypes.CDLL(str(made))
    address, count = ctypes.c_void_p(matrix.ctypes.data), ctypes.c_size_t(matrix.nbytes // 4)
    return {name: partial(getattr(found, name), address, count) for name in LOOPS}


def products(library: tensorop.Library, matrix: np.ndarray) -> dict[str, Call]:
    """Products that read the matrix once, by what they are."""
    side = len(matrix)
    row, column = np.ones((1, side), matrix.dtype), np.ones((side, 1), matrix.dtype)
    wide, high = np.empty_like(row), np.empty_like(column)
    gemm, other = library.gemm, matrix.T
    return {
        f"1x{side}x{side}": lambda: gemm(row, matrix, c=wide),
        f"1x{side}x{side}, B transposed": lambda: gemm(row, other, c=wide),
        f"{side}x1x{side}": lambda: gemm(matrix, column, c=high),
        f"{side}x1x{side}, A transposed": lambda: gemm(other, column, c=high),
    }


def each(calls: dict[str, Call], size: int) -> dict[str, float]:
    """As many calls each as the loops get together: the fastest counts there too."""
    return {name: max(timed(call, size) for _ in range(BEST)) for name, call in calls.items()}


def timed(call: Call, size: int) -> float:
    """Bytes a nanosecond (GB/s) of the time this thread ran, without what other programs are given in between."""
    begin = time.thread_time_ns()
    call()
    return size / (time.thread_time_ns() - begin)


if __name__ == "__main__":
    main()
