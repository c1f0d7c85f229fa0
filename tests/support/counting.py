"""An operator's driver as it is rendered for a platform, on this machine: scalar primitives, and kernels that count."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import cffi
import pytest

from tensorop.errors import JobError
from tensorop.model.kernel import KernelTemplate, KernelText, Source, Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.render import instantiate, render
from tensorop.specs import platforms
from tensorop.toolchain import programs

KERNELS = ("tiles", "rows", "short_tiles", "few")  # the first counts: of kernels, their rows, and the edge kernel's

GIVEN = """struct given { int64_t mr_vectors, nr, by_rows, straight, any_height, edged, mc, kc, nc, pack_a, pack_b,
    a_stationary, lanes, short_lanes; };
"""

COUNTING = """
static int64_t counts[16];
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

static f32_tile tiles[1024], short_tiles[1024];
static float a[1 << 18], b[1 << 18], c[1 << 18], work[1 << 22];

static struct f32_variant counted(const struct given *of)
{
    static const f32_rows few[4] = { few_rows, few_rows, few_rows, few_rows };
    static struct f32_kernel kernel, edge;
    for (size_t i = 0; i < 1024; ++i)
        tiles[i] = tile, short_tiles[i] = short_tile;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i)
        counts[i] = 0;
    const f32_tile *all = tiles, *shorter = short_tiles;
    lanes_now = of->by_rows ? 1 : of->lanes, short_now = of->short_lanes;
    edge = (struct f32_kernel){ of->mr_vectors, of->nr, 0, 0, 0, edge_lanes, { shorter, shorter, shorter }, 0, few };
    kernel = (struct f32_kernel){ of->mr_vectors, of->nr, of->by_rows, of->straight, of->any_height, kernel_lanes,
        { all, all, all }, of->edged ? &edge : 0, 0 };
    return (struct f32_variant){ &kernel, of->mc, of->kc, of->nc, of->pack_a, of->pack_b, of->a_stationary };
}

void __cyg_profile_func_enter(void *function, void *site) __attribute__((no_instrument_function));
void __cyg_profile_func_exit(void *function, void *site) __attribute__((no_instrument_function));
void __cyg_profile_func_exit(void *function, void *site) { (void)function, (void)site; }
"""


class Counting:
    """The compiled driver. functions: of it, whose calls are counted after the KERNELS, 0 where there is none."""

    def __init__(
        self, operator: Operator, platform: Platform, variant: Variant, driver: str, problem: str, run: str,
        functions: tuple[str, ...],
    ) -> None:  # fmt: skip
        """driver: the template; problem: a C struct; run: the C that computes `problem` with `variant`."""
        generic = platforms.load("generic")
        names = instantiate.around(operator, generic, variant, KernelText("", ""))
        facts = instantiate.facts(platform, "f32", {})
        names |= {name: value for name, value in facts.items() if name not in ("lanes", "lmul")}
        names["masked"] = platform.primitives_of("f32", variant.point).masked
        made = render.c_text(render.of_operator(operator.templates), driver, names)
        calls = "".join(
            f"    counts[{number}] += function == (void *)f32_{name};\n"
            for number, name in enumerate(functions, len(KERNELS))
            if f" f32_{name}(" in made
        )
        enter = f"void __cyg_profile_func_enter(void *function, void *site)\n{{\n    (void)site;\n{calls}}}\n"
        call = "void run(const struct given *of, const struct problem *problem, int64_t *found)"
        begin = f"{call}\n{{\n    const struct f32_variant variant = counted(of);\n"
        end = f"    for (size_t i = 0; i < {len(KERNELS) + len(functions)}; ++i)\n        found[i] = counts[i];\n}}\n"
        pieces = ("#include <stddef.h>\n#include <stdint.h>\n", made, GIVEN, problem, COUNTING, enter, begin, run, end)
        flags = ("-finstrument-functions", "-Wno-everything")
        try:
            library = programs.host_library(Source((("counting.c", "\n".join(pieces)),), flags=flags))
        except JobError as error:
            pytest.fail(str(error))
        self.ffi = cffi.FFI()
        self.ffi.cdef(f"{GIVEN}{problem}{call};")
        self.lib = self.ffi.dlopen(str(library.path))
        self.names = (*KERNELS, *functions)

    def counts(self, given: Mapping[str, int], problem: Mapping[str, int]) -> dict[str, int]:
        """given: the variant's numbers, and what its kernels are; what is not a field is ignored."""
        found = self.ffi.new(f"int64_t[{len(self.names)}]")
        of = self.ffi.new("struct given *", self._fields("given", given))
        self.lib.run(of, self.ffi.new("struct problem *", self._fields("problem", problem)), found)
        return dict(zip(self.names, found, strict=True))

    def _fields(self, struct: str, values: Mapping[str, Any]) -> dict[str, int]:
        return {name: int(values[name]) for name, _ in self.ffi.typeof(f"struct {struct}").fields}


def kinds(variant: Variant, numbers: Mapping[str, Any]) -> dict[str, int]:
    """The variant's numbers with what its kernels are, for `Counting.counts`."""
    reads = variant.template.reads["a"]
    found = {"by_rows": reads == "rows", "any_height": reads == "stream", "straight": numbers.get("straight", 0)}
    found["edged"] = reads == "columns" and int(numbers["short_lanes"]) < int(numbers["lanes"])
    return {**numbers, **found}


def configurations(
    operator: Operator, platform: Platform, template: KernelTemplate, rng: random.Random
) -> Iterator[Variant]:
    """Random variants of a template: six micro-kernels, three blockings of each."""
    points = list(instantiate.micro_space(platform, template, "f32").points())
    for point in rng.sample(points, min(6, len(points))):
        kernel = instantiate.variant(operator, template, "f32", point).kernel
        blockings = list(instantiate.blocking_space(operator, platform, kernel).points())
        for blocking in rng.sample(blockings, 3):
            yield Variant(kernel, blocking)
