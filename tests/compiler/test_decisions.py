"""What the dispatch's cost model says of the driver is what it does: its loops are run with kernels that count."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import pytest

from tensorop.author import offline
from tensorop.build import programs
from tensorop.dispatch import costs, decisions
from tensorop.errors import JobError
from tensorop.model.kernel import KernelTemplate, KernelText, Source, Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.render import instantiate, render
from tensorop.specs import operators, platforms

OPERATOR = operators.load("gemm")
TEMPLATES = {template.name: template for template in offline.templates(OPERATOR.folder, OPERATOR.name)}
COUNTS = ("tiles", "rows", "short_tiles", "few", "turned", "parted", "pack_a", "pack_b", "panel")
LONGEST = 420

COUNTING = """
static int64_t counts[9];
static size_t lanes_now, short_now;

static size_t kernel_lanes(void) { return lanes_now; }
static size_t edge_lanes(void) { return short_now; }

#define TILE size_t m, size_t k, const float *a, size_t lda, const float *b, size_t sb, float alpha, float beta, \\
    float *c, size_t ldc
static void tile(TILE)
{
    (void)k, (void)a, (void)lda, (void)b, (void)sb, (void)alpha, (void)beta, (void)c, (void)ldc;
    ++counts[0], counts[1] += (int64_t)m;
}

static void short_tile(TILE)
{
    (void)m, (void)k, (void)a, (void)lda, (void)b, (void)sb, (void)alpha, (void)beta, (void)c, (void)ldc;
    ++counts[2];
}

static void few_rows(TILE)
{
    (void)m, (void)k, (void)a, (void)lda, (void)b, (void)sb, (void)alpha, (void)beta, (void)c, (void)ldc;
    ++counts[3];
}

void __cyg_profile_func_enter(void *function, void *site) __attribute__((no_instrument_function));
void __cyg_profile_func_exit(void *function, void *site) __attribute__((no_instrument_function));
void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    counts[4] += FUNCTION_turned, counts[5] += FUNCTION_parted;
    counts[6] += function == (void *)f32_pack_a, counts[7] += function == (void *)f32_pack_b;
    counts[8] += function == (void *)f32_panel;
}
void __cyg_profile_func_exit(void *function, void *site) { (void)function, (void)site; }

static f32_tile tiles[1024], short_tiles[1024];
static float a[1 << 18], b[1 << 18], c[1 << 18], work[1 << 22];

void run(const struct given *of, const struct problem *problem, int64_t *found)
{
    for (size_t i = 0; i < 1024; ++i)
        tiles[i] = tile, short_tiles[i] = short_tile;
    static const f32_rows few[4] = { few_rows, few_rows, few_rows, few_rows };
    const f32_tile *all = tiles, *shorter = short_tiles;
    lanes_now = of->by_rows ? 1 : of->lanes, short_now = of->short_lanes;
    const struct f32_kernel edge = { of->mr_vectors, of->nr, 0, 0, 0, edge_lanes, { shorter, shorter, shorter }, 0,
        few };
    const struct f32_kernel kernel = { of->mr_vectors, of->nr, of->by_rows, of->straight, of->any_height, kernel_lanes,
        { all, all, all }, of->edged ? &edge : 0, 0 };
    const struct f32_variant variant = { &kernel, of->mc, of->kc, of->nc, of->pack_a, of->pack_b, of->a_stationary };
    const size_t m = problem->m, n = problem->n, k = problem->k;
    const size_t rsa = problem->a_in_place ? 1 : k, csa = problem->a_in_place ? m : 1;
    const size_t rsb = problem->b_in_place ? 1 : n, csb = problem->b_in_place ? k : 1;
    for (size_t i = 0; i < 9; ++i)
        counts[i] = 0;
    f32_run(&variant, m, n, k, 1, a, rsa, csa, b, rsb, csb, 0, c, m, work);
    for (size_t i = 0; i < 9; ++i)
        found[i] = counts[i];
}
"""
GIVEN = """struct given { int64_t mr_vectors, nr, by_rows, straight, any_height, edged, mc, kc, nc, pack_a, pack_b,
    a_stationary, lanes, short_lanes; };
