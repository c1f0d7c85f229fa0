"""Every shipped template is right on the emulated targets, at every VLEN its winners must pass."""

from __future__ import annotations

import pytest

from tensorop.model.problem import Problem
from tests.support.templates import DOT, DOT_AHEAD, FEW_ROWS, OUTER, PIPELINED, VECTORS, verdicts

CASES = [
    ("rvv", "outer", "f32", {**PIPELINED, "lmul": 2, "mr_vectors": 1, "nr": 14}),
    ("rvv", "outer", "f64", {**PIPELINED, "lmul": 2, "mr_vectors": 1, "nr": 14}),
    ("rvv", "outer", "f64", {**OUTER, "lmul": 1, "mr_vectors": 2, "nr": 6, "pack_a": 0, "pack_b": 0}),
    ("rvv", "outer", "f32", {**OUTER, "lmul": 4, "mr_vectors": 1, "nr": 6, "a_stationary": 1}),
    ("rvv", "outer", "i8", {**PIPELINED, "lmul": 2, "mr_vectors": 1, "nr": 14}),
    ("rvv", "outer", "i8", {**OUTER, "lmul": 1, "mr_vectors": 3, "nr": 4, "a_stationary": 1}),
    ("rvv", "outer", "bf16", {**PIPELINED, "lmul": 4, "mr_vectors": 1, "nr": 6}),
    ("rvv", "outer", "f16", {**OUTER, "lmul": 2, "mr_vectors": 2, "nr": 4}),
    ("spacemit-k1", "outer", "i8", {**PIPELINED, "lmul": 4, "mr_vectors": 1, "nr": 7}),
    ("neon", "outer", "i8", {**OUTER, "mr_vectors": 2, "nr": 4}),
    ("neon", "outer", "f16", {**PIPELINED, "mr_vectors": 2, "nr": 6}),
    ("cortex-a76", "outer", "i8", {**PIPELINED, "mr_vectors": 4, "nr": 4}),
    ("cortex-a76", "outer", "i8", {**OUTER, "mr_vectors": 3, "nr": 8, "kc": 64}),
    ("rvv", "dot", "f32", {**DOT, "lmul": 2, "mr_vectors": 2, "nr": 3, "ku": 2, "lead": 2}),
    ("rvv", "dot", "f64", {**DOT_AHEAD, "lmul": 1, "mr_vectors": 4, "nr": 4, "ku": 2}),
    ("spacemit-k1", "dot", "f32", {**DOT_AHEAD, "lmul": 1, "mr_vectors": 8, "nr": 2, "late": 6}),
    (
        "rvv",
        "stream",
        "f64",
        {"lmul": 2, "mr_vectors": 64, "nr": 2, "ku": 4, "wide": 2, "fetch": 4, "pack_a": 0, "pack_b": 0},
    ),
    ("spacemit-k1", "outer", "f64", {**PIPELINED, "lmul": 4, "mr_vectors": 1, "nr": 6}),
    ("spacemit-k1", "stream", "f32", {"lmul": 2, "mr_vectors": 64, "nr": 1, "ku": 6, "wide": 2, "fetch": 8}),
    ("neon", "outer", "f32", {**PIPELINED, "mr_vectors": 2, "nr": 8}),
    ("neon", "outer", "f64", {**OUTER, "mr_vectors": 4, "nr": 4, "pack_a": 0, "pack_b": 0}),
    ("cortex-a53", "dot", "f32", {**DOT, "mr_vectors": 3, "nr": 4, "lead": 2}),
    ("cortex-a53", "dot", "f64", {**DOT_AHEAD, "mr_vectors": 3, "nr": 4}),
    ("neon", "stream", "f64", {"mr_vectors": 64, "nr": 2, "ku": 4, "wide": 1, "fetch": 0, "pack_a": 0, "pack_b": 0}),
    ("rvv", "direct", "f32", {"lmul": 2, "mr_vectors": 2, "nr": 4, "partial_sums": 8, "ahead": 1, "narrow": 0}),
    ("rvv", "direct", "f64", {"lmul": 1, "mr_vectors": 1, "nr": 6, "partial_sums": 1, "ahead": 0, "narrow": 1}),
    ("spacemit-k1", "direct", "f64", {"lmul": 4, "mr_vectors": 1, "nr": 4, "partial_sums": 4, "ahead": 1, "narrow": 1}),
    ("neon", "direct", "f32", {"mr_vectors": 2, "nr": 4, "partial_sums": 8, "ahead": 1, "narrow": 1}),
    ("cortex-a53", "direct", "f64", {"mr_vectors": 3, "nr": 4, "partial_sums": 4, "ahead": 0, "narrow": 0}),
]


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("platform", "template", "dtype", "point"), CASES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_template_is_right(platform: str, template: str, dtype: str, point: dict[str, int]) -> None:
    for verdict in verdicts(platform, template, dtype, point):
        assert verdict.ok, (verdict.vlen, verdict.outcome)


@pytest.mark.parametrize("lmul", [1, 4])
def test_products_of_few_rows_are_right(lmul: int) -> None:
    point = {**OUTER, "lmul": lmul, "mr_vectors": 2 if lmul == 1 else 1, "nr": 4, "pack_a": 0, "pack_b": 0}
    for verdict in verdicts("rvv", "outer", "f32", point, FEW_ROWS):
        assert verdict.ok, (verdict.vlen, verdict.outcome)


@pytest.mark.parametrize("kernel", [DOT_AHEAD, {**DOT, "straight": 1}], ids=["blocks", "straight"])
def test_a_matrix_by_a_vector_is_right(kernel: dict[str, int]) -> None:
    for verdict in verdicts("rvv", "dot", "f32", {**kernel, "lmul": 1, "mr_vectors": 4, "nr": 2}, VECTORS):
        assert verdict.ok, (verdict.vlen, verdict.outcome)


@pytest.mark.covers("template gemm/lanes")
@pytest.mark.parametrize("a_stationary", [0, 1])
def test_a_c_larger_than_level_2_is_right(a_stationary: int) -> None:
    """Its next lines are asked for where prefetchers follow few streams, up to its end and no further."""
    point = {"mr_vectors": 2, "nr": 6, "ku": 4, "halves": 1, "fetch": 16, "pack_a": 1, "pack_b": 1}
    layout = {"layout": "col", "ta": 1, "tb": 0}
    problems = [Problem.of("gemm", "f64", {"m": 261, "n": 271, "k": 19}, {**layout, "beta": beta}) for beta in "01"]
    for verdict in verdicts("cortex-a53", "lanes", "f64", {**point, "a_stationary": a_stationary}, problems):
        assert verdict.ok, (verdict.vlen, verdict.outcome)
