"""attention's kernel by tensor maps on ragged batches, executed on this machine's processor (maps_on_cpu.h)."""

from __future__ import annotations

import ctypes
import os
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorop import paths
from tensorop.cuda import kernels
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.family import Family
from tensorop.provision.zig import zig_cc, zig_environment
from tests.support.attention_products import ATTENTION, SM90, WGMMA
from tests.support.device_products import SUPPORT

Point = dict[str, int | str]
ALONE: Point = {
    "head": 64, "groups": 1, "producer": 0, "tile_n": 64, "stages": 2, "resident": 3, "apart": 0, "stays": 0,
    "lists": 1,
}  # fmt: skip
PAIR: Point = {**ALONE, "groups": 2, "producer": 1, "resident": 1, "apart": 1, "stays": 1}
MOST = 1073737728


class Args(ctypes.Structure):
    """device/args.h.j2"""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("s", "t", "d", "dv", "heads", "shared", "tiles", "splits", "low", "high")),
        *((name, ctypes.c_int) for name in ("end", "turned", "page", "blocks", "all_heads", "section")),
        ("scale", ctypes.c_float),
        *((name, ctypes.c_void_p) for name in ("q", "k", "v", "o", "lse", "starts_q", "starts_k", "lengths", "pages")),
        *((f"{of}_{name}", ctypes.c_int64) for of in "qkvo" for name in ("batch", "row", "head")),
        *((name, ctypes.c_int64) for name in ("lse_batch", "lse_head", "pages_row")),
    )


class Map(ctypes.Structure):
    """A tensor map, in maps_on_cpu.h."""

    _fields_ = (
        ("base", ctypes.c_void_p),
        ("extents", ctypes.c_int64 * 4),
        ("pitches", ctypes.c_int64 * 4),
        ("rows", ctypes.c_int64),
    )


@dataclass(frozen=True)
class Ragged:
    """A ragged batch: queries and keys of each sequence, heads, and the keys that a query sees.

    Rows outside of all sequences, in front of the first and behind the last, are NaN.
    """

    s: tuple[int, ...]
    t: tuple[int, ...]
    d: int = 64
    dv: int = 64
    heads: int = 2
    key_heads: int = 1
    left: int = -1
    right: int = -1
    end: int = 1
    scale: float = 0.3
    spoiled: int = -1  # the sequence whose keys and values are NaN or infinite
    front: int = 3  # rows before the first sequence
    dense: tuple[str, ...] = field(default=())  # "q": all sequences have s[0] queries, in batches; "k": t by lengths


def built(folder: Path, point: Point, masked: int, spoil: tuple[str, str] = ("", "")) -> Any:
    """A kernel as a function of this machine, with its numbers. spoil: a text of its CUDA, and what replaces it"""
    of = Family(ATTENTION.on_device, WGMMA, {**device_numbers(SM90), "masked": masked})
    same = np.logical_and.reduce([of.grid[name] == value for name, value in point.items()])
    numbers = of.numbers(int(np.flatnonzero(same)[0]))
    text = kernels.text(ATTENTION, SM90, WGMMA, "f16", numbers)
    assert isinstance(text, str), text
    args = text[text.index("/* Arguments of a launch.") : text.index("struct alignas(128) CUtensorMap")]
    kernel = text[text.index("/* `steps` blocks of") : text.rindex("} // namespace")]
    assert spoil[0] in kernel
    kernel = kernel.replace(*spoil) if spoil[0] else kernel
    parts = ['#include "maps_on_cpu.h"', args, kernel, '#include "maps_on_cpu.inc"\n']
    (folder / "kernel.cpp").write_text("\n".join(parts))
    names = ("shared", "threads", "resident", "tile_n", "values", "lists")
    command = [*zig_cc(), "-std=c++17", "-fno-exceptions", "-O2", "-w", "-shared", "-fPIC", f"-I{SUPPORT}"]
    command += [f"-I{paths.native_dir() / 'device/on_cpu'}", *(f"-D{name.upper()}={numbers[name]}" for name in names)]
    command += [str(folder / "kernel.cpp"), "-lm", "-o", str(folder / "kernel.so")]
    subprocess.run(command, check=True, env={**os.environ, **zig_environment()})
    return ctypes.CDLL(str(folder / "kernel.so")), numbers


