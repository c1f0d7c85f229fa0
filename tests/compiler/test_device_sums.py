"""Sums of parts of K on Hopper: the texts of a kernel and of the one that adds them up agree where each sum is."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tensorop.cuda import kernels
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.family import Family
from tensorop.provision.zig import zig_cc, zig_environment
from tensorop.specs import platforms
from tests.support.classes import extended
from tests.support.device_products import CALL, GEMM, SUPPORT, TEMPLATES

TILES = {
    "wave, 128x192": {"store": "wave", "tile_n": 192},
    "wave, clusters along M": {"store": "wave", "tile_n": 128, "cluster_m": 2},
    "wave, clusters along N": {"store": "wave", "tile_n": 128, "cluster_n": 2},
    "wave, consumers side by side": {"store": "wave", "tile_m": 192, "tile_n": 192, "groups_m": 1, "groups_n": 2},
    "wave, consumers of 128 rows": {"store": "wave", "tile_m": 256, "tile_n": 128},
    "sums": {"store": "sums", "tile_n": 96},
    "sums of the transpose": {"store": "sums", "tile_n": 64, "cluster_m": 2, "swap": 1},
}
USUAL = {
    "tile_m": 128,
    "stages": 3,
    "groups_m": 2,
    "groups_n": 1,
    "cluster_m": 1,
    "cluster_n": 1,
    "split_k": 1,
    "turns": 0,
}
USUAL |= {"swap": 0, "raster": 4}
NAMES = ("tile_m", "tile_n", "cluster_m", "cluster_n", "wgm", "wgn", "groups", "groups_m", "swap", "raster", "by_sums")


@pytest.mark.parametrize("name", [extended(name) for name in TILES])
def test_sums_of_parts_are_where_they_are_added_up(name: str, tmp_path: Path) -> None:
    platform, template = platforms.load("cuda-sm90"), next(one for one in TEMPLATES if one.name == "wgmma")
    family = Family(CALL, template, {**device_numbers(platform), "a_along_m": 0, "b_along_k": 1})
    point = USUAL | TILES[name]
    (place, *_) = [at for at in range(family.size) if dict(family.point(at)) == point]
    numbers = family.numbers(place)
    text = kernels.text(GEMM, platform, template, "bf16", numbers)
    assert isinstance(text, str), text
    around = re.search(r"#ifndef TENSOROP_EPILOGUE.*?(?=namespace \{)", text, re.DOTALL)
    tiles = re.search(r"struct Place \{.*?(?=[^\n]*\bvoid block\()", text, re.DOTALL)
    leave = re.search(
        r"const int warp = thread / 32 % 4;\n +float \*const to =.*?floats_store\([^;]*;\n *\}", text, re.DOTALL
    )
    adds = kernels.second(GEMM, ["bf16_f32"])["SUMS"]
    assert around
    assert tiles
    assert leave
    told = "".join(f"enum {{ {of.upper()} = {int(numbers[of])} }};\n" for of in NAMES)
    macro = " \\\n".join(line for line in leave[0].splitlines() if "#pragma" not in line)
    (tmp_path / "texts.h").write_text(f"{around[0]}{tiles[0]}{adds}{told}#define LEAVE {macro}\n")
    command = [*zig_cc(), "-x", "c++", "-O1", f"-I{tmp_path}", str(SUPPORT / "sums_on_cpu.cpp"), "-lm"]
    subprocess.run([*command, "-o", str(tmp_path / "sums")], check=True, env={**os.environ, **zig_environment()})
    done = subprocess.run([tmp_path / "sums"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "right\n")
