"""Calls of a device library under the fake driver, in a process of its own: argv is the library and a JSON of cases."""

from __future__ import annotations

import ctypes
import json
import sys

import numpy as np


class Problem(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ("type", "layout", "transa", "transb")),
        *((name, ctypes.c_float) for name in ("alpha", "beta")),
        *(
            (n, ctypes.c_int64)
            for n in ("m", "n", "k", "lda", "ldb", "ldc", "batch", "stride_a", "stride_b", "stride_c")
        ),
        ("epilogue", ctypes.c_void_p),
    )


def bits(values: np.ndarray, kind: int) -> np.ndarray:
    """kind: 0 bf16, 1 f16, 2 float."""
    if kind == 2:
        return values.astype(np.float32).view(np.uint32)
    if kind:
        return values.astype(np.float16).view(np.uint16)
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def floats(held: np.ndarray, kind: int) -> np.ndarray:
    if kind == 2:
        return held.view(np.float32)
    if kind:
        return held.view(np.float16).astype(np.float32)
    return (held.astype(np.uint32) << 16).view(np.float32)


class Buffer:
    """Matrices of a batch, lines of `ld` elements, `shift` elements behind a multiple of 256 bytes; the rest is -7."""

    def __init__(self, values: np.ndarray, ld: int, shift: int, kind: int) -> None:
        batch, lines, length = values.shape
        self.shape, self.ld, self.kind = values.shape, ld, kind
        filling = bits(np.array(-7.0), kind)
        self.raw = np.full(batch * lines * ld + 512, filling, filling.dtype)
        self.first = (-self.raw.ctypes.data % 256) // self.raw.itemsize + shift
        self.view()[:, :, :length] = bits(values, kind)
        self.before = self.raw.copy()

    def view(self) -> np.ndarray:
        batch, lines, _ = self.shape
        return self.raw[self.first : self.first + batch * lines * self.ld].reshape(batch, lines, self.ld)

    @property
    def address(self) -> int:
        return int(self.raw.ctypes.data + self.raw.itemsize * self.first)

    def values(self) -> np.ndarray:
        return floats(np.ascontiguousarray(self.view()[:, :, : self.shape[2]]), self.kind)

    def kept(self) -> bool:
        """Whether nothing but the matrices' elements changed."""
        now = self.raw.copy()
        at = now[self.first : self.first + self.view().size].reshape(self.view().shape)
        was = self.before[self.first : self.first + self.view().size].reshape(self.view().shape)
        at[:, :, : self.shape[2]] = was[:, :, : self.shape[2]]
        return bool((now == self.before).all())


def asked(lib: ctypes.CDLL, handle: ctypes.c_void_p, case: dict[str, int]) -> str | None:
    """What a call on rows that follow each other would take, with all the workspace it wants."""
    m, n, k = case["m"], case["n"], case["k"]
    lines = (m if case["ta"] else k, k if case["tb"] else n, n)
    problem = Problem(case["f16"], 101, 111 + case["ta"], 111 + case["tb"], 1, 0, m, n, k, *lines, 1)
    pointers = [ctypes.c_void_p(1 << 40)] * 3
    label = lib.tensorop_gemm_chosen(handle, ctypes.byref(problem), *pointers, ctypes.c_size_t(1 << 60))
    return label.decode() if label else None


def bad(lib: ctypes.CDLL, handle: ctypes.c_void_p, case: dict[str, int]) -> dict[str, object]:
    """A call whose matrices are never touched, as it is refused. off: bytes of C's address beyond a whole one."""
    m, n, k = case["m"], case["n"], case["k"]
    problem = Problem(case["f16"], 101, 111, 111, 1, 0, m, n, k, k + case["pad"], n, n, 1)
    pointers = [ctypes.c_void_p(1 << 40)] * 2 + [ctypes.c_void_p((1 << 40) + case.get("off", 0))]
    stream = ctypes.c_void_p(case.get("stream", 64))
    status = lib.tensorop_gemm_ex(handle, stream, ctypes.byref(problem), *pointers, None, ctypes.c_size_t(0))
    return {"status": status, "launches": ctypes.CDLL("libcuda.so.1").fake_launches()}


def run(lib: ctypes.CDLL, handle: ctypes.c_void_p, case: dict[str, int]) -> dict[str, object]:
    rng = np.random.default_rng(case["seed"])
    m, n, k, batch, kind = case["m"], case["n"], case["k"], case["batch"], 2 if case["f16"] == 4 else case["f16"] % 2
    if case.get("bad"):
        return bad(lib, handle, case)
    if case.get("asked"):
        return {"chosen": asked(lib, handle, case)}
    a, b = (rng.integers(-1, 2, (batch, *shape)).astype(np.float32) for shape in ((m, k), (k, n)))
    c = rng.integers(-4, 5, (batch, m, n)).astype(np.float32)
    alpha, beta = case["alpha"], case["beta"]
    expected = alpha * (a @ b) + beta * c

    def stored(x: np.ndarray, transposed: bool) -> np.ndarray:
        return x.swapaxes(1, 2) if transposed != bool(case["column"]) else x

    held = [
        Buffer(stored(x, bool(t)), max(1, stored(x, bool(t)).shape[2] + case["pad"]), case["shift"], of)
        for x, t, of in ((a, case["ta"], kind), (b, case["tb"], kind), (c, 0, kind if case["f16"] < 2 else 2))
    ]
    strides = [one.shape[1] * one.ld for one in held]
    problem = Problem(
        case["f16"], 102 if case["column"] else 101, 111 + case["ta"], 111 + case["tb"], alpha, beta, m, n, k,
        *(one.ld for one in held), batch, *strides,
    )  # fmt: skip
    pointers = [ctypes.c_void_p(one.address) for one in held]
    bytes_ = ctypes.c_size_t()
    status = lib.tensorop_gemm_workspace(handle, ctypes.byref(problem), *pointers, ctypes.byref(bytes_))
    given = bytes_.value if case["workspace"] else 0
    room = np.zeros(given + 256, np.uint8)
    space = room.ctypes.data + (-room.ctypes.data % 256)
    label = lib.tensorop_gemm_chosen(handle, ctypes.byref(problem), *pointers, ctypes.c_size_t(given))
    workspace = (ctypes.c_void_p(space if given else None), ctypes.c_size_t(given))
    stream = ctypes.c_void_p(case.get("stream", 64))
    for _ in range(2):  # the second one remembers the first
        held[2].raw[:] = held[2].before
        status = status or lib.tensorop_gemm_ex(handle, stream, ctypes.byref(problem), *pointers, *workspace)
    got = stored(held[2].values(), False)
    return {
        "status": status,
        "chosen": label.decode() if label else None,
        "workspace": bytes_.value,
        "right": bool((got == expected).all()),
        "kept": all(one.kept() for one in held),
        "inputs": all((one.raw == one.before).all() for one in held[:2]),
    }


def main(library: str, cases: str) -> None:
    lib = ctypes.CDLL(library)
    lib.tensorop_gemm_message.restype = lib.tensorop_gemm_chosen.restype = ctypes.c_char_p
    handle = ctypes.c_void_p()
    status = lib.tensorop_gemm_create(ctypes.byref(handle), 0)
    told: dict[str, object] = {"status": status, "message": lib.tensorop_gemm_message(status).decode()}
    if status == 0:
        told["cases"] = [run(lib, handle, case) for case in json.loads(cases)]
        told["destroyed"] = lib.tensorop_gemm_destroy(handle)
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