def rows_of(counts: tuple[int, ...], front: int) -> np.ndarray:
    return np.concatenate([[front], front + np.cumsum(counts)]).astype(np.int32)


def described(x: np.ndarray, rows: int) -> Map:
    """x: batches, rows, heads, numbers, whose heads may have room between them"""
    of, pitch = (x.shape[3], x.shape[1], x.shape[2], x.shape[0]), x.strides
    return Map(x.ctypes.data, of, (2, pitch[1], pitch[2], pitch[0]), rows)


def wrong(made: Any, of: Ragged, blocks: int = 0) -> str:
    """What a call leaves that it should not; "" for nothing. blocks: of the launch, fewer than tiles; 0: all"""
    kernel, numbers = made
    rng, count, tile_m = np.random.default_rng(5), len(of.s), int(numbers["tile_m"])
    starts_q, starts_k = rows_of(of.s, of.front), rows_of(of.t, of.front)
    shapes = [(of.s, starts_q, of.heads, of.d), *((of.t, starts_k, of.key_heads, x) for x in (of.d, of.dv))]
    given = []
    for name, (rows, starts, heads, cols) in zip("qkv", shapes, strict=True):
        each = ("q" if name == "q" else "k") in of.dense  # batches of their own
        room = (count, max(rows), heads, cols + 8) if each else (1, starts[-1] + 5, heads, cols + 8)
        x = np.full(room, np.nan, np.float16)[..., :cols]
        for i in range(count):
            at = x[i, : rows[i]] if each else x[0, starts[i] : starts[i + 1]]
            at[...] = rng.normal(size=at.shape)
            if i == of.spoiled and name != "q":
                at[...] = rng.choice([np.nan, np.inf, -np.inf], at.shape)
        given.append((x, each))
    (q, own_q), (k, own_k), (v, _) = given
    o = np.full((*q.shape[:3], of.dv + 8), 7, np.float16)[..., : of.dv]
    lse = np.full((q.shape[0], of.heads, q.shape[1]), 7, np.float32)
    s, t = max(of.s), max(of.t)
    lengths = np.array(of.t, np.int32)
    tiles = -(-s // tile_m)
    all_blocks = count * tiles * of.heads if own_q else (q.shape[1] // tile_m + count) * of.heads
    own = 0 if numbers["lists"] else t - s
    args = Args(s, t, of.d, of.dv, of.heads, of.heads // of.key_heads, tiles, 0)
    args.low, args.high = own - (MOST if of.left < 0 else of.left), own + (MOST if of.right < 0 else of.right)
    args.end, args.turned, args.scale = of.end, of.scale < 0, abs(of.scale) * 1.4426950408889634
    args.blocks, args.all_heads, args.section = all_blocks, count * of.heads, 3
    args.lse, args.lse_batch, args.lse_head = lse.ctypes.data, lse[0].size if own_q else 0, q.shape[1]
    args.starts_q = None if own_q else starts_q.ctypes.data
    args.starts_k = None if own_k else starts_k.ctypes.data
    args.lengths = lengths.ctypes.data if own_k and numbers["lists"] else None
    keys = int(numbers["tile_n"])
    maps = (Map * 5)(described(q, 64), described(k, keys), described(v, keys), described(o, 64), described(o, 1))
    if kernel.run(maps, ctypes.byref(args), blocks or all_blocks):
        return "a thread waits for ever, or an address is wrong"
    hoped, sums = np.full(o.shape, 7.0), np.full(lse.shape, 7.0)
    for i in range(count):
        at_q = (i, slice(0, of.s[i])) if own_q else (0, slice(starts_q[i], starts_q[i + 1]))
        at_k = (i, slice(0, of.t[i])) if own_k else (0, slice(starts_k[i], starts_k[i + 1]))
        a, b, c = (x[at].astype(float) for x, at in ((q, at_q), (k, at_k), (v, at_k)))
        if i == of.spoiled:
            o[at_q], lse[at_q[0], :, at_q[1]] = 7, 7
            continue
        apart = np.arange(of.t[i])[None, :] - np.arange(of.s[i])[:, None] - (of.t[i] - of.s[i] if of.end else 0)
        seen = (apart >= -(MOST if of.left < 0 else of.left)) & (apart <= (MOST if of.right < 0 else of.right))
        for head in range(of.heads):
            here = head * of.key_heads // of.heads
            p = np.where(seen, np.exp(of.scale * a[:, head] @ b[:, here].T), 0)
            total = p.sum(axis=1)
            with np.errstate(divide="ignore"):
                sums[at_q[0], head, at_q[1]] = np.log(total)
            hoped[(*at_q, head)] = p @ c[:, here] / np.where(total == 0, 1, total)[:, None]
    with np.errstate(invalid="ignore"):
        if not (np.abs(o - hoped) < 0.01).all():
            return "O"
        return "" if ((lse == sums) | (np.abs(lse - sums) < 0.002)).all() else "log-sum-exps"


EDGES = Ragged((70, 0, 5, 130), (65, 9, 0, 127))
CALLS = {
    "full": EDGES,
    "grouped": replace(EDGES, heads=4, key_heads=2, dv=40, d=40),
    "values-of-a-neighbour": replace(EDGES, t=(65, 66, 3, 127), spoiled=1),
    "values-of-the-first": replace(EDGES, t=(65, 66, 3, 127), spoiled=0),
    "negative-scale": replace(EDGES, scale=-0.3),
    "lengths": replace(EDGES, dense=("k",)),
    "batches-of-queries": replace(EDGES, s=(70, 70, 70, 70), dense=("q",)),
}
MASKED = {
    "causal": replace(EDGES, right=0),
    "causal-from-the-start": replace(EDGES, right=0, end=0),
    "window": replace(EDGES, left=30, right=4, heads=4, key_heads=4),
    "values-of-a-neighbour": replace(EDGES, t=(65, 66, 3, 127), spoiled=1, right=0),
}


ALIKE = replace(EDGES, s=(70, 70), t=(150, 150), dense=("q", "k"))


@pytest.mark.covers("template attention/wgmma")
@pytest.mark.parametrize(("point", "masked"), [(ALONE, 0), (ALONE, 1), (PAIR, 0), (PAIR, 1)])
def test_ragged_batches_are_right(point: Point, masked: int, tmp_path: Path) -> None:
    made, calls = built(tmp_path, point, masked), MASKED if masked else CALLS
    found = {name: wrong(made, of) for name, of in calls.items()}
    if point["stays"]:  # each block has several tiles
        found |= {f"{name} in few blocks": wrong(made, of, 3) for name, of in calls.items()}
    assert not any(found.values()), found


@pytest.mark.parametrize("masked", [0, 1])
def test_batches_of_equal_sequences_are_right(masked: int, tmp_path: Path) -> None:
    made = built(tmp_path, {**PAIR, "lists": 0}, masked)
    of = replace(ALIKE, right=-1 + masked)
    assert not wrong(made, of)
    assert not wrong(made, of, 3)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("spoil", "of", "found"),
    [
        (("if (behind >= last_keys)", "if (false)"), CALLS["values-of-a-neighbour"], "O"),
        (("if (row + 64 > s)", "if (false)"), EDGES, "O"),
        (("tiles++ % 2", "turn % 2"), EDGES, "a thread waits for ever, or an address is wrong"),
        (("row0, int(k0) + seen.first", "row0, seen.first"), EDGES, "O"),
        (("p.lse_head + q0", "p.lse_head"), EDGES, "log-sum-exps"),
        (("registers_more<232>", "registers_more<240>"), EDGES, "a thread waits for ever, or an address is wrong"),
    ],
    ids=[
        "values-stay", "rows-of-another", "skipped-tiles-count", "keys-of-the-first", "sums-of-the-first",
        "registers-missing",
    ],
)  # fmt: skip
def test_a_kernel_with_a_fault_is_refused(spoil: tuple[str, str], of: Ragged, found: str, tmp_path: Path) -> None:
    assert wrong(built(tmp_path, PAIR, 0, spoil), of, 3) == found
