"""Every shipped template is right on this machine: packed and in place, plain C and what the CPU has."""

from __future__ import annotations

import pytest

from tensorop.model.architecture import host_arch
from tensorop.specs import platforms
from tests.support.classes import each_once
from tests.support.templates import DOT, DOT_AHEAD, FEW_ROWS, OUTER, PIPELINED, VECTORS, verdicts

POINTS = [
    ("outer", {**OUTER, "mr_vectors": 3, "nr": 4}),
    ("outer", {**PIPELINED, "mr_vectors": 2, "nr": 4, "pack_a": 0, "pack_b": 0}),
    ("dot", {**DOT, "mr_vectors": 3, "nr": 3, "ku": 2, "lead": 2}),
    ("dot", {**DOT, "mr_vectors": 4, "nr": 3, "straight": 1}),
    ("dot", {**DOT_AHEAD, "mr_vectors": 3, "nr": 2}),
    ("stream", {"mr_vectors": 64, "nr": 2, "ku": 4, "wide": 2, "fetch": 4, "pack_a": 0, "pack_b": 0}),
]


@pytest.mark.covers("template gemm/{kernel[0]}")
@pytest.mark.skipif(host_arch() != "x86_64", reason="the plain platform is one of x86-64")
@pytest.mark.covers("platform {platform}", "dtype gemm/{dtype}")
@pytest.mark.parametrize(
    ("kernel", "platform", "dtype"),
    each_once(POINTS, ["generic", "avx2", "avx512"], ["f32", "f64"]),
    ids=lambda v: v[0] if isinstance(v, tuple) else v,
)
def test_a_template_is_right(kernel: tuple[str, dict[str, int]], platform: str, dtype: str) -> None:
    template, point = kernel
    missing = set(platforms.load(platform).requires) - _flags()
    if missing:
        pytest.skip(f"this CPU lacks {', '.join(sorted(missing))}")
    for verdict in verdicts(platform, template, dtype, point):
        assert verdict.ok, verdict.outcome


@pytest.mark.skipif(host_arch() != "x86_64", reason="the plain platform is one of x86-64")
@pytest.mark.covers("platform {of[0]}", "dtype gemm/{of[1]}")
@pytest.mark.parametrize(
    ("of", "point"),
    each_once(
        [("generic", "i8"), ("generic", "bf16"), ("generic", "f16"), ("avx2", "i8"), ("avx512", "i8")],
        [{**OUTER, "mr_vectors": 3, "nr": 4}, {**PIPELINED, "mr_vectors": 2, "nr": 4}],
    ),
    ids=lambda v: "-".join(v) if isinstance(v, tuple) else "ahead" if v["ahead"] else "plain",
)
def test_operands_widened_by_packing_are_right(of: tuple[str, str], point: dict[str, int]) -> None:
    platform, dtype = of
    missing = set(platforms.load(platform).requires) - _flags()
    if missing:
        pytest.skip(f"this CPU lacks {', '.join(sorted(missing))}")
    for verdict in verdicts(platform, "outer", dtype, point):
        assert verdict.ok, verdict.outcome


@pytest.mark.skipif(host_arch() != "x86_64", reason="the plain platform is one of x86-64")
@pytest.mark.parametrize(
    ("tile", "platform"), each_once([(1, 0), (2, 0), (3, 1)], ["generic", "avx2", "avx512"]), ids=str
)
def test_products_of_few_rows_are_right(tile: tuple[int, int], platform: str) -> None:
    mr_vectors, packs = tile
    missing = set(platforms.load(platform).requires) - _flags()
    if missing:
        pytest.skip(f"this CPU lacks {', '.join(sorted(missing))}")
    point = {**OUTER, "mr_vectors": mr_vectors, "nr": 4, "pack_a": packs, "pack_b": packs}
    for verdict in verdicts(platform, "outer", "f32", point, FEW_ROWS):
        assert verdict.ok, verdict.outcome


@pytest.mark.skipif(host_arch() != "x86_64", reason="the plain platform is one of x86-64")
@pytest.mark.parametrize(
    ("tile", "platform"),
    each_once([{"mr_vectors": 4, "nr": 2}, {"mr_vectors": 2, "nr": 6}], ["generic", "avx2"]),
    ids=lambda v: v if isinstance(v, str) else "wide" if v["nr"] == 6 else "tall",
)
def test_rows_and_columns_of_inner_products_are_right(platform: str, tile: dict[str, int]) -> None:
    missing = set(platforms.load(platform).requires) - _flags()
    if missing:
        pytest.skip(f"this CPU lacks {', '.join(sorted(missing))}")
    for verdict in verdicts(platform, "dot", "f32", {**DOT, **tile}, VECTORS):
        assert verdict.ok, verdict.outcome


def _flags() -> set[str]:
    with open("/proc/cpuinfo") as info:
        return next((set(line.split(":")[1].split()) for line in info if line.startswith("flags")), set())
