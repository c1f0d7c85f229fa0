"""Every collective primitive of the sets in `TESTS` on a GPU against what it means, for a whole group's
registers and shared memory; and, as a control, each test with one of its primitives emptied, which must be refused.

    python benchmarks/cuda/primitives.py build FOLDER            # nvcc, no GPU
    python benchmarks/cuda/primitives.py run FOLDER [OUT.json [TEST ...]]  # NumPy and the driver, on a Hopper GPU

A test is a kernel that gets bytes and leaves bytes; what it must leave is said here in NumPy.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

POISON, LIMIT_S, WGN = 0xCD, 10, 64
COLUMNS, ROWS, DEPTH, BOX = 72, 17, 2, (64, 16)  # of the matrices that the copy engine reads and writes
AT = (40, 5, 1)  # the box's place: part of it is outside
HOLDS = (
    "thread // 32 * 16 + thread % 32 // 4 + register // 2 % 2 * 8",
    "register // 4 * 8 + thread % 4 * 2 + register % 2",
)


@dataclass(frozen=True)
class Variant:
    """How a set is rendered."""

    dtype: str
    a_along_m: int
    b_along_k: int

    def __str__(self) -> str:
        return f"{self.dtype}-{self.a_along_m}{self.b_along_k}"


@dataclass(frozen=True)
class Test:
    """covers: primitives of which each must be seen when it is empty; unseen: what only orders, may be right without.
    given: the input; left: of input and output so far (poison) what must be there; after_first: another kernel is
    before it in the stream; map: over "in" or "out"; every: also in the other types and layouts."""

    covers: tuple[str, ...]
    given: Callable[[Variant], np.ndarray]
    left: Callable[[Variant, np.ndarray, np.ndarray], np.ndarray | None]
    unseen: tuple[str, ...] = ()
    size: int = 4096
    threads: int = 64
    grid: int = 1
    cluster: int = 1
    after_first: bool = False
    map: str = ""
    axes: int = 3  # of the map
    every: bool = False
    bounds: str = ""


RNG = np.random.default_rng(20261123)
NOISE = RNG.integers(0, 256, 1 << 16, dtype=np.uint8)


def noise(_: Variant) -> np.ndarray:
    return NOISE


def words(*values: Any) -> np.ndarray:
    return np.concatenate([np.ascontiguousarray(v).view(np.uint8).reshape(-1) for v in values])


def leaves(
    kind: Any, of: Callable[[Variant, np.ndarray], Any]
) -> Callable[[Variant, np.ndarray, np.ndarray], np.ndarray]:
    """The output begins with these values; the rest stays."""

    def left(variant: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
        value = words(np.asarray(of(variant, given), dtype=kind))
        out[: value.size] = value
        return out

    return left


def encode(values: np.ndarray, dtype: str) -> np.ndarray:
    """To the nearest, ties to even."""
    values = np.asarray(values, np.float32)
    if dtype == "f16":
        return values.astype(np.float16).view(np.uint16)
    whole = values.view(np.uint32).astype(np.uint64)
    return ((whole + 0x7FFF + (whole >> 16 & 1)) >> 16).astype(np.uint16)


def decode(bits: np.ndarray, dtype: str) -> np.ndarray:
    return (
        bits.view(np.float16).astype(np.float32) if dtype == "f16" else (bits.astype(np.uint32) << 16).view(np.float32)
    )


def floats(count: int) -> np.ndarray:
    """Some between two elements, at the middle too."""
    found = RNG.standard_normal(count).astype(np.float32)
    found[::3] = (RNG.integers(-64, 64, found[::3].size) * 2 + 1) / 2**9 + 1
    return found


FLOATS = floats(4096)
SMALL = RNG.integers(-2, 3, (4, 64, 64)).astype(np.float32)
T = np.arange(64)
WHOLE = RNG.integers(-8, 9, 4096).astype(np.float32)  # whole numbers, some of them infinite or powers of two
WHOLE[1024:1088:5] = WHOLE[1536:1600:3] = -np.inf
WHOLE[2560:2624] = 2.0 ** WHOLE[2560:2624]
WHOLE[2048:2112:7] = WHOLE[2560:2624:7] = 0
SHIFT, MOST, ROWS_OF, POWERS = (WHOLE[at : at + 64].reshape(32, 2) for at in (1024, 1536, 2048, 2560))
with np.errstate(invalid="ignore", divide="ignore"):
    ROSE = np.maximum(SHIFT, 2 * MOST)
    FELL = np.where(np.isinf(ROSE), 0, SHIFT - ROSE)
    SELDOM = np.where(2 * MOST - SHIFT > 8, 2 * MOST, SHIFT)  # where it rises only by more than 8
    SELDOM_FELL = np.where(SELDOM == SHIFT, 0, SHIFT - SELDOM)
    INVERSES = np.where(ROWS_OF == 0, np.float32(0), np.float32(1) / ROWS_OF)
    LOGARITHMS = (np.log2(POWERS) + ROWS_OF) * np.float32(0.693147181)


def swizzled(rows: np.ndarray) -> np.ndarray:
    """Rows of 64 elements as tile_load leaves them."""
    out = np.empty_like(rows)
    for r, row in enumerate(rows):
        for c in range(8):
            out[r, (c ^ r % 8) * 8 :][:8] = row[c * 8 :][:8]
    return out


def box(matrices: np.ndarray) -> np.ndarray:
    x, y, z = AT
    found = np.zeros((BOX[1], BOX[0]), np.uint16)
    part = matrices[z, y : y + BOX[1], x : x + BOX[0]]
    found[: part.shape[0], : part.shape[1]] = part
    return found


def matrices(of: np.ndarray) -> np.ndarray:
    return of[: DEPTH * ROWS * COLUMNS * 2].view(np.uint16).reshape(DEPTH, ROWS, COLUMNS)


def stored(_: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
    x, y, z = AT
    held, into = swizzled(given[:2048].view(np.uint16).reshape(16, 64)), matrices(out)
    into[z, y:, x:] = held[: ROWS - y, : COLUMNS - x]
    return out


def multiplied(variant: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
    threads, registers = np.arange(128)[:, None], np.arange(WGN // 2)[None, :]
    names = {"thread": threads, "register": registers}
    row, column = (np.broadcast_to(eval(text, {}, names), (128, WGN // 2)) for text in HOLDS)
    product = SMALL[0] @ SMALL[1]
    kept = given[16384 : 16384 + 128 * WGN * 2].view(np.float32).reshape(128, WGN // 2) + product[row, column]
    return leaves(np.float32, lambda *_: np.stack([kept, product[row, column]]))(variant, given, out)


def read_words(size: int, shift: int) -> Callable[[Variant, np.ndarray], Any]:
    """`size` elements a thread from its own place on, those beyond T % (size + 3) - 1 as 0."""

    def of(_: Variant, given: np.ndarray) -> np.ndarray:
        rows = given[shift : shift + 128 * size].view(np.uint16).reshape(64, size).copy()
        rows[np.arange(size)[None, :] >= (T % (size + 3) - 1)[:, None]] = 0
        return rows

    return of


def joined(_: Variant, given: np.ndarray) -> np.ndarray:
    pairs = given[:512].view(np.uint16).reshape(64, 2, 2)
    return pairs[T, :, T % 2]


def warps_operands(variant: Variant) -> np.ndarray:
    """Of each thread four pairs of A and two of B, then D."""
    a, b = encode(SMALL[0, :16, :16], variant.dtype), encode(SMALL[1, :16, :8], variant.dtype)
    t = np.arange(32)
    row, col = t // 4, t % 4 * 2
    of_a = [[a[row + r, col + c + e] for e in (0, 1)] for c in (0, 8) for r in (0, 8)]
    of_b = [[b[col + r + e, row] for e in (0, 1)] for r in (0, 8)]
    held = np.array([*of_a, *of_b], np.uint16).transpose(2, 0, 1)  # thread, register, which of the pair
    return words(held, np.arange(128, dtype=np.float32))


def warps_product(variant: Variant, _: np.ndarray) -> np.ndarray:
    whole = SMALL[0, :16, :16] @ SMALL[1, :16, :8]
    t, r = np.arange(32)[:, None], np.arange(4)[None, :]
    return np.arange(128, dtype=np.float32).reshape(32, 4) + whole[t // 4 + r // 2 * 8, t % 4 * 2 + r % 2]


def kept_all(variant: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
    """176 floats a thread, the last first."""
    rows = given[: 176 * 256].view(np.uint32).reshape(176, 64)[::-1]
    return leaves(np.uint32, lambda *_: np.tile(rows, (1, 4)))(variant, given, out)


def read_at_last(variant: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
    """As `stored`, with the next box in matrix 0, and the first element once more."""
    x, y, _ = AT
    out[8000:8002] = swizzled(given[:2048].view(np.uint16).reshape(16, 64))[0, :1].view(np.uint8)
    matrices(out)[0, y:, x:] = swizzled(given[2048:4096].view(np.uint16).reshape(16, 64))[: ROWS - y, : COLUMNS - x]
    return stored(variant, given, out)


def product(times: int) -> Callable[[Variant, np.ndarray, np.ndarray], np.ndarray]:
    """A B as registers hold it, summed so often."""
    names = {"thread": np.arange(128)[:, None], "register": np.arange(WGN // 2)[None, :]}
    row, column = (np.broadcast_to(eval(text, {}, names), (128, WGN // 2)) for text in HOLDS)
    return leaves(np.float32, lambda *_: times * (SMALL[0] @ SMALL[1])[row, column])


def rewritten(variant: Variant) -> np.ndarray:
    """Another A, B, and far behind them the A that counts."""
    first, counts = (swizzled(encode(SMALL[i], variant.dtype).reshape(64, 64)) for i in (2, 0))
    b = swizzled(encode(SMALL[1].T if variant.b_along_k else SMALL[1], variant.dtype).reshape(64, 64))
    return words(first, b, np.zeros(57344 - 16384, np.uint8), counts)


def operands(variant: Variant) -> np.ndarray:
    """A and B as tile_load leaves them, then D of each thread."""
    a, b = SMALL[0], SMALL[1]
    tiles = (a.T if variant.a_along_m else a), (b.T if variant.b_along_k else b)
    held = [swizzled(encode(tile, variant.dtype).reshape(64, 64)) for tile in tiles]
    return words(*held, np.arange(128 * WGN // 2, dtype=np.float32))


def wmma_operands(variant: Variant) -> np.ndarray:
    found = []
    for tile, turned in ((SMALL[0, :16, :16], variant.a_along_m), (SMALL[1, :16, :16], variant.b_along_k)):
        rows = np.full((16, 24), 99, np.float32)
        rows[:, :16] = tile.T if turned else tile
        found.append(encode(rows, variant.dtype))
    return words(*found)


def wmma_left(variant: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
    whole = np.full((16, 20), np.frombuffer(b"\xee" * 4, np.float32)[0], np.float32)
    whole[:, :16] = SMALL[0, :16, :16] @ SMALL[1, :16, :16]
    return leaves(np.float32, lambda *_: whole)(variant, given, out)


def copied(shift: int) -> Callable[[Variant, np.ndarray], np.ndarray]:
    def of(_: Variant, given: np.ndarray) -> np.ndarray:
        rows = given[2 * shift :][:1024].view(np.uint16).reshape(64, 8).copy()
        rows[np.arange(8)[None, :] >= (T % 11 - 1)[:, None]] = 0
        return rows

    return of


def whole_copied(_: Variant, given: np.ndarray) -> np.ndarray:
    return given[:1024].view(np.uint16).reshape(64, 8)


def pairs_copied(_: Variant, given: np.ndarray) -> np.ndarray:
    pairs = given[:256].view(np.uint16).reshape(64, 2).copy()
    pairs[np.arange(2)[None, :] >= (T % 5 - 1)[:, None]] = 0
    return pairs


def near(_: Variant, given: np.ndarray) -> np.ndarray:
    rows = given[:2048].view(np.uint16)[9 * T[:, None] + np.arange(8)[None, :]]
    rows[np.arange(8)[None, :] >= (T % 11 - 1)[:, None]] = 0
    return rows


def floats_copied(count: int) -> Callable[[Variant, np.ndarray], np.ndarray]:
    def of(_: Variant, given: np.ndarray) -> np.ndarray:
        rows = given[: 256 * count].view(np.uint32).reshape(64, count).copy()
        rows[np.arange(count)[None, :] >= (T % 7 - 1)[:, None]] = 0
        return rows

    return of


def floats_left(_: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Up to four of each thread's floats, together by every second thread."""
    into = out[:1024].view(np.uint32).reshape(64, 4)
    there = np.arange(4)[None, :] < (T % 7 - 1)[:, None]
    into[there] = given[:1024].view(np.uint32).reshape(64, 4)[there]
    return out


