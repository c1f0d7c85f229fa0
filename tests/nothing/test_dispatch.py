"""Dispatch trees: over one set of variants, one for each vector length."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorop.cli.tables import card_lines
from tensorop.dispatch import single_vlen, winners
from tensorop.dispatch.tree import TreeRow, decide, distil, grow
from tensorop.measure.samples import combine
from tensorop.model.kernel import Variant
from tensorop.model.trial import Samples
from tensorop.model.winner import Leaf, Split, Tree, Winners, trees_of
from tensorop.package import manifest
from tensorop.package.sources import OperatorPart
from tensorop.specs import operators, platforms
from tests.support import products

SIZES = (8, 64, 512)


def rows(*costs: tuple[float, ...]) -> list[TreeRow]:
    """One a size; costs of each variant."""
    return [TreeRow({"size": size}, of_size) for size, of_size in zip(SIZES, costs, strict=True)]


def variants(count: int) -> tuple[Variant, ...]:
    one = products.winners(("f32",))[0].variants[0]
    return (one,) * count


def test_variants_that_nothing_is_sent_to_are_not_carried() -> None:
    short, long = Split("size", 64, Leaf(0), Leaf(3)), Leaf(2)
    found = winners.carried(Winners("f32", variants(4), (Tree(short, 0.0, 128), Tree(long, 0.0, 512))))
    assert len(found.variants) == 3  # the second serves nowhere
    assert [tree.root for tree in found.trees] == [Split("size", 64, Leaf(0), Leaf(2)), Leaf(1)]
    assert [tree.vlen for tree in found.trees] == [128, 512]


def test_a_specialisation_is_kept_where_what_it_serves_costs_less() -> None:
    for_any = rows((2, 3), (2, 3), (2, 3))
    assert single_vlen.gaining(for_any, rows((1.9, 3), (1.9, 3), (1.9, 3))) == [0]
    assert single_vlen.gaining(for_any, rows((1.999, 3), (1.999, 3), (1.999, 3))) == []  # less than it is worth
    assert single_vlen.gaining(for_any, rows((2, 1), (2, 2.5), (2, 1))) == [
        1
    ]  # one that serves only by its specialisation
    assert single_vlen.gaining(for_any, rows((2, 2.9), (2, 2.9), (2, 2.9))) == []  # better, but serves nothing


def test_forms_go_where_nothing_is_sent_to_them() -> None:
    both = tuple(replace(variant, specialisations=(128, 512)) for variant in variants(2))
    found = winners.carried(Winners("f32", both, (Tree(Leaf(0), 0.0, 128), Tree(Leaf(1), 0.0, 512))))
    assert [variant.specialisations for variant in found.variants] == [(128,), (512,)]


def test_a_specialisation_is_a_kernel_of_its_own_for_that_length_alone() -> None:
    made = products.product("rvv", ("f32",), [products.by_vlen(products.winners(("f32",))[0])])
    text = {Path(name).name: data.decode() for name, data in made.files.items() if name.endswith(".c")}
    written = text["rvv_f32_outer_2x4_vlen256.c"]
    assert "{TENSOROP_ISA_BITS, 256}" in written.replace("{ ", "{").replace(" }", "}")
    assert "vsetvlmax" not in written
    assert "vsetvlmax" in text["rvv_f32_outer_2x4.c"]
    assert "rvv_f32_outer_2x4_vlen512.c" not in text
    assert "bits == 256 ? entries_256" in text["dispatch_f32.c"]


def test_what_only_two_splits_tell_apart_is_found() -> None:
    """Variant 1 is good in two opposite corners: no single split gains anything."""
    corners = [TreeRow({"k": k, "m": m}, (1, 2) if (k < 9) == (m < 9) else (2, 1)) for k in (4, 16) for m in (4, 16)]
    tree = grow(corners)
    assert [decide(tree, row.features) for row in corners] == [0, 1, 1, 0]


def test_sizes_beyond_64_bits_are_told_apart() -> None:
    far = [TreeRow({"size": 10**19}, (1, 2)), TreeRow({"size": 10**21}, (2, 1))]
    assert grow(far) == Split("size", 10**20, Leaf(0), Leaf(1))


def test_what_gains_too_little_is_one_leaf() -> None:
    assert grow(rows((1, 1.003), (1, 1.003), (1.003, 1))) == Leaf(0)


def test_a_combined_figure_keeps_each_vlens() -> None:
    both = combine({128: Samples("x", 4.0, 4.0, 4.0), 256: Samples("x", 1.0, 1.0, 1.0)})
    assert both.value == pytest.approx(2.0)
    assert [both.at(vlen) for vlen in (128, 256)] == [4.0, 1.0]
    assert combine({256: Samples("x", 3.0, 3.0, 3.0)}).at(256) == 3.0


def card(found: list[Winners]) -> dict[str, object]:
    ids = defaultdict(lambda: "0a1b")
    card = manifest.provenance(OperatorPart(operators.load("gemm"), found), platforms.load("rvv"), ids)
    told: dict[str, object] = card["dtypes"]
    return told


def test_the_manifest_has_the_trees_by_vlen() -> None:
    (fixed,) = products.winners(("f32",))
    told = card([products.by_vlen(fixed)])["f32"]
    assert set(told) == {"variants", "by_vlen"}
    assert [(tree.vlen, tree.regret) for tree in trees_of(told)] == [(128, 0.01), (256, 0.0125), (512, 0.0)]
    lines = card_lines({"dtypes": {"f32": told}}, trees=True)
    assert lines[0] == "f32: 2 variants"
    assert lines[1].endswith(", with specialised code for VLEN 256, source 0a1b")
    assert lines[lines.index("    VLEN 128, dispatch loss on held-out shapes 1.00%") + 1].strip() == "variant 0"


def test_one_tree_stays_as_it_was_in_the_manifest() -> None:
    told = card(products.winners(("f32",)))["f32"]
    assert set(told) == {"variants", "tree", "regret"}
    assert [tree.vlen for tree in trees_of(told)] == [0]


def test_vlens_rise() -> None:
    (fixed,) = products.winners(("f32",))
    trees = tuple(Tree(Leaf(0), 0.0, vlen) for vlen in (256, 1024))
    told = card([Winners("f32", fixed.variants, trees)])["f32"]
    assert [tree.vlen for tree in trees_of(told)] == [256, 1024]


def test_a_tree_of_models_gives_little_of_them_away() -> None:
    """Where no first split changes which variant is best, the loss alone finds none; rows that differ little do."""

    def drawn(seed: int, count: int) -> tuple[NDArray[np.float64], dict[str, NDArray[Any]]]:
        rng = np.random.default_rng(seed)
        m, n, k = np.rint(np.exp(rng.uniform(0, math.log(2048), (3, count))))
        turned = rng.integers(0, 2, count)
        costs = np.stack(
            [m * n * k + 40 * m * k, 0.7 * m * n * k + (900 * n + 200 * k) * (1 + turned), 9 * m * k * np.sqrt(n)]
        )
        logs = np.log(costs.T)
        columns = {"m": m, "n": n, "k": k, "size": m * n * k, "turned": turned}
        return logs - logs.min(axis=1, keepdims=True), {name: c.astype(np.int64) for name, c in columns.items()}

    losses, columns = drawn(1, 6000)
    tree = distil(losses, columns, gain=0.5)
    unseen, of_unseen = drawn(2, 1000)
    chosen = [decide(tree, {name: int(c[row]) for name, c in of_unseen.items()}) for row in range(len(unseen))]
    assert unseen[np.arange(len(unseen)), chosen].mean() < 0.01  # by the loss alone 0.034
