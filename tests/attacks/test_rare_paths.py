"""A tile that is wrong for one combination of small numbers, which no grid has: the call of its path finds it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tensorop.author import offline
from tensorop.backends import reach
from tensorop.commands import verify
from tensorop.commands.library_paths import LibraryPaths
from tensorop.model.kernel import Kernel, KernelText, Variant
from tensorop.model.point import Point
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Kind, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.model.winner import Leaf, Tree, Winners
from tensorop.render.texts import Texts
from tensorop.specs import operators, platforms
from tensorop.store.journal import Journal
from tensorop.trial import paths
from tensorop.trial.called import PathCalls
from tensorop.trial.evaluator import Evaluator, Prepared
from tests.support import products

# What is true in one call, where; the text is our own but for it. A kernel's largest tile is of 2 vectors by 2 columns.
RARE = {
    "four numbers": "depth == 53 && m == {high} && beta == 0 && alpha == 1",
    "a depth of one tile": "{{% if n == 1 and mr_vectors == 2 %}} depth == 37 {{% else %}} depth == 0 {{% endif %}}",
    "a depth at a stride": "rsb == 1 && depth == 41 && beta == 1",
}
LARGEST = "{{% if n * mr_vectors == 4 %}} depth == 47 && beta == 1 && alpha == 1 {{% else %}} depth == 0 {{% endif %}}"
DEPTHS = {"four numbers": 53, "a depth of one tile": 37, "a depth at a stride": 41}
LANES = {"avx2": 8, "rvv": 4}


def variant_of(rare: str, platform: str, author: str = "llm", **more: int) -> Variant:
    operator = operators.load("gemm")
    outer = next(one for one in offline.templates(operator.folder, operator.name) if one.name == "outer")
    rare = rare.format(high=2 * LANES[platform] - 2)
    text = f"    const size_t depth = k;\n{outer.text}    if ({rare})\n        c[0] = 0;\n" if rare else outer.text
    lmul = {"lmul": 1} if platform == "rvv" else {}
    point = Point.of({**dict.fromkeys(outer.tunables, 0), "mr_vectors": 2, "nr": 2, "ku": 1, **lmul})
    template = replace(outer, name="rare", text=text, author=author)
    return Variant(Kernel(template, "f32", point), Point.of(more))


def evaluator(platform: str, stage: Stage, work: Path) -> Evaluator:
    run = StageRun("f32", stage, (), Seed(1, 2))
    return Evaluator(operators.load("gemm"), reach(platforms.load(platform)), run, work, Texts())


@pytest.mark.one_in(3)
@pytest.mark.parametrize("what", ["", *RARE])
@pytest.mark.parametrize("platform", LANES)
def test_a_library_does_not_carry_what_is_wrong_on_one_path(what: str, platform: str, tmp_path: Path) -> None:
    variant = variant_of(RARE.get(what, ""), platform, pack_a=0, pack_b=0)
    outcome, count = paths.verified(evaluator(platform, Stage.BLOCKING, tmp_path), variant)
    assert outcome.kind is (Kind.WRONG if what else Kind.OK), outcome
    assert count >= 1


def test_a_trial_calls_the_paths_of_the_largest_tile(tmp_path: Path) -> None:
    evaluate = evaluator("avx2", Stage.MICRO, tmp_path)
    trial = Trial("k", 0, Stage.MICRO, variant_of(LARGEST, "avx2"))
    made = evaluate.prepare(trial)
    assert isinstance(made, Prepared), made
    outcome = evaluate.measure(trial, made).outcome
    assert (outcome.kind, outcome.where) == (Kind.WRONG, "verify"), outcome
    assert "47 f32 alpha=1 beta=1" in outcome.message


def test_verify_finds_what_is_wrong_on_one_path(tmp_path: Path) -> None:
    """By calls of the library. It finds the template in the product's journal; without that it names the template."""
    variant = variant_of(RARE["four numbers"], "avx2", author=offline.AUTHOR, pack_a=0, pack_b=0)
    winners = [Winners("f32", (variant,), (Tree(Leaf(0), 0.0),))]
    found, target = products.reached(products.install("avx2", tmp_path / "out", ("f32",), winners))
    (vlen,) = target.verify_vlens
    unknown = LibraryPaths(found, target, Seed(1, 2))
    assert not unknown.cases("f32", vlen)
    assert unknown.uncalled.keys() == {"rare"}
    with Journal.open(tmp_path / "out", {}) as journal:
        journal.template(variant.template)
    library = LibraryPaths(found, target, Seed(1, 2))
    *_, (_, judged) = verify._Judge(found, target, library.seed, paths=library).batches("f32", vlen)
    assert not library.uncalled
    outcome = judged().outcome
    assert outcome.kind is Kind.WRONG, outcome
    assert "14x2x53 f32 alpha=1 beta=0" in outcome.message or "14x1x53 f32 alpha=1 beta=0" in outcome.message


@pytest.mark.parametrize("what", RARE)
def test_each_path_is_called_once(what: str) -> None:
    operator, platform, texts = operators.load("gemm"), platforms.load("avx2"), Texts()
    variant = variant_of(RARE[what], "avx2", pack_a=0, pack_b=0)
    assert isinstance(texts.kernel(operator, platform, variant), KernelText)
    (known,) = texts.paths(operator, platform, variant)
    (calls,) = PathCalls(operator, platform, texts, platform.vlens, Seed(1, 2)).every(variant)
    for vlen, cases in calls.items():
        assert len(cases) == len([*known.at(vlen)])
        assert DEPTHS[what] in {case.problem.dims["k"] for case in cases}
