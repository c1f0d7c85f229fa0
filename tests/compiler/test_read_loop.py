"""The loop beside which benchmarks/matvec.py times products reads all of the larger operand and nothing else."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.matvec import read_loop
from tensorop.model.architecture import host_arch
from tensorop.specs import platforms

ROW, COL = 101, 102


@pytest.mark.skipif(host_arch() != "x86_64", reason="the plain platform is one of x86-64")
@pytest.mark.parametrize(("number", "name"), [(np.float32, "cblas_sgemm"), (np.float64, "cblas_dgemm")])
def test_the_loop_reads_the_larger_operand(number: type[np.floating[Any]], name: str) -> None:
    library = ctypes.CDLL(str(Path(read_loop(platforms.load("generic")).path)))
    real = {np.float32: ctypes.c_float, np.float64: ctypes.c_double}[number]
    call = getattr(library, name)
    call.argtypes = [
        *[ctypes.c_int] * 6,
        real,
        *[ctypes.c_void_p, ctypes.c_int] * 2,
        real,
        ctypes.c_void_p,
        ctypes.c_int,
    ]
    rng = np.random.default_rng(1)
    for layout in (ROW, COL):
        for m, n, k, ta, tb in ((1, 37, 29, 0, 0), (2, 29, 37, 0, 1), (37, 1, 29, 0, 0), (29, 3, 37, 1, 0)):
            rows, columns, flag = (k, n, tb) if n > m else (m, k, ta)
            lines, length = (rows, columns) if (layout == ROW) != bool(flag) else (columns, rows)
            for beyond in (0, 5):
                matrix = np.full((lines, length + beyond), np.nan, number)
                matrix[:, :length] = rng.integers(-9, 9, (lines, length))
                c = np.full(m * n, np.nan, number)
                at, other = matrix.ctypes.data, np.zeros(1, number).ctypes.data
                a, b = (other, at) if n > m else (at, other)
                leading = length + beyond
                call(
                    layout,
                    111 + ta,
                    111 + tb,
                    m,
                    n,
                    k,
                    2,
                    a,
                    leading,
                    b,
                    leading,
                    1,
                    c.ctypes.data,
                    n if layout == ROW else m,
                )
                assert (c == 3 + matrix[:, :length].sum()).all()
