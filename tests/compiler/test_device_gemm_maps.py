"""gemm's kernel by tensor maps, executed on this machine's processor (maps_on_cpu.h)."""

from __future__ import annotations

import ctypes
import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorop import paths
from tensorop.cuda import kernels
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.family import Family
from tensorop.provision.zig import zig_cc, zig_environment
from tensorop.specs import platforms
from tests.compiler.test_device_attention_maps import Map
from tests.support.classes import extended
from tests.support.device_products import CALL, GEMM, SUPPORT, TEMPLATES

SM90 = platforms.load("cuda-sm90")
WGMMA = next(one for one in TEMPLATES if one.name == "wgmma")
Point = dict[str, int | str]
USUAL: Point = {
    "tile_m": 64, "tile_n": 128, "stages": 3, "groups_m": 1, "groups_n": 1, "cluster_m": 1, "cluster_n": 1,
    "split_k": 1, "turns": 0, "swap": 0, "store": "pitch", "raster": 4,
}  # fmt: skip
TURNS: Point = {**USUAL, "groups_m": 2, "turns": 1}
ROOM = 9  # elements between a row's end and the next row, at most


class Args(ctypes.Structure):
    """device/args.h.j2; no epilogue"""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("m", "n", "k", "batch", "tiles_m", "tiles_n", "group", "clusters")),
        *((name, ctypes.c_float) for name in ("alpha", "beta")),
        *(("c", ctypes.c_void_p), ("ldc", ctypes.c_int64), ("stride_c", ctypes.c_int64)),
        *((name, ctypes.c_int) for name in ("whole", "rest", "deep")),
        ("sums", ctypes.c_void_p),
        *((name, ctypes.c_int) for name in ("next", "ahead_a", "ahead_b")),
        *((name, ctypes.c_uint64) for name in ("keep_a", "keep_b", "keep_c")),
        *(("general", ctypes.c_int), ("epilogue", ctypes.c_uint64 * 16)),
    )


@dataclass(frozen=True)
class Product:
    """A call: C = alpha A B' + beta C, its rows `room` elements apart, its first one `shift` elements behind a word."""

    m: int
    n: int
    room: int = 0
    shift: int = 0
    k: int = 70
    batch: int = 1
    beta: float = 0


def built(folder: Path, point: Point, spoil: tuple[str, str] = ("", "")) -> Any:
    """A kernel as a function of this machine, with its numbers. spoil: a text of its CUDA, and what replaces it"""
    of = Family(CALL, WGMMA, {**device_numbers(SM90), "c_size": 2, "a_along_m": 0, "b_along_k": 1})
    same = np.logical_and.reduce([of.grid[name] == value for name, value in point.items()])
    numbers = of.numbers(int(np.flatnonzero(same)[0]))
    text = kernels.text(GEMM, SM90, WGMMA, "f16", numbers)
    assert isinstance(text, str), text
    args = text[text.index("#ifndef TENSOROP_EPILOGUE") : text.index("struct alignas(128) CUtensorMap")]
    kernel = text[text.index("// The position of a tile") : text.rindex("} // namespace")]
    assert spoil[0] in kernel
    kernel = kernel.replace(*spoil) if spoil[0] else kernel
    parts = ['#include "maps_on_cpu.h"', args, kernel, '#include "maps_on_cpu.inc"\n']
    (folder / "kernel.cpp").write_text("\n".join(parts))
    defined = {name.upper(): numbers[name] for name in ("shared", "threads", "resident")}
    defined |= {"TILE_N": numbers["wgn"], "VALUES": 64, "MAPS": 3}
    command = [*zig_cc(), "-std=c++17", "-fno-exceptions", "-O1", "-w", "-shared", "-fPIC", f"-I{SUPPORT}"]
    command += [f"-I{paths.native_dir() / 'device/on_cpu'}", *(f"-D{name}={value}" for name, value in defined.items())]
    command += [str(folder / "kernel.cpp"), "-lm", "-o", str(folder / "kernel.so")]
    subprocess.run(command, check=True, env={**os.environ, **zig_environment()})
    return ctypes.CDLL(str(folder / "kernel.so")), numbers


