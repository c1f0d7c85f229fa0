"""The largest |C - exact| over (|A||B|) of a library's f32 products on a GPU, of 64 x 64 elements of 4096 x 4096.

    python3 error.py LIBRARY.so [...]    # needs the driver and no package

A and B are normally distributed; the exact element is summed as double.
"""

from __future__ import annotations

import ctypes
import random
import sys
from array import array
from collections.abc import Sequence
from operator import mul

DEPTHS, SIDE, CHECKED = (1024, 2048, 4096, 8192), 4096, 64
TYPES = {4: "f32", 5: "f32 --math tf32", 6: "f32 --math 3xtf32"}  # of the header
ROW_MAJOR, AS_IT_IS, TRANSPOSED = 101, 111, 112
cuda = ctypes.CDLL("libcuda.so.1")


class Problem(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ("type", "layout", "transa", "transb")),
        *((name, ctypes.c_float) for name in ("alpha", "beta")),
        *((name, ctypes.c_int64) for name in ("m", "n", "k", "lda", "ldb", "ldc")),
        *((name, ctypes.c_int64) for name in ("batch", "stride_a", "stride_b", "stride_c")),
        ("epilogue", ctypes.c_void_p),
    )  # fmt: skip


def must(status: int, what: str) -> None:
    if status:
        raise SystemExit(f"{what} returned {status}")


def on_device(bytes_: int, held: array[float] | None = None) -> ctypes.c_void_p:
    """Device memory that begins with `held`, and 0 behind it."""
    at = ctypes.c_void_p()
    must(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(bytes_)), "cuMemAlloc")
    must(cuda.cuMemsetD8_v2(at, 0, ctypes.c_size_t(bytes_)), "cuMemset")
    if held is not None:
        size = ctypes.c_size_t(len(held) * held.itemsize)
        must(cuda.cuMemcpyHtoD_v2(at, ctypes.c_void_p(held.buffer_info()[0]), size), "cuMemcpyHtoD")
    return at


def computed(library: ctypes.CDLL, kind: int, k: int, a: array[float], b: array[float]) -> tuple[list[float], str]:
    """The checked elements of C, and the configuration of the kernel. A is m x k, B is stored as n x k."""
    size = 4 * SIDE * k
    places = on_device(size, a), on_device(size, b), on_device(4 * SIDE * SIDE)
    problem = Problem(kind, ROW_MAJOR, AS_IT_IS, TRANSPOSED, 1, 0, SIDE, SIDE, k, k, k, SIDE, 1, 0, 0, 0)
    handle, bytes_ = ctypes.c_void_p(), ctypes.c_size_t()
    must(library.tensorop_gemm_create(ctypes.byref(handle), 0), "tensorop_gemm_create")
    given = (handle, ctypes.byref(problem), *places)
    must(library.tensorop_gemm_workspace(*given, ctypes.byref(bytes_)), "tensorop_gemm_workspace")
    space = on_device(max(1, bytes_.value))
    call = (handle, None, *given[1:], space, bytes_)
    must(library.tensorop_gemm_ex(*call), "tensorop_gemm_ex")
    must(cuda.cuCtxSynchronize(), "cuCtxSynchronize")
    found: list[float] = []
    for row in range(CHECKED):
        held = array("f", bytes(4 * CHECKED))
        at = ctypes.c_void_p((places[2].value or 0) + 4 * SIDE * row)
        to, size_of = ctypes.c_void_p(held.buffer_info()[0]), ctypes.c_size_t(4 * CHECKED)
        must(cuda.cuMemcpyDtoH_v2(to, at, size_of), "cuMemcpyDtoH")
        found += held
    name = library.tensorop_gemm_chosen(*given, bytes_) or b""
    for place in (*places, space):
        cuda.cuMemFree_v2(place)
    must(library.tensorop_gemm_destroy(handle), "tensorop_gemm_destroy")
    return found, name.decode()


def main(paths: Sequence[str]) -> None:
    must(cuda.cuInit(0), "cuInit")
    context, device = ctypes.c_void_p(), ctypes.c_int()
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    must(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    libraries = [ctypes.CDLL(path) for path in paths]
    for library in libraries:
        library.tensorop_gemm_chosen.restype = ctypes.c_char_p
    for k in DEPTHS:
        rng = random.Random(k)
        a, b = (array("f", (rng.gauss(0, 1) for _ in range(CHECKED * k))) for _ in range(2))
        rows_a, rows_b = ([held[i * k : i * k + k].tolist() for i in range(CHECKED)] for held in (a, b))
        exact = [sum(map(mul, x, y)) for x in rows_a for y in rows_b]
        rows_a, rows_b = ([list(map(abs, row)) for row in rows] for rows in (rows_a, rows_b))
        scale = [sum(map(mul, x, y)) for x in rows_a for y in rows_b]
        for path, library in zip(paths, libraries, strict=True):
            for kind, name in TYPES.items():
                try:
                    found, kernel = computed(library, kind, k, a, b)
                except SystemExit as error:
                    if str(error) != "tensorop_gemm_workspace returned 3":  # the library has other types
                        raise
                    continue
                most = max(abs(c - x) / y for c, x, y in zip(found, exact, scale, strict=True))
                print(f"k {k:5} {name:18} {most:.3e}  {kernel}  {path}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
