"""Kernels that take no tensor map, executed: over what their primitives mean, on this machine's processor."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tensorop.author import offline
from tensorop.cuda import backend as cuda
from tensorop.cuda import kernels
from tensorop.cuda.choose import Candidate
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.executed import Execution
from tensorop.cuda.family import Family
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
from tensorop.provision.zig import zig, zig_environment
from tensorop.specs import operators, platforms
from tests.support.classes import each_once, extended, some
from tests.support.commands import ROOT

GEMM = operators.load("gemm")
TEMPLATES = {one.name: one for one in offline.templates(GEMM.folder, "gemm", suffix=cuda.SUFFIX)}
WMMA = platforms.load("cuda-wmma")
SM90 = platforms.load("cuda-sm90")
DEVICE = device_numbers(SM90)
SUPPORT = ROOT / "tests" / "support"
WORDS: dict[str, int | str] = {
    "tile_m": 64, "tile_n": 64, "tile_k": 32, "warp_m": 32, "warp_n": 64, "stages": 3, "rows": "words", "raster": 4,
}  # fmt: skip
FLOATS: dict[str, int | str] = {
    "thread_m": 8, "thread_n": 4, "warps_m": 1, "warps_n": 1, "slices": 2, "tile_k": 16, "stages": 3, "rows": "words",
    "raster": 4, "turned": 0,
}  # fmt: skip
OF_FLOATS = [
    FLOATS,
    {**FLOATS, "thread_m": 4, "thread_n": 8, "warps_m": 2, "slices": 1, "tile_k": 8, "stages": 2, "rows": "elements"},
    {**FLOATS, "thread_m": 1, "slices": 8, "tile_k": 64, "stages": 2},
    {**FLOATS, "thread_n": 8, "turned": 1},
]
WIDE: dict[str, int | str] = {"warps_m": 2, "warps_n": 1, "rows": "words", "raster": 4}
TF32 = {**{name: WORDS[name] for name in WORDS if name != "rows"}, "tile_k": 16, "stages": 2}
OF_TF32 = [{**TF32, "rows": "words"}, {**TF32, "rows": "elements"}]
WGMMA: dict[str, int | str] = {"tile_n": 64, "stages": 3, "rows": "words", "raster": 4}
MMA: dict[str, int | str] = {
    "tile_m": 32, "tile_n": 32, "tile_k": 32, "warp_m": 16, "warp_n": 32, "slices": 1, "stages": 3, "rows": "pairs",
}  # fmt: skip
OF_MMA = [MMA, {**MMA, "tile_k": 64, "slices": 2, "rows": "words"}, {**MMA, "stages": 2, "rows": "elements"}]
POINTS = [WORDS, {**WORDS, "stages": 2, "rows": "elements"}, {**WORDS, "tile_n": 128, "tile_k": 64, "stages": 2}]


class Args(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ["m", "n", "k", "batch", "tiles_m", "tiles_n", "group"]),
        *((name, ctypes.c_float) for name in ("alpha", "beta")),
        *((name, ctypes.c_void_p) for name in "abc"),
        *((name, ctypes.c_int64) for name in ["lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c"]),
        ("general", ctypes.c_int),
        ("epilogue", ctypes.c_int64 * 8),
    )


def built(
    folder: Path,
    point: dict[str, int | str],
    a_along_m: int,
    b_along_k: int,
    spoil: str = "",
    c_size: int = 2,
) -> ctypes.CDLL:
    """A kernel of `small` as a function of this machine. spoil: a text of it that is left out."""
    name = "small"
    family = Family(
        GEMM.on_device, TEMPLATES[name], {**DEVICE, "c_size": c_size, "a_along_m": a_along_m, "b_along_k": b_along_k}
    )
    same = np.logical_and.reduce([family.grid[name] == value for name, value in point.items()])
    numbers = family.numbers(int(np.flatnonzero(same)[0]))
    text = kernels.text(GEMM, SM90, TEMPLATES[name], "f16_f32" if c_size == 4 else "f16", numbers)
    assert isinstance(text, str), text
    kernel = text[text.index("__device__ __forceinline__ void block(") : text.rindex("} // namespace")]
    args = text[text.index("#ifndef TENSOROP_EPILOGUE") : text.index("namespace {")]
    assert spoil in kernel
    parts = ['#include "warps_on_cpu.h"', args, kernel.replace(spoil, "")]
    source = folder / "kernel.cpp"
    source.write_text("\n".join([*parts, '#include "block_on_cpu.inc"\n']))
    names = {"A_ALONG_M": a_along_m, "B_ALONG_K": b_along_k, "SHARED": numbers["shared"], "COUNT": numbers["threads"]}
    command = [str(zig()), "cc", "-std=c++17", "-fno-exceptions", "-O2", "-w", "-shared", "-fPIC", "-pthread"]
    command += [
        f"-I{SUPPORT}",
        *(f"-D{name}={value}" for name, value in names.items()),
        str(source),
        "-o",
        str(folder / "kernel.so"),
    ]
    subprocess.run(command, check=True, env={**os.environ, **zig_environment()})
    return ctypes.CDLL(str(folder / "kernel.so"))


def wrong(
    kernel: ctypes.CDLL,
    point: dict[str, int | str],
    a_along_m: int,
    b_along_k: int,
    of_c: type = np.float16,
    matrices: int = 1,
    size: tuple[int, int, int] = (70, 90, 77),
    beta: float = 2.0,
) -> str:
    """What a batch of products that fit no tile leaves that it should not; "" for nothing."""
    rng = np.random.default_rng(3)
    batch, (m, n, k) = 3, size
    a, b = (rng.integers(-2, 3, (batch, *shape)).astype(np.float16) for shape in ((m, k), (k, n)))
    c = rng.integers(-4, 5, (batch, m, n)).astype(of_c)
    expected = 0.5 * (a.astype(np.float64) @ b.astype(np.float64)) + beta * c
    lines = [a.swapaxes(1, 2) if a_along_m else a, b.swapaxes(1, 2) if b_along_k else b, c]
    held = []
    for x in lines:  # rows of a multiple of 16 bytes, NaN between them
        room = np.full((batch, x.shape[1], (x.shape[2] + 15) // 8 * 8 + 8), np.nan, x.dtype)
        raw = np.full(room.size + 8, np.nan, x.dtype)
        first = (-raw.ctypes.data % 16) // raw.itemsize
        at = raw[first : first + room.size].reshape(room.shape)
        at[:, :, : x.shape[2]] = x
        held.append((raw, at))
    tiles_m, tiles_n = -(-m // int(point["tile_m"])), -(-n // int(point.get("tile_n", 32)))
    addresses = [at.ctypes.data for _, at in held]
    args = Args(m, n, k, batch, tiles_m, tiles_n, 1, 0.5, beta, *addresses, *(at.shape[2] for _, at in held))
    args.stride_a, args.stride_b, args.stride_c = (at[0].size for _, at in held)
    if kernel.run(ctypes.byref(args), tiles_m * tiles_n, -(-batch // matrices)):
        return "shared memory beyond what the launch has"
    got = held[2][1]
    if not (got[:, :, :n] == expected.astype(of_c)).all():
        return "C"
    return "" if np.isnan(got[:, :, n:].astype(np.float32)).all() else "what follows C's rows"


def verdict(
    point: dict[str, int | str],
    a: int,
    b: int,
    dtype: str = "f16",
    spoil: str = "",
    epilogue: bool = False,
    of_16_bits: str = "wmma",
) -> Outcome:
    """The verdict on a configuration of a family, of floats `fma`, `fma_wide`, `tf32` or `tf32_wgmma`. spoil: a text of
    it that is left out"""
    of_floats = "tf32" if "tile_m" in point else "tf32_wgmma"
    name = {"f32": "fma" if "slices" in point else "fma_wide", "f32_3xtf32": of_floats}.get(dtype, of_16_bits)
    template, platform = TEMPLATES[name], WMMA if name == "wmma" else SM90
    assert spoil in template.text
    given = {**device_numbers(platform, dtype, epilogue), "a_along_m": a, "b_along_k": b}
    family = Family(GEMM.on_device, dataclasses.replace(template, text=template.text.replace(spoil, "")), given)
    same = np.logical_and.reduce([family.grid[name] == value for name, value in point.items()])
    one = Candidate(family, int(np.flatnonzero(same)[0]))
    return Execution(GEMM, platform, Seed.draw()).verdict(one, dtype)


@pytest.mark.covers("template gemm/wmma", "primitives cuda-wmma")
@pytest.mark.parametrize(
    ("point", "a", "b"),
    some([(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 1, 0), (2, 0, 1)], lambda case: case[0] or case == (0, 0, 0)),
)
def test_a_kernel_is_right(point: int, a: int, b: int) -> None:
    found = verdict(POINTS[point], a, b)
    assert found.ok, found


@pytest.mark.covers("template gemm/mma")
@pytest.mark.parametrize(
    ("point", "a", "b"),
    some(
        [(point, *key) for point in range(len(OF_MMA)) for key in GEMM.on_device.keys],
        lambda case: case in ((0, 0, 1), (2, 1, 0)),
    ),
)
def test_a_kernel_of_copies_of_any_width_is_right(point: int, a: int, b: int) -> None:
    found = verdict(OF_MMA[point], a, b, "bf16", of_16_bits="mma")
    assert found.ok, found


def test_a_kernel_with_a_float_c_is_right() -> None:
    found = verdict(POINTS[1], 0, 1, "f16_f32")
    assert found.ok, found


@pytest.mark.covers("template gemm/fma", "primitives cuda-fma")
@pytest.mark.parametrize(
    ("point", "a", "b"),
    some(
        [(point, *key) for point in range(len(OF_FLOATS)) for key in GEMM.on_device.keys if (point, *key) != (3, 1, 0)],
        lambda case: case in ((0, 0, 0), (1, 0, 1), (2, 1, 1), (0, 1, 0), (3, 0, 1)),
    ),
)
def test_a_kernel_of_floats_is_right(point: int, a: int, b: int) -> None:
    found = verdict(OF_FLOATS[point], a, b, "f32")
    assert found.ok, found


@pytest.mark.covers("template gemm/fma_wide")
@pytest.mark.parametrize(
    ("rows", "a", "b"),
    some(
        [("words", 0, 0), ("elements", 0, 1), ("words", 1, 1), ("elements", 1, 0)],
        lambda case: case == ("words", 0, 0),
    ),
)
def test_a_kernel_of_wide_tiles_of_floats_is_right(rows: str, a: int, b: int) -> None:
    found = verdict({**WIDE, "rows": rows}, a, b, "f32")
    assert found.ok, found


@pytest.mark.parametrize(
    "spoil",
    [
        extended("        __syncthreads();\n        {% endif %}"),
        extended(" + 8 <= k"),
        extended(" < {{ rows }} ? inside : 0"),
    ],
)
def test_wide_tiles_that_lack_something_are_found_out(spoil: str) -> None:
    assert not verdict(WIDE, 0, 1, "f32", spoil).ok


@pytest.mark.parametrize("b", some([0, 1], lambda b: b == 0))
def test_a_kernel_applies_an_epilogue(b: int) -> None:
    found = verdict(FLOATS, 0, b, "f32", epilogue=True)
    assert found.ok, found
    without = "finish(epilogue, x, 1," if b else "finish(epilogue, s, 4,"
    found = verdict(FLOATS, 0, b, "f32", without + " matrix, row, col, m, n, 0);", True)
    assert not found.ok


@pytest.mark.parametrize(
    ("point", "dtype"),
    [extended(POINTS[1], "f16"), extended(OF_TF32[0], "f32_3xtf32"), extended(OF_MMA[1], "bf16")],
)
def test_a_kernel_of_tensor_cores_applies_an_epilogue(point: dict[str, int | str], dtype: str) -> None:
    found = verdict(point, 0, 0, dtype, epilogue=True, of_16_bits="mma" if dtype == "bf16" else "wmma")
    assert found.ok, found


@pytest.mark.covers("template gemm/tf32", "primitives cuda-tf32")
@pytest.mark.parametrize(
    ("point", "a", "b"),
    some(
        [(point, *key) for point in range(len(OF_TF32)) for key in GEMM.on_device.keys],
        lambda case: case in ((0, 0, 1), (1, 1, 0)),
    ),
)
def test_a_kernel_of_floats_on_tensor_cores_is_right(point: int, a: int, b: int) -> None:
    found = verdict(OF_TF32[point], a, b, "f32_3xtf32")
    assert found.ok, found


@pytest.mark.covers("template gemm/tf32_wgmma", "primitives cuda-tf32-wgmma")
@pytest.mark.parametrize(
    ("rows", "a", "b"),
    some([("words", 0, 0), ("words", 0, 1), ("elements", 1, 0), ("words", 1, 1)], lambda case: case == ("words", 0, 0)),
)
def test_a_kernel_of_floats_by_warpgroups_is_right(rows: str, a: int, b: int) -> None:
    found = verdict({**WGMMA, "rows": rows}, a, b, "f32_3xtf32")
    assert found.ok, found


@pytest.mark.parametrize(
    "spoil",
    [
        "barrier_wait(full + 2 * stage, step / {{ stages }} % 2);",
        extended("group_multiply_rest(part, fa{{ kk }}, low, {{ kk }});"),
        extended("barrier_wait(empty + 2 * stage, (step / {{ stages }} + 1) % 2);"),
        extended("copies_wait(0);"),
    ],
)
def test_warpgroups_that_lack_something_are_found_out(spoil: str) -> None:
    # A wait that is missing shows only where threads run in another order.
    found = (verdict(WGMMA, 0, 1, "f32_3xtf32", spoil).kind for _ in range(5))
    assert any(kind in (Kind.WRONG, Kind.CRASH) for kind in found)


@pytest.mark.parametrize("spoil", ["copies_wait({{ stages - 2 }});", "x += beta * at[0];", "alpha * "])
def test_a_kernel_of_floats_that_lacks_something_is_found_out(spoil: str) -> None:
    assert verdict(FLOATS, 0, 1, "f32", spoil).kind is Kind.WRONG


@pytest.mark.parametrize(
    "spoil", ["copies_wait({{ stages - 2 }});", "s[0] += beta * {{ 'at[0]' if c_size == 4 else 'value(at[0])' }};"]
)
def test_a_kernel_that_lacks_something_is_found_out(spoil: str) -> None:
    assert verdict(WORDS, 0, 1, spoil=spoil).kind is Kind.WRONG


@pytest.mark.covers("template gemm/small")
@pytest.mark.parametrize(("layout", "tile_m"), each_once(GEMM.on_device.keys, [16, 32]), ids=str)
def test_small_matrices_are_right(layout: tuple[int, int], tile_m: int, tmp_path: Path) -> None:
    a, b = layout
    point: dict[str, int | str] = {"tile_m": tile_m, "warps": 2}
    assert wrong(built(tmp_path, point, a, b), point, a, b, matrices=2) == ""


@pytest.mark.parametrize(("b", "c_size"), [(0, 2), (1, 4)])
def test_small_matrices_that_fill_a_tile_are_right(b: int, c_size: int, tmp_path: Path) -> None:
    point: dict[str, int | str] = {"tile_m": 32, "warps": 2}
    kernel = built(tmp_path, point, 0, b, c_size=c_size)
    of_c = np.float32 if c_size == 4 else np.float16
    assert wrong(kernel, point, 0, b, of_c, 2, size=(32, 32, 32), beta=0.0) == ""


@pytest.mark.parametrize("spoil", ["s[e] *= alpha;", " + half * 8"])
def test_a_kernel_of_small_matrices_that_lacks_something_is_found_out(spoil: str, tmp_path: Path) -> None:
    point: dict[str, int | str] = {"tile_m": 16, "warps": 2}
    assert wrong(built(tmp_path, point, 0, 1, spoil=spoil), point, 0, 1, matrices=2)