PAGES = np.array([5, 2, 7, 0, 6, 1, 4, 3], np.int32)


def paged(_: Variant, given: np.ndarray) -> np.ndarray:
    at = 64 + PAGES[T // 8] * 160 + T % 8 * 16 + 8
    return np.where(np.arange(8) < (T % 11 - 1)[:, None], given.view(np.uint16)[at[:, None] + np.arange(8)], 0)


def put(variant: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
    pairs, into = encode(FLOATS[:128], variant.dtype).reshape(64, 2), out[:512].view(np.uint16).reshape(64, 4)
    into[:, 0] = pairs[:, 0]
    into[1::2, 1] = pairs[1::2, 1]
    return out


def row_put(variant: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
    """13 columns of seven rows of 19, from an odd place on."""
    held = encode(FLOATS[:128], variant.dtype).reshape(8, 4, 2, 2).transpose(0, 2, 1, 3).reshape(8, 16)
    out[2:306].view(np.uint16).reshape(8, 19)[:7, :13] = held[:7, :13]
    return out


def float_put(_: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
    pairs, into = FLOATS[:128].reshape(64, 2), out[:1024].view(np.float32).reshape(64, 4)
    into[:, 0] = pairs[:, 0]
    into[1::2, 1] = pairs[1::2, 1]
    return out


def fragment_of(of_b: bool, turned: bool) -> Callable[[Variant, np.ndarray], Any]:
    """A thread's pairs of a matrix of 16 x 16 in rows of 24 elements."""
    t, r, e = np.arange(32)[:, None, None], np.arange(4)[None, :, None], np.arange(2)[None, None, :]
    row, col = t // 4 + r % 2 * 8 + 0 * e, r // 2 * 8 + t % 4 * 2 + e
    if of_b:
        row, col = r % 2 * 8 + t % 4 * 2 + e, t // 4 + r // 2 * 8 + 0 * e
    return lambda _, given: given[:768].view(np.uint16).reshape(16, 24)[(col, row) if turned else (row, col)]


# Row and column of each register of each thread in A, 16 x 8, and in B, 8 x 16.
_THREAD, _REGISTER = np.arange(32)[:, None], np.arange(4)[None, :]
A_OF_TF32 = _THREAD // 4 + _REGISTER % 2 * 8, _THREAD % 4 + _REGISTER // 2 * 4
B_OF_TF32 = _THREAD % 4 + _REGISTER % 2 * 4, _THREAD // 4 + _REGISTER // 2 * 8


def tf32_of(place: tuple[np.ndarray, np.ndarray]) -> Callable[[Variant, np.ndarray], Any]:
    """A thread's floats of a matrix in rows of 24; they are whole, so nothing is rounded."""
    return lambda _, given: given[:2304].view(np.float32).reshape(24, 24)[place]


def in_parts(variant: Variant, given: np.ndarray) -> Any:
    """What `parts` makes of four floats of each thread, then what they lack."""
    bits = given[:512].view(np.uint32).reshape(32, 4)
    high = bits & 0xFFFFE000 if variant.dtype == "f32_3xtf32" else (bits + 0x1000) & 0xFFFFE000
    low = (bits.view(np.float32) - high.view(np.float32)).view(np.uint32)
    return np.concatenate([high, low if variant.dtype == "f32_3xtf32" else 0 * low], axis=1)


def floats_read(_: Variant, given: np.ndarray) -> np.ndarray:
    rows = given[4:1028].view(np.uint32).reshape(64, 4).copy()
    rows[np.arange(4)[None, :] >= (T % 7 - 1)[:, None]] = 0
    return rows


def parts_left(variant: Variant, given: np.ndarray) -> Any:
    """`in_parts` of 64 threads: first parts, then with three products the second ones."""
    found = np.concatenate([in_parts(variant, given), in_parts(variant, given[512:])])
    return found[:, :4] if variant.dtype == "f32_tf32" else np.stack([found[:, :4], found[:, 4:]])


def groups_operands(_: Variant) -> np.ndarray:
    """Each thread's fragments of A, of four steps and of one more; B in chunks, then its low parts; then sums."""
    t, r = np.arange(128)[:, None], np.arange(4)[None, :]
    row, col = t // 32 * 16 + t % 32 // 4 + r % 2 * 8, t % 4 + r // 2 * 4
    parts = [SMALL[0][row, 8 * step + col] for step in range(4)] + [SMALL[2][row, col]]
    tiles = np.full((2, WGN // 8, 292), 99, np.float32)
    for tile, b in zip(tiles, SMALL[1::2, :32], strict=True):
        chunks = b.reshape(8, 4, WGN // 8, 8).transpose(2, 0, 3, 1)
        tile[:, :288].reshape(-1, 8, 36)[..., :32] = chunks.reshape(-1, 8, 32)
    return words(np.stack(parts, axis=1).astype(np.float32), tiles, WHOLE)


def groups_left(variant: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Sums that were not kept, then sums that were."""
    whole = SMALL[2][:, :8] @ SMALL[1][:8] + SMALL[0][:, :32] @ SMALL[1][:32] + SMALL[0][:, 16:24] @ SMALL[3][16:24]
    return leaves(np.float32, lambda *_: whole[placed()])(variant, given, out)


def tf32_operands(_: Variant) -> np.ndarray:
    """A and B of each thread, then sums."""
    tiles = SMALL[0, :16, :8][A_OF_TF32], SMALL[1, :8, :16][B_OF_TF32]
    return words(*(np.concatenate([one, 0 * one], axis=1).astype(np.float32) for one in tiles), WHOLE[:256])


def tf32_left(_: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
    t, e = np.arange(32)[:, None], np.arange(8)[None, :]
    product = SMALL[0, :16, :8] @ SMALL[1, :8, :16]
    found = WHOLE[:256].reshape(32, 8) + product[t // 4 + e // 2 % 2 * 8, e // 4 * 8 + t % 4 * 2 + e % 2]
    return leaves(np.float32, lambda *_: found)(_, given, out)


def of_sums(
    of: Callable[..., Any], *rows: np.ndarray, count: int = 8
) -> Callable[[Variant, np.ndarray, np.ndarray], np.ndarray]:
    """A thread's `count` sums, made of those in WHOLE and of numbers of their rows."""
    each = [one[:, np.arange(count) // 2 % 2] for one in rows]
    with np.errstate(invalid="ignore"):
        return leaves(np.float32, lambda *_: of(WHOLE[: 32 * count].reshape(32, count), *each))


def of_rows(value: Any) -> Callable[[Variant, np.ndarray, np.ndarray], np.ndarray]:
    return leaves(np.float32, lambda *_: value)


def by_row(of: Callable[..., Any], count: int = 8) -> np.ndarray:
    """A function of a thread's sums in each of its two rows."""
    sums = WHOLE[: 32 * count].reshape(32, count // 2, 2)
    return np.stack([of(sums[:, part::2].reshape(32, count // 2), axis=1) for part in (0, 1)], axis=1)


def four(of: Callable[..., Any], rows: np.ndarray) -> np.ndarray:
    """A function of the rows' numbers in four threads each, for all of them."""
    return np.repeat(of(rows.reshape(8, 4, 2), axis=1), 4, axis=0)


def mma_operands(variant: Variant) -> np.ndarray:
    plain = Variant(variant.dtype, 0, 0)
    return words(wmma_operands(plain), WHOLE[:256])


def mma_left(_: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
    t, e = np.arange(32)[:, None], np.arange(8)[None, :]
    product = SMALL[0, :16, :16] @ SMALL[1, :16, :16]
    found = WHOLE[:256].reshape(32, 8) + product[t // 4 + e // 2 % 2 * 8, e // 4 * 8 + t % 4 * 2 + e % 2]
    return leaves(np.float32, lambda *_: found)(_, given, out)


def masked(sums: np.ndarray) -> np.ndarray:
    t, e = np.arange(32)[:, None], np.arange(8)[None, :]
    i, j = t // 4 + e // 2 % 2 * 8, e // 4 * 8 + t % 4 * 2 + e % 2
    apart = 42 + j - (80 + i) // 2
    return np.where((apart >= -5) & (apart <= 4) & (42 + j < 50), sums, -np.inf)


def masked_scores(scores: np.ndarray) -> np.ndarray:
    t, e = np.arange(32)[:, None], np.arange(32)[None, :]
    i, j = t // 4 + e // 2 % 2 * 8, e // 4 * 8 + t % 4 * 2 + e % 2
    apart = 42 + j - (80 + i)
    return np.where((apart >= -30) & (apart <= 4) & (42 + j < 90), scores, -np.inf)


def placed() -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each register of each thread."""
    names = {"thread": np.arange(128)[:, None], "register": np.arange(WGN // 2)[None, :]}
    row, column = (np.broadcast_to(eval(text, {}, names), (128, WGN // 2)) for text in HOLDS)
    return row, column


def weighed_operands(variant: Variant) -> np.ndarray:
    """B as box_load leaves it, A of each thread, then D."""
    values = swizzled(encode(SMALL[1], variant.dtype).reshape(64, 64))
    return words(values, SMALL[0][placed()].astype(np.float32), WHOLE)


def weighed(variant: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        sums = WHOLE.reshape(128, WGN // 2) + (SMALL[0] @ SMALL[1])[placed()]
    return leaves(np.float32, lambda *_: sums)(variant, given, out)


def early(_: Variant, given: np.ndarray, out: np.ndarray) -> np.ndarray | None:
    """What the first one wrote is seen, and the second one had begun before."""
    ended, begun = out[2048:2064].view(np.uint64)
    seen = (out[:256] == given[:256]).all() and (out[1024:1280] == given[:256]).all()
    return None if seen and begun < ended else np.zeros_like(out)


def bytes_at(shape: Any, index: Any) -> Callable[[Variant, np.ndarray], Any]:
    """The input in items of a shape, in another order."""
    return lambda v, g: g[: int(np.prod(shape))].reshape(shape)[index]


def scattered(by: int, count: int) -> np.ndarray:
    """Of a place, which thread wrote it."""
    return np.argsort(np.arange(count) * by % count)


def shifted(size: int, places: int) -> Callable[[Variant, np.ndarray], Any]:
    """`size` elements of twice as many, from each thread's own place on."""
    return lambda v, g: [g[: 256 * size].view(np.uint16).reshape(64, 2 * size)[t, t % places :][:size] for t in T]


def fragments(_: Variant, given: np.ndarray) -> Any:
    """Four matrices of 8 x 8, of which register i of thread t has a pair of row t // 4 of matrix i."""
    registers = given[:512].view(np.uint32).reshape(32, 4)
    return [[registers[t % 8 * 4 + c, t // 8] for c in range(4)] for t in scattered(7, 32)]


def tile(_: Variant, given: np.ndarray) -> Any:
    return swizzled(box(matrices(given)))


def packed(variant: Variant, _: np.ndarray) -> Any:
    return encode(FLOATS[:128], variant.dtype)


def valued(variant: Variant, given: np.ndarray) -> Any:
    return decode(given[:128].view(np.uint16), variant.dtype)


def elements(variant: Variant) -> np.ndarray:
    return words(encode(FLOATS, variant.dtype))


def same(count: int) -> Callable[[Variant, np.ndarray, np.ndarray], np.ndarray]:
    return leaves(np.uint8, lambda v, g: g[:count])


def numbers(of: Any, kind: Any = np.int32) -> Callable[[Variant, np.ndarray, np.ndarray], np.ndarray]:
    return leaves(kind, lambda v, g: of)


def alone(name: str, left: Any, given: Any = noise, **more: Any) -> dict[str, Test]:
    return {name: Test((name,), given, left, **more)}


def warps(name: str, left: Any, given: Any = lambda v: words(WHOLE), **more: Any) -> dict[str, Test]:
    return alone(name, left, given, threads=32, **more)


PAIR = {"grid": 2, "cluster": 2}
TESTS: dict[str, dict[str, Test]] = {
    "cuda-wgmma": {
        **alone("shared_address", numbers(4 * T)),
        **alone("thread_number", numbers(T)),
        **alone("pair_aligned", numbers(T % 2 == 0)),
        **alone("elements_before_word", numbers(-T % 8)),
        **alone("word_store", same(1024)),
        **alone("pair_store", same(256)),
        **alone("floats_aligned", numbers(T % 4 == 0)),
        **alone("float_pair_store", same(512), lambda v: words(FLOATS)),
        **alone("floats_store", same(1024), lambda v: words(FLOATS)),
        **alone("pair_packed", leaves(np.uint16, packed), lambda v: words(FLOATS), every=True),
        **alone("element_value", leaves(np.float32, valued), elements, every=True),
        **alone("flipped", numbers(T % 2 ^ T // 2 % 2)),
        **alone("chunk_swizzled", numbers(T % 8 ^ T // 8 % 8)),
        **alone("words_shifted", leaves(np.uint16, shifted(8, 8))),
        **alone("pair_shifted", leaves(np.uint16, shifted(2, 3))),
        **alone("shared_word", leaves(np.uint8, bytes_at((64, 16), T * 5 % 64))),
        **alone("shared_element", leaves(np.uint8, bytes_at((64, 2), T * 7 % 64))),
        **alone("shared_element_pair", leaves(np.uint8, bytes_at((64, 4), T * 7 % 64))),
        **alone("shared_pair_store", leaves(np.uint8, bytes_at((64, 8), scattered(3, 64)))),
        **alone("shared_float_store", leaves(np.uint8, bytes_at((64, 4), scattered(3, 64)))),
        **alone("matrix_store", leaves(np.uint32, fragments), threads=32),
        **alone("blocks_mask", numbers([sum(1 << t % 2 + 2 * i for i in range(t // 2 % 3)) for t in T])),
        **alone("cluster_rank", numbers([0, 1, 0, 1]), grid=4, cluster=2),
        **alone("cluster_size", numbers([2, 2, 2, 2]), grid=4, cluster=2),
        **alone("is_of_share", numbers(T % 16 * 5 // 16 == T // 16)),
        "barrier_arrive_at": Test(("cluster_ready", "barrier_arrive_at"), noise, numbers([T + 1] * 2), **PAIR),
        **alone("tile_load_shared", leaves(np.uint16, lambda v, g: [tile(v, g)] * 2), map="in", **PAIR),
        "barrier": Test(("barrier_init", "barrier_arrive", "barrier_wait"), noise, same(256)),
        "named": Test(("named_barrier", "named_arrive"), noise, same(128)),
        "load_remote": Test(
            ("cluster_barrier", "load_remote"), noise,
            leaves(np.uint8, lambda v, g: g[:2048].reshape(2, 64, 16)[::-1][:, T * 5 % 64]), **PAIR,
        ),
        "tile_load": Test(
            ("barrier_expect", "tile_load"), noise, leaves(np.uint16, tile), ("shared_written", "barriers_visible"),
            map="in", threads=128,
        ),
        "prefetch": Test((), noise, leaves(np.uint16, tile), ("map_prefetch", "tile_prefetch"), map="in", threads=128),
        "tile_store": Test(("tile_store",), noise, stored, ("shared_written",), map="out", size=8192),
        "tile_stores_read": Test(("tile_stores_read",), noise, stored, map="out", size=8192),
        **alone("tile_stores_done", read_at_last, map="out", size=8192),
        "wgmma": Test(
            ("tile_of_a", "tile_of_b", "wgmma", "wgmma_begin"), operands, multiplied, ("wgmma_commit", "wgmma_wait"),
            threads=128, size=32768, every=True,
        ),
        "overwritten": Test(("wgmma_wait",), operands, product(16), threads=128, size=16384),
        "groups": Test(("wgmma_commit",), operands, product(16), threads=128, size=16384),
        **alone("shared_written", product(1), rewritten, threads=128, size=16384),
        "box_load": Test(
            ("box_load",), noise, leaves(np.uint16, tile), ("shared_written",), map="in", axes=4, threads=128,
        ),
        "box_store": Test(("box_store",), noise, stored, map="out", axes=4, size=8192),
        "weighed": Test(
            ("tile_of_values", "wgmma_weighed", "scores_packed"), weighed_operands, weighed,
            ("scores_there", "sums_there"), threads=128, size=16384, every=True,
        ),
        **alone(
            "signs_turned", leaves(np.uint16, lambda v, g: g[:8192].view(np.uint16) ^ 0x8000), threads=128, size=8192
        ),
        **warps("scores_masked", of_sums(masked_scores, count=32)),
        **warps(
            "scores_exp2", of_sums(lambda s, by: np.exp2(s * 2 - np.where(np.isinf(by), 0, by)), SHIFT, count=32)
        ),
        **warps("sums_by_rows", of_sums(np.multiply, ROWS_OF, count=32)),
        **warps("rows_lowest", of_rows(np.full(64, -np.inf))),
        **warps("rows_most", of_rows(four(np.max, by_row(np.max, 32)))),
        **warps("rows_shifted", of_rows(np.stack([SELDOM, np.exp2(SELDOM_FELL)]))),
        **warps("rows_added", of_rows(ROWS_OF * POWERS + by_row(np.sum, 32))),
        **warps("rows_total", of_rows(four(np.sum, ROWS_OF))),
        **warps("rows_logarithm", of_rows(LOGARITHMS)),
        **warps("rows_inverted", of_rows(INVERSES)),
        **alone("word_read", leaves(np.uint16, read_words(8, 0))),
        **alone("half_word_read", leaves(np.uint16, read_words(4, 8))),
        **alone("pair_read", leaves(np.uint16, read_words(2, 4))),
        **alone("pairs_joined", leaves(np.uint16, joined)),
        **alone("warp_multiply", leaves(np.float32, warps_product), warps_operands, threads=32, every=True),
        "registers": Test(
            ("registers_fewer", "registers_more"), noise, kept_all, threads=384, size=176 * 1024,
            bounds="__launch_bounds__(384, 1)",
        ),
        "previous": Test(("previous_done", "next_may_begin"), noise, early, after_first=True),
    },
    "cuda-wmma": {
        "word_copy": Test(
            ("word_copy", "copies_commit", "copies_wait"), noise, leaves(np.uint16, copied(0)),
        ),
        **alone("elements_copy", leaves(np.uint16, copied(1))),
        **alone("value", leaves(np.float32, valued), elements, every=True),
        **alone("pair_aligned", numbers(T % 2 == 0)),
        **alone("floats_aligned", numbers(T % 2 == 0)),
        **alone("float_pair_put", float_put, lambda v: words(FLOATS)),
        **alone("pair_put", put, lambda v: words(FLOATS), every=True),
        "tiles": Test(
            ("sum_clear", "tile_a", "tile_b", "tile_multiply", "sum_spread"), wmma_operands, wmma_left, threads=32,
            every=True,
        ),
    },
    "cuda-mma": {
        "word_copy": Test(
            ("word_copy", "copies_commit", "copies_wait"), noise, leaves(np.uint16, copied(0)),
        ),
        "whole_copy": Test(("whole_copy", "copies_commit", "copies_wait"), noise, leaves(np.uint16, whole_copied)),
        **alone("elements_copy", leaves(np.uint16, copied(1))),
        **alone("pair_copy", leaves(np.uint16, pairs_copied)),
        "near": Test(("near_read", "near_put"), noise, leaves(np.uint16, near)),
        **alone("value", leaves(np.float32, valued), elements, every=True),
        **alone("float_pair_put", float_put, lambda v: words(FLOATS)),
        **alone("page_of", numbers(np.where(T % 5 == 0, 0, PAGES[T // 8 % 8])), lambda v: words(PAGES, NOISE[32:])),
        **alone("page_copy", leaves(np.uint16, paged), lambda v: words(PAGES, NOISE[32:])),
        **alone("pair_put", put, lambda v: words(FLOATS), every=True),
        **warps("row_pairs_put", row_put, lambda v: words(FLOATS), every=True),
        **warps("tile_a", leaves(np.uint16, fragment_of(False, False)), noise),
        **warps("tile_a_turned", leaves(np.uint16, fragment_of(False, True)), noise),
        **warps("tile_b", leaves(np.uint16, fragment_of(True, False)), noise),
        **warps("tile_b_turned", leaves(np.uint16, fragment_of(True, True)), noise),
        **warps("tile_multiply", mma_left, mma_operands, every=True),
        **warps("sum_clear", of_sums(np.zeros_like)),
        **warps("sum_negated", of_sums(lambda sums: -sums)),
        **warps("sum_masked", of_sums(masked)),
        **warps("sum_exp2", of_sums(lambda sums, by: np.exp2(sums * 2 - np.where(np.isinf(by), 0, by)), SHIFT)),
        **warps("sum_by_rows", of_sums(np.multiply, ROWS_OF)),
        **warps(
            "sum_as_a", leaves(np.uint16, lambda v, g: encode(FLOATS[:256], v.dtype)), lambda v: words(FLOATS),
            every=True,
        ),
        **warps("sum_value", of_rows(WHOLE[:256].reshape(32, 8)[:, 5])),
        **warps("rows_set", of_rows(np.full(64, 2.5))),
        **warps("rows_lowest", of_rows(np.full(64, -np.inf))),
        **warps("rows_raised", of_rows(np.maximum(SHIFT, by_row(np.max)))),
        **warps("rows_added", of_rows(ROWS_OF + by_row(np.sum))),
        **warps("rows_most", of_rows(four(np.max, SHIFT))),
        **warps("rows_total", of_rows(four(np.sum, ROWS_OF))),
        **warps("rows_shifted", of_rows(np.stack([ROSE, np.exp2(FELL)]))),
        **warps("rows_times", of_rows(ROWS_OF * WHOLE[:64].reshape(32, 2))),
        **warps("rows_inverted", of_rows(INVERSES)),
        **warps("rows_logarithm", of_rows(LOGARITHMS)),
        **warps("rows_value", of_rows(WHOLE[:64].reshape(32, 2)[:, 1])),
    },
    "cuda-fma": {
        "word_copy": Test(("word_copy", "copies_commit", "copies_wait"), noise, leaves(np.uint32, floats_copied(4))),
        **alone("float_copy", leaves(np.uint32, floats_copied(1))),
        **alone("floats_at", leaves(np.uint8, bytes_at((64, 16), T * 5 % 64))),
        **alone("floats_put", floats_left),
        **alone("word_read", leaves(np.uint32, floats_copied(4))),
        **alone("floats_read", leaves(np.uint32, floats_read)),
        **alone("row_in_warp", numbers(3 * (T % 2 + T % 32 // 16 * 2))),
        **alone("column_in_warp", numbers(T // 2 % 8 * 4)),
    },
}  # fmt: skip
TESTS["cuda-tf32"] = {
    **TESTS["cuda-fma"],
    **warps("parts", leaves(np.uint32, in_parts), lambda v: words(FLOATS), every=True),
    **warps("rows_of_a", leaves(np.float32, tf32_of(A_OF_TF32)), lambda v: words(WHOLE)),
    **warps("columns_of_a", leaves(np.float32, tf32_of(A_OF_TF32[::-1])), lambda v: words(WHOLE)),
    **warps("rows_of_b", leaves(np.float32, tf32_of(B_OF_TF32)), lambda v: words(WHOLE)),
    **warps("columns_of_b", leaves(np.float32, tf32_of(B_OF_TF32[::-1])), lambda v: words(WHOLE)),
    **warps("tiles_multiply", tf32_left, tf32_operands, every=True),
    **warps("product", tf32_left, tf32_operands),
    **warps("sum_clear", of_sums(np.zeros_like)),
    **warps("sum_value", of_rows(WHOLE[:256].reshape(32, 8)[:, 5])),
    **alone("float_pair_put", float_put, lambda v: words(FLOATS)),
}  # fmt: skip
OF_TF32 = ("parts", "rows_of_a", "columns_of_a", "float_pair_put")
TESTS["cuda-tf32-wgmma"] = {
    **TESTS["cuda-fma"],
    **{label: TESTS["cuda-tf32"][label] for label in OF_TF32},
    "registers": TESTS["cuda-wgmma"]["registers"],
    "barrier": Test(("barrier_init", "barrier_arrive", "barrier_wait"), noise, same(256)),
    **alone("word_read", leaves(np.uint32, floats_copied(4))),
    **alone("floats_read", leaves(np.uint32, floats_read)),
    **alone("words_turned", leaves(np.uint32, lambda v, g: g[:4096].view(np.uint32).reshape(64, 4, 4).swapaxes(1, 2))),
    **alone("parts_put", leaves(np.uint32, parts_left), lambda v: words(FLOATS), every=True),
    "products": Test(
        ("group_multiply", "group_multiply_low", "group_multiply_rest", "group_product"), groups_operands, groups_left,
        ("products_begin", "products_wait", "shared_written"), threads=128, size=16384,
    ),
}  # fmt: skip
SPILLED = re.compile(r"Function properties for (\w+)\n.*?(\d+) bytes spill stores")
VARIANTS = tuple(Variant(dtype, a, b) for dtype in ("bf16", "f16") for a in (0, 1) for b in (0, 1))
VARIANTS_OF = {**dict.fromkeys(TESTS, VARIANTS), "cuda-fma": (Variant("f32", 0, 0),)}
for of_tf32 in ("cuda-tf32", "cuda-tf32-wgmma"):
    VARIANTS_OF[of_tf32] = tuple(Variant(dtype, 0, 0) for dtype in ("f32_tf32", "f32_3xtf32"))
TEXTS = re.compile(r"^TEST\((\w+)\) \{(.*?)\}\n(?=\n|\Z)", re.MULTILINE | re.DOTALL)


def text_of(texts: dict[str, str], name: str, label: str) -> str:
    """The text of a test of a set: its own, or that of the first set in its name, or of what it extends."""
    names = [name.removeprefix("cuda-").replace("-", "_"), *name.split("-")[1:], "fma"]
    return next(texts[f"{one}_{label}"] for one in names if f"{one}_{label}" in texts)


def controls(test: Test) -> list[str]:
    return [*test.covers, *test.unseen]


def build(folder: Path) -> None:
    """A cubin for each set, type and layout; those of the first have the controls."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tensorop.cuda import kernels
    from tensorop.provision import nvcc
    from tensorop.specs import operators, platforms

    folder.mkdir(parents=True, exist_ok=True)
    operator, compiler = operators.load("gemm"), nvcc.nvcc()
    whole = (Path(__file__).parent / "primitives.cuh").read_text()
    texts = dict(TEXTS.findall(whole))
    sets = {one.name: one for name in ("cuda-sm80", "cuda-sm90") for one in platforms.load(name).primitives}

    def text(name: str, variant: Variant) -> str:
        known = sets[name]
        of = {"dtype": variant.dtype, "a_along_m": variant.a_along_m, "b_along_k": variant.b_along_k, "wgn": WGN}
        of["tf32_products"] = kernels.tf32_products(variant.dtype)
        of |= {"chunk_b": 64, "cluster": 2, "threads": 64, "tile_n": WGN, "values": WGN, "piece": 64, "warp_n": 16}
        if strange := set(known.collectives) ^ {p for t in TESTS[name].values() for p in controls(t)}:
            raise SystemExit(f"{name}: no test, or no primitive, for {', '.join(sorted(strange))}")
        if name == "cuda-wgmma" and tuple(known.collectives["wgmma"].holds["d"]) != HOLDS:
            raise SystemExit("wgmma's `holds` is another now")

        def functions(empty: str) -> str:
            parts = [f"typedef {c} {name};" for name, c in known.addresses.items()]
            parts.append(kernels._rendered(operator, known.types[kernels.kind(variant.dtype)].support, of))
            for one in known.collectives.values():
                whole = kernels._function(one)
                whole = kernels._rendered(operator, whole, of) if one.parameters else whole
                if one.name == empty:
                    nothing = "" if one.returns == "void" else f"return {one.returns}{{}};"
                    whole = f"{whole[: whole.index('{' + chr(10))]}{{ {nothing} }}\n"
                parts.append(whole)
            return "\n".join(parts)

        def test(space: str, label: str, one: Test) -> str:
            args = ("const __grid_constant__ CUtensorMap map, " if one.map else "") + "const uint8_t *in, uint8_t *out"
            bodies = [(part, text_of(texts, name, f"{label}{part}")) for part in ("_first", "")[not one.after_first :]]
            return "\n".join(
                f'extern "C" __global__ void {one.bounds} {space}_{label}{part}({args}) {{{body}}}'
                for part, body in bodies
            )

        main = variant == VARIANTS_OF[name][0]
        wanted = {label: one for label, one in TESTS[name].items() if main or one.every}
        spaces = [("real", "", wanted)]
        for label, one in wanted.items() if main else ():
            spaces += [(f"no_{primitive}", primitive, {label: one}) for primitive in controls(one)]
        layout = f"#define A_ALONG_M {variant.a_along_m}\n#define B_ALONG_K {variant.b_along_k}"
        found = [*(f"#include <{header}>" for header in known.headers), layout, whole[: whole.index("\nTEST(")]]
        for place, (space, empty, tests) in enumerate(spaces):
            kernels_of = "\n".join(test(space, label, one) for label, one in tests.items())
            found.append(f"namespace s{place} {{\n{functions(empty)}\n{kernels_of}\n}}")
        return "\n".join(found)

    def compiled(name: str, variant: Variant) -> None:
        source = folder / f"{name}-{variant}.cu"
        source.write_text(text(name, variant))
        words = [str(compiler.binary), "-std=c++17", "-O2", "-w", "-Xptxas=-v"]
        words += ["-cubin", "-gencode=arch=compute_90a,code=sm_90a"]
        done = subprocess.run(
            [*words, str(source), "-o", str(source.with_suffix(".cubin"))], capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(done.stderr or done.stdout)
        found = {kernel: int(stores) for kernel, stores in SPILLED.findall(done.stdout + done.stderr) if int(stores)}
        source.with_suffix(".json").write_text(json.dumps(found))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: compiled(*one), [(name, variant) for name in TESTS for variant in VARIANTS_OF[name]]))


class Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16))


class Config(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint),
    )  # fmt: skip


def left_by(cubin: Path, space: str, label: str, test: Test, given: np.ndarray) -> np.ndarray:
    """What a kernel leaves on the first device."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def must(name: str, *words: Any) -> None:
        if status := getattr(cuda, name)(*words):
            raise RuntimeError(f"{name} returned {status}")

    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    must("cuInit", 0)
    must("cuDeviceGet", ctypes.byref(device), 0)
    must("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    must("cuCtxSetCurrent", context)
    must("cuModuleLoad", ctypes.byref(module), str(cubin).encode())
    at = [ctypes.c_uint64(), ctypes.c_uint64()]
    for place, size in zip(at, (1 << 16, test.size), strict=True):
        must("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size))
    out = np.full(test.size, POISON, np.uint8)
    for place, held in zip(at, (given, out), strict=True):
        must("cuMemcpyHtoD_v2", place, held.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(held.size))
    arguments = [ctypes.cast(ctypes.byref(place), ctypes.c_void_p) for place in at]
    if test.map:
        raw = ctypes.create_string_buffer(256)
        aligned = ctypes.c_void_p(-(-ctypes.addressof(raw) // 128) * 128)
        between = [1] * (test.axes - 3)
        extents = (ctypes.c_uint64 * test.axes)(COLUMNS, ROWS, *between, DEPTH)
        pitches = (ctypes.c_uint64 * (test.axes - 1))(COLUMNS * 2, *(ROWS * COLUMNS * 2 for _ in (*between, 1)))
        small, steps = ((ctypes.c_uint32 * test.axes)(*one, *[1] * (test.axes - len(one))) for one in (BOX, ()))
        base = at[test.map == "out"]
        must("cuTensorMapEncodeTiled", aligned, 9, test.axes, base, extents, pitches, small, steps, 0, 3, 0, 0)
        arguments.insert(0, aligned)
    functions = [ctypes.c_void_p() for _ in ("_first", "")[not test.after_first :]]
    for function, part in zip(functions[::-1], ("", "_first"), strict=False):  # all before the first launch
        must("cuModuleGetFunction", ctypes.byref(function), module, f"{space}_{label}{part}".encode())
        must("cuFuncSetAttribute", function, 8, 49152)
    stream = ctypes.c_void_p()
    must("cuStreamCreate", ctypes.byref(stream), 1)
    attributes = (Attribute * 2)()
    attributes[0].id, attributes[0].value[0] = 6, 1
    attributes[1].id, attributes[1].value[:3] = 4, [test.cluster, 1, 1]
    config = Config((test.grid, 1, 1), (test.threads, 1, 1), 49152, stream, attributes, 2)
    for function in functions:
        must("cuLaunchKernelEx", ctypes.byref(config), function, (ctypes.c_void_p * len(arguments))(*arguments), None)
    must("cuCtxSynchronize")
    must("cuMemcpyDtoH_v2", out.ctypes.data_as(ctypes.c_void_p), at[1], ctypes.c_size_t(out.size))
    return out


def one(folder: Path, name: str, variant: Variant, space: str, label: str) -> str:
    test = TESTS[name][label]
    if spilled := json.loads((folder / f"{name}-{variant}.json").read_text()).get(f"{space}_{label}"):
        return f"spills {spilled} bytes"
    given = np.ascontiguousarray(test.given(variant))
    got = left_by(folder / f"{name}-{variant}.cubin", space, label, test, given)
    start = got if test.left is early else np.full(test.size, POISON, np.uint8)
    wanted = test.left(variant, given, start)
    if wanted is None or (got == wanted).all():
        return "right"
    differ = np.flatnonzero(got != wanted)
    return f"wrong: {differ.size} of {got.size} bytes, first {differ[0]}: {got[differ[0]]}, not {wanted[differ[0]]}"


def run(folder: Path) -> int:
    """Each in its own process: one that hangs or faults is an outcome."""
    jobs = [
        (name, variant, space, label)
        for name, tests in TESTS.items()
        for variant in VARIANTS_OF[name]
        for label, test in tests.items()
        if (variant == VARIANTS_OF[name][0] or test.every) and label in (sys.argv[4:] or tests)
        for space in ("real", *(f"no_{p}" for p in (controls(test) if variant == VARIANTS_OF[name][0] else ())))
    ]

    def outcome(job: tuple[str, Variant, str, str]) -> str:
        words = [sys.executable, __file__, "one", str(folder), job[0], str(job[1]), *job[2:]]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            return "hangs"
        return done.stdout.strip() if done.returncode == 0 else (done.stderr.strip() or "died").splitlines()[-1]

    with ThreadPoolExecutor(8) as pool:
        found = list(zip(jobs, pool.map(outcome, jobs), strict=True))
    bad, rows = 0, []
    for (name, variant, space, label), said in found:
        emptied = space.removeprefix("no_") if space != "real" else ""
        must = emptied in TESTS[name][label].covers
        good = (said == "right") == (not emptied) or (bool(emptied) and not must)
        bad += not good
        rows.append(
            {"set": name, "variant": str(variant), "test": label, "without": emptied, "outcome": said, "good": good}
        )
        print(
            f"{'ok ' if good else 'BAD'} {name} {variant} {label}{' without ' + emptied if emptied else ''}: {said}",
            flush=True,
        )
    print(f"{len(rows)} runs, {bad} not as they must be")
    if len(sys.argv) > 3:
        Path(sys.argv[3]).write_text(json.dumps(rows, indent=1) + "\n")
    return int(bad > 0)


def main() -> int:
    if sys.argv[1] == "build":
        build(Path(sys.argv[2]))
        return 0
    if sys.argv[1] == "one":
        dtype, layout = sys.argv[4].split("-")
        variant = Variant(dtype, int(layout[0]), int(layout[1]))
        print(one(Path(sys.argv[2]), sys.argv[3], variant, *sys.argv[5:7]))
        return 0
    return run(Path(sys.argv[2]))


if __name__ == "__main__":
    raise SystemExit(main())
