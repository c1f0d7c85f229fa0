"""How fast one core moves data to and from memory."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tensorop.measure import clock

_BYTES = 96 << 20  # an array; two of them are far beyond the last cache's share of a core
_ROUNDS = 5


def copy_bandwidth() -> float:
    """Bytes a nanosecond (GB/s) read and written by NumPy's copy of a large array; the best of a few.

    As STREAM's copy counts them (McCalpin 1995): two bytes moved for each byte copied.
    """
    source, copy = np.ones(_BYTES, dtype=np.uint8), np.zeros(_BYTES, dtype=np.uint8)
    return 2 * _best(lambda: np.copyto(copy, source))


def read_bandwidth() -> float:
    """Bytes a nanosecond (GB/s) that NumPy's maximum of a large f32 array reads; the best of a few.

    It is vectorized and writes nothing: the roof of a product that reads a large matrix once.
    """
    return _best(np.ones(_BYTES // 4, dtype=np.float32).max)


def _best(walk: Callable[[], object]) -> float:
    best = 0.0
    with clock.alone():
        for _ in range(_ROUNDS):
            begin = time.perf_counter_ns()
            walk()
            best = max(best, _BYTES / (time.perf_counter_ns() - begin))
    return best