def described(x: np.ndarray, rows: int) -> Map:
    """x: matrices, rows, columns, whose rows may have room between them"""
    of, pitch = (x.shape[2], x.shape[1], x.shape[0], 1), x.strides
    return Map(x.ctypes.data, of, (2, pitch[1], pitch[0], 0), rows)


def summed(sums: np.ndarray, args: Args, numbers: dict[str, Any]) -> np.ndarray:
    """The matrix of which a kernel left sums as its registers hold them, in one part of K."""
    found = np.zeros((args.tiles_m * numbers["tile_m"], args.tiles_n * numbers["tile_n"]))
    thread, e = np.arange(128)[:, None], np.arange(4)[None, :]
    row, col = thread // 32 * 16 + thread % 32 // 4 + e // 2 * 8, thread % 4 * 2 + e % 2
    wide, consumers = numbers["wgn"] // 8, numbers["groups_m"] * numbers["groups_n"]
    each = sums.reshape(-1, consumers, numbers["blocks"], wide, 128, 4)
    for tile, consumer, i, j in np.ndindex(*each.shape[:4]):
        first = tile // (args.group * args.tiles_n) * args.group
        inside, height = tile % (args.group * args.tiles_n), min(args.group, args.tiles_m - first)
        at_row = (
            (first + inside % height) * numbers["tile_m"] + consumer % numbers["groups_m"] * numbers["wgm"] + 64 * i
        )
        at_col = inside // height * numbers["tile_n"] + consumer // numbers["groups_m"] * numbers["wgn"] + 8 * j
        found[at_row + row, at_col + col] = each[tile, consumer, i, j]
    return found


