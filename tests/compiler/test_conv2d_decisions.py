"""What the dispatch's cost model says of conv2d's loops is what they do: they are run with kernels that count."""

from __future__ import annotations

import random

import pytest

from tensorop.author import offline
from tensorop.costs import decisions
from tensorop.costs.terms import constants
from tensorop.dispatch import choice
from tensorop.model.problem import Problem
from tensorop.render import instantiate
from tensorop.specs import operators, platforms
from tests.support import counting
from tests.support.classes import each_once

OPERATOR = operators.load("conv2d")
TEMPLATES = {one.name: one for one in offline.templates(OPERATOR.folder, OPERATOR.name, OPERATOR.added)}
FUNCTIONS = ("as_it_is", "depthwise", "block", "block_near")
PROBLEM = """struct problem { int64_t nhwc, n, c, h, w, k, r, s, u, v, p, l, d, e, g, high, wide; };
"""
RUN = """
    const struct f32_conv z = { .nhwc = problem->nhwc, .n = problem->n, .c = problem->c, .h = problem->h,
        .w = problem->w, .k = problem->k, .r = problem->r, .s = problem->s, .u = problem->u, .v = problem->v,
        .top = problem->p, .left = problem->l, .d = problem->d, .e = problem->e, .g = problem->g,
        .high = problem->high, .wide = problem->wide };
    f32_conv_run(&variant, &z, a, b, 0, c, work);
"""


def drawn_problems(rng: random.Random, count: int) -> list[Problem]:
    found: list[Problem] = []
    while len(found) < count:
        g = rng.choice((1, 1, 1, 2))
        sizes = {name: round(22 ** rng.random()) for name in "hw"} | {"g": g}
        sizes |= {name: g * round(24 ** rng.random()) for name in "ck"} | {"n": rng.choice((1, 1, 3))}
        sizes |= {"r": rng.choice((1, 1, 3)), "s": rng.choice((1, 1, 3)), "u": rng.choice((1, 1, 2))}
        shape = OPERATOR.shapes.read("n{n}c{c}h{h}w{w}k{k}r{r}s{s}u{u}p{p}g{g}".format(p=rng.choice((0, 1)), **sizes))
        if shape is not None and not OPERATOR.shapes.wrong(shape):
            layout = {"layout": rng.choice(("nchw", "nchw", "nhwc"))}
            found.append(OPERATOR.reference.problem("f32", OPERATOR.shapes.named(shape), layout))
    return found


# without those whose vectors of a cache line also compute the last pixels: a scalar driver has no such loops
@pytest.mark.parametrize(
    ("name", "template"), each_once(["rvv", "cortex-a53", "spacemit-k1", "neon"], ["outer", "lanes"])
)
def test_the_loops_do_what_the_model_says(name: str, template: str) -> None:
    platform, rng, seen = platforms.load(name), random.Random(f"{name} {template}"), set()
    for variant in counting.configurations(OPERATOR, platform, TEMPLATES[template], rng):
        driver = counting.Counting(OPERATOR, platform, variant, "driver.c.j2", PROBLEM, RUN, FUNCTIONS)
        numbers = constants(OPERATOR, platform, variant, platform.vlens[-1])
        text = instantiate.decide(OPERATOR, platform, variant)
        assert text is not None
        problems = drawn_problems(rng, 40)
        columns = choice.Candidates(OPERATOR, platform, "f32", (variant,)).columns(problems)
        seen_by = {one: columns[one] for one in OPERATOR.seen}
        decided = {key: of[0] for key, of in decisions.compiled(text).of(numbers, seen_by).items()}
        for row, problem in enumerate(problems):
            _, _, high, wide = OPERATOR.reference.operands["y"].sides(problem.sizes)
            nhwc = int(columns["nhwc"][row])
            shape = {**problem.sizes, "high": high, "wide": wide, "nhwc": nhwc}
            counts = driver.counts(counting.kinds(variant, numbers), shape)
            one = {key: int(values[row]) for key, values in decided.items()}
            at = (variant.point, problem.label, one, counts)
            each = int(columns["images"][row] * columns["groups"][row])
            if columns["depthwise"][row]:
                assert counts["depthwise"] == 1, at
                assert not counts["tiles"], at
                seen.add("depthwise")
                continue
            filters, pixels = sorted(("m", "n"), reverse=not nhwc)
            rows = int(columns[filters if nhwc or one["turned"] else pixels][row])
            assert counts["tiles"] == each * one["tall"] * one["wide"] * one["blocks_k"], at
            assert counts["rows"] == each * (rows - one["edge"]) * one["wide"] * one["blocks_k"], at
            assert (counts["short_tiles"] > 0) == (one["short_vectors"] > 0), at
            assert (counts["few"] > 0) == (one["few"] > 0), at
            assert counts["as_it_is"] == each * one["x_in_place"], at
            if not one["x_in_place"] and not counts["block_near"]:
                panels = one["wide"] if one["late"] else 1
                assert counts["block"] == one["blocks"] * panels, at
            seen |= {key for key in ("turned", "x_in_place", "late", "edge", "few") if one[key]}
    assert {"x_in_place", "late", "depthwise"} <= seen