struct problem { int64_t m, n, k, a_in_place, b_in_place; };
"""


def counting(platform: Platform, variant: Variant) -> Any:
    """The driver as it is rendered for a platform, on this machine: scalar primitives, kernels that count."""
    generic = platforms.load("generic")
    names = instantiate.around(OPERATOR, generic, variant, KernelText("", ""))
    names |= {
        name: value for name, value in instantiate.facts(platform, "f32", {}).items() if name not in ("lanes", "lmul")
    }
    names["masked"] = platform.primitives_of("f32", variant.point).masked
    driver = render.c_text(render.of_operator(OPERATOR.templates), "driver.c.j2", names)
    text = f"#include <stddef.h>\n#include <stdint.h>\n{driver}\n{GIVEN}{COUNTING}"
    for name in ("turned", "parted"):
        there = f"void f32_{name}(" in driver
        text = text.replace(f"FUNCTION_{name}", f"(function == (void *)f32_{name})" if there else "0")
    try:
        made = programs.host_library(
            Source((("counting.c", text),), flags=("-finstrument-functions", "-Wno-everything"))
        )
    except JobError as error:
        pytest.fail(str(error))
    ffi = cffi.FFI()
    ffi.cdef(GIVEN + "void run(const struct given *, const struct problem *, int64_t *);")
    return ffi, ffi.dlopen(str(made.path))


def configurations(platform: Platform, template: KernelTemplate, rng: random.Random) -> Iterator[Variant]:
    points = list(instantiate.micro_space(platform, template, "f32").points())
    for point in rng.sample(points, min(6, len(points))):
        kernel = instantiate.variant(OPERATOR, template, "f32", point).kernel
        blockings = list(instantiate.blocking_space(OPERATOR, platform, kernel).points())
        for blocking in rng.sample(blockings, 3):
            yield Variant(kernel, blocking)


def drawn_problems(rng: random.Random, count: int) -> dict[str, np.ndarray]:
    sides = np.array([[round(LONGEST ** rng.random()) for _ in "mnk"] for _ in range(count)])
    columns = {name: sides[:, number] for number, name in enumerate("mnk")}
    for name, inner in (("a_in_place", "m"), ("b_in_place", "k")):
        flags = np.array([rng.randrange(2) for _ in range(count)])
        columns[name] = np.where(columns["k" if name == "a_in_place" else "n"] == 1, 1, flags)
        assert inner in columns
    return columns


@pytest.mark.parametrize("name", ["avx512", "rvv", "spacemit-k1", "cortex-a53", "neon"])
@pytest.mark.parametrize("template", ["outer", "lanes", "dot", "stream"])
def test_the_driver_does_what_the_model_says(name: str, template: str) -> None:
    platform, rng, seen = platforms.load(name), random.Random(f"{name} {template}"), 0
    for variant in configurations(platform, TEMPLATES[template], rng):
        ffi, lib = counting(platform, variant)
        numbers = costs.constants(OPERATOR, platform, "f32", variant, platform.vlens[-1])
        text = instantiate.decide(OPERATOR, platform, variant)
        assert text is not None
        columns = drawn_problems(rng, 40)
        decided = decisions.compiled(text).of(numbers, columns, 40)
        reads = variant.template.reads["a"]
        kinds = {"by_rows": reads == "rows", "any_height": reads == "stream", "straight": numbers.get("straight", 0)}
        kinds["edged"] = reads == "columns" and int(numbers["short_lanes"]) < int(numbers["lanes"])
        given = ffi.new("struct given *", {key: int({**numbers, **kinds}[key]) for key in _fields(ffi, "given")})
        for row in range(40):
            problem = ffi.new("struct problem *", {key: int(columns[key][row]) for key in columns})
            found = ffi.new(f"int64_t[{len(COUNTS)}]")
            lib.run(given, problem, found)
            counts = dict(zip(COUNTS, found, strict=True))
            one = {key: int(values[row]) for key, values in decided.items()}
            shape = {key: int(columns[key][row]) for key in columns}
            assert counts["turned"] == one["turned"], (variant.point, shape)
            if not counts["parted"]:
                _agree(one, counts, bool(kinds["by_rows"]), (variant.point, shape))
            seen += counts["tiles"]
    assert seen > 1000


def _fields(ffi: Any, struct: str) -> list[str]:
    return [name for name, _ in ffi.typeof(f"struct {struct}").fields]


def _agree(one: Mapping[str, int], counts: Mapping[str, int], by_rows: bool, at: object) -> None:
    assert counts["tiles"] == one["tall"] * one["wide"] * one["blocks_k"], at
    assert counts["rows"] == (one["m"] - one["edge"]) * one["wide"] * one["blocks_k"], at
    assert (counts["short_tiles"] > 0) == (one["short_vectors"] > 0), at
    assert (counts["few"] > 0) == (one["few"] > 0), at
    if one["turned"]:
        return
    blocks = one["blocks_n"] * one["blocks_k"]
    of_a, of_b = one["packs_a"] * blocks * one["blocks_m"], one["packs_b"] * blocks
    if by_rows:
        assert counts["panel"] == of_a + of_b, at
    else:
        assert counts["pack_a"] == of_a + one["packs_a"] * blocks * (one["edge"] > 0), at  # the edge's panels apart
        assert counts["pack_b"] == of_b, at


def test_a_decision_of_the_driver_changes_the_model(tmp_path: Path) -> None:
    """operator.yaml stays as it is."""
    shutil.copytree(OPERATOR.folder, tmp_path / "gemm")
    text = (tmp_path / "gemm/decisions.c.j2").read_text()
    assert text.count("n < 2 * m") == 1
    (tmp_path / "gemm/decisions.c.j2").write_text(text.replace("n < 2 * m", "n < 200 * m"))
    changed: Operator = replace(OPERATOR, folder=tmp_path / "gemm")
    platform = platforms.load("avx512")
    point = instantiate.micro_space(platform, TEMPLATES["outer"], "f32").at(0)
    variant = instantiate.variant(OPERATOR, TEMPLATES["outer"], "f32", {**point, "mr_vectors": 2})
    columns = {"m": [2, 2], "n": [100, 1000], "k": [64, 64], "a_in_place": [1, 1], "b_in_place": [0, 0]}
    features = {name: np.array(values) for name, values in columns.items()}
    before, after = (costs.named_terms(one, platform, "f32", variant, features) for one in (OPERATOR, changed))
    assert list(before["turn_c"]) == [200, 2000]
    assert list(after["turn_c"]) == [0, 2000]