def wrong(made: Any, of: Product, blocks: int = 3) -> str:
    """What a call leaves that it should not; "" for nothing. blocks: of the launch, fewer than tiles"""
    kernel, numbers = made
    rng, ldc = np.random.default_rng(5), of.n + of.room
    a, b = (rng.normal(size=(of.batch, rows, of.k + 2)).astype(np.float16)[..., : of.k] for rows in (of.m, of.n))
    memory = np.full(of.shift + of.batch * (of.m * ldc + 1) + ROOM, 7, np.float16)
    c = np.lib.stride_tricks.as_strided(
        memory[of.shift :], (of.batch, of.m, of.n), (2 * (of.m * ldc + 1), 2 * ldc, 2)
    )  # matrices an odd number of elements apart
    if of.beta:
        c[...] = rng.normal(size=c.shape)
    old, hoped = c.astype(float), memory.astype(float)
    at = np.lib.stride_tricks.as_strided(hoped[of.shift :], c.shape, tuple(4 * one for one in c.strides))
    at[...] = 0.5 * a.astype(float) @ b.astype(float).transpose(0, 2, 1) + of.beta * old
    rows, cols = (of.n, of.m) if numbers["swap"] else (of.m, of.n)
    args = Args(rows, cols, of.k, of.batch, -(-rows // numbers["tile_m"]), -(-cols // numbers["tile_n"]), 4)
    args.clusters = args.tiles_m * args.tiles_n * of.batch
    args.alpha, args.beta, args.general = 0.5, of.beta, of.beta != 0
    args.c, args.ldc, args.stride_c = c.ctypes.data, ldc, of.m * ldc + 1
    args.whole, args.rest = (0, args.clusters) if numbers["by_sums"] else (args.clusters, 0)
    args.deep = -(-of.k // 64)
    sums = np.full(args.clusters * numbers["tile_m"] * numbers["tile_n"], 7, np.float32)
    args.sums = sums.ctypes.data
    operands = (b, a) if numbers["swap"] else (a, b)
    maps = (Map * 3)(described(operands[0], numbers["box_a"]), described(operands[1], numbers["box_b"]))
    if kernel.run(maps, ctypes.byref(args), min(blocks, args.clusters)):
        return "a thread waits for ever, or an address is wrong"
    if numbers["by_sums"]:
        left = summed(sums, args, numbers)[:rows, :cols]
        left = 0.5 * (left.T if numbers["swap"] else left) + of.beta * old[0]
        return "" if np.allclose(left, at[0], atol=0.03) else "sums"
    return "" if (np.abs(memory.astype(float) - hoped) < 0.03).all() else "C"


ODD = Product(70, 131)
CALLS = {
    "rows that are no words": ODD,
    "C that is no word": replace(ODD, shift=1),
    "rows of words from no word on": replace(ODD, room=1, shift=1),
    "an even number of columns": replace(ODD, n=130, room=1),
    "room between rows": replace(ODD, m=64, n=128, room=3),
    "whole pieces": replace(ODD, m=65, n=192, room=3, shift=1),
    "one column": Product(67, 1),
    "one element of a second tile": Product(5, 129, room=2),
    "C is read": replace(ODD, beta=0.25),
    "several matrices": replace(ODD, m=33, n=65, batch=3, k=64),
}


@pytest.mark.parametrize(
    "point",
    [
        extended(TURNS),
        extended(USUAL),
        extended({**USUAL, "tile_n": 96}),
        extended({**USUAL, "tile_n": 80}),
        extended({**USUAL, "tile_m": 128, "groups_m": 2, "tile_n": 256}),
    ],
    ids=["turns", "words-of-64", "words-of-32", "words-of-16", "four-pieces"],
)
def test_rows_of_any_pitch_are_right(point: Point, tmp_path: Path) -> None:
    made = built(tmp_path, point)
    found = {name: wrong(made, of) for name, of in CALLS.items()}
    assert not any(found.values()), found


FEW = {
    "eight rows": Product(8, 131, k=130),
    "one row": Product(1, 64, shift=1),
    "rows of a second tile": Product(11, 100, room=1, beta=0.25),
    "several matrices": Product(3, 65, batch=3),
}


@pytest.mark.parametrize(
    "point", [extended({"swap": 1, "tile_n": 8}), extended({"tile_n": 48})], ids=["transposed", "usual"]
)
def test_blocks_that_share_k_leave_rows_of_any_pitch(point: Point, tmp_path: Path) -> None:
    """A cluster of one block, which adds up its own sums."""
    made = built(tmp_path, {**USUAL, "split_k": 2, "store": "registers", **point})
    found = {name: wrong(made, of, 99) for name, of in (CALLS | FEW).items()}
    assert not any(found.values()), found


@pytest.mark.parametrize("store", [extended("registers"), extended("sums")])
def test_eight_rows_are_a_tile_of_the_transposed_product(store: str, tmp_path: Path) -> None:
    made = built(tmp_path, {**USUAL, "tile_n": 8, "swap": 1, "store": store})
    found = {name: wrong(made, of) for name, of in FEW.items() if store == "registers" or of.batch == 1}
    assert not any(found.values()), found


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("spoil", "name"),
    [
        (("q >= col0 && q + 1 < n", "q + 1 < n"), "one element of a second tile"),
        (("q >= col0 && q + 1 < n", "q >= col0 && q < n"), "an even number of columns"),
        (("piece == 0 && !early", "false"), "C that is no word"),
        (("flipped(buffer, word > 0 ? 1 : 0)", "flipped(buffer, 1)"), "rows that are no words"),
    ],
    ids=["element-of-another-tile", "element-beyond-the-row", "first-element-missing", "element-of-another-row"],
)
def test_a_kernel_with_a_fault_is_refused(spoil: tuple[str, str], name: str, tmp_path: Path) -> None:
    assert wrong(built(tmp_path, USUAL, spoil), CALLS[name]) == "C"
