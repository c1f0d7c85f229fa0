"""Prints the families that a library of attention chooses for calls on a GPU: argv is a product's folder.

A process of its own has the fake driver; no kernel is launched (test_device_attention.py).
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path


class Problem(ctypes.Structure):
    """struct tensorop_attention_problem"""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("type", "align")),
        *((name, ctypes.c_int64) for name in ("batch", "heads", "key_heads", "queries", "keys", "dim")),
        *((f"{of}_{name}", ctypes.c_int64) for of in "qkvo" for name in ("batch", "row", "head")),
        ("scale", ctypes.c_double),
        *((name, ctypes.c_int64) for name in ("left", "right")),
        *((name, ctypes.c_void_p) for name in ("lse", "starts_q", "starts_k", "lengths", "pages")),
        *((name, ctypes.c_int64) for name in ("most_queries", "most_keys", "page", "pages_row", "v_dim")),
    )


def main() -> None:
    library = ctypes.CDLL(str(next(Path(sys.argv[1]).glob("lib/*.so"))))
    library.tensorop_attention_chosen.restype = ctypes.c_char_p
    handle, at = ctypes.c_void_p(), ctypes.c_void_p(1 << 20)
    assert library.tensorop_attention_create(ctypes.byref(handle), 0) == 0

    def chosen(**more: int) -> str:
        one = Problem(0, 0, 1, 4, 4, 1024, 1024, 128, *(1024 * 512, 512, 128) * 4, 0.1, -1, -1)
        for name, value in more.items():
            setattr(one, name, value)
        found = library.tensorop_attention_chosen(handle, ctypes.byref(one), at, at, at, at, ctypes.c_size_t(0))
        return " ".join(word for word in found.decode().split() if "=" not in word or word.startswith("lists"))

    far = at.value or 0  # of arrays on a device
    ragged = {"starts_q": far, "starts_k": far, "most_queries": 512, "most_keys": 512}
    sys.stdout.write(f"dense: {chosen()}\n")
    sys.stdout.write(f"ragged: {chosen(**ragged)}\n")
    sys.stdout.write(f"of keys alone: {chosen(starts_k=far, most_keys=512)}\n")
    sys.stdout.write(f"ragged, rows at no 16 bytes: {chosen(**ragged, k_row=516)}\n")
    sys.stdout.write(f"lengths: {chosen(lengths=far)}\n")
    sys.stdout.write(f"pages: {chosen(lengths=far, pages=far, page=64, pages_row=16)}\n")


if __name__ == "__main__":
    main()
