"""What the dispatch's cost model says of the driver is what it does: its loops are run with kernels that count."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tensorop.author import offline
from tensorop.costs import decisions
from tensorop.costs.terms import constants, named_terms
from tensorop.model.operator import Operator
from tensorop.render import instantiate
from tensorop.specs import operators, platforms
from tests.support import counting
from tests.support.classes import each_once

OPERATOR = operators.load("gemm")
TEMPLATES = {template.name: template for template in offline.templates(OPERATOR.folder, OPERATOR.name)}
FUNCTIONS = ("turned", "parted", "pack_a", "pack_b", "panel")
LONGEST = 420

PROBLEM = "struct problem { int64_t m, n, k, a_in_place, b_in_place; };\n"
RUN = """
    const size_t m = problem->m, n = problem->n, k = problem->k;
    const size_t rsa = problem->a_in_place ? 1 : k, csa = problem->a_in_place ? m : 1;
    const size_t rsb = problem->b_in_place ? 1 : n, csb = problem->b_in_place ? k : 1;
    f32_run(&variant, m, n, k, 1, a, rsa, csa, b, rsb, csb, 0, c, m, work);
"""


def drawn_problems(rng: random.Random, count: int) -> dict[str, np.ndarray]:
    sides = np.array([[round(LONGEST ** rng.random()) for _ in "mnk"] for _ in range(count)])
    columns = {name: sides[:, number] for number, name in enumerate("mnk")}
    for name, inner in (("a_in_place", "m"), ("b_in_place", "k")):
        flags = np.array([rng.randrange(2) for _ in range(count)])
        columns[name] = np.where(columns["k" if name == "a_in_place" else "n"] == 1, 1, flags)
        assert inner in columns
    return columns


@pytest.mark.parametrize(
    ("name", "template"),
    each_once(["avx512", "rvv", "spacemit-k1", "cortex-a53", "neon"], ["outer", "lanes", "dot", "stream"]),
)
def test_the_driver_does_what_the_model_says(name: str, template: str) -> None:
    platform, rng, seen = platforms.load(name), random.Random(f"{name} {template}"), 0
    for variant in counting.configurations(OPERATOR, platform, TEMPLATES[template], rng):
        driver = counting.Counting(OPERATOR, platform, variant, "driver.c.j2", PROBLEM, RUN, FUNCTIONS)
        numbers = constants(OPERATOR, platform, variant, platform.vlens[-1])
        text = instantiate.decide(OPERATOR, platform, variant)
        assert text is not None
        columns = drawn_problems(rng, 40)
        decided = {key: of[0] for key, of in decisions.compiled(text).of(numbers, columns).items()}
        given = counting.kinds(variant, numbers)
        for row in range(40):
            shape = {key: int(columns[key][row]) for key in columns}
            counts = driver.counts(given, shape)
            one = {key: int(values[row]) for key, values in decided.items()}
            assert counts["turned"] == one["turned"], (variant.point, shape)
            if not counts["parted"]:
                _agree(one, counts, bool(given["by_rows"]), (variant.point, shape))
            seen += counts["tiles"]
    assert seen > 1000


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
    before, after = (named_terms(one, platform, variant, features) for one in (OPERATOR, changed))
    assert list(before["transposed"]) == [200, 2000]
    assert list(after["transposed"]) == [0, 2000]
