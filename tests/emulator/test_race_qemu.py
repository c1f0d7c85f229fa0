"""Cheap trials under a board model: who falls out of a race has the figures it would have had, what is compiled, and
that no tile escapes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tensorop.author import offline
from tensorop.backends import reach
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Kind, Rung, Stage, Trial, TrialResult
from tensorop.model.verdict import Seed
from tensorop.render import instantiate
from tensorop.space import problems
from tensorop.specs import platforms
from tensorop.trial.evaluator import Evaluator, Prepared
from tests.support.operators import gemm

SHAPES = ((8, 8, 8), (80, 64, 72), (20, 17, 9), (64, 64, 80))  # small and near in turn


def test_figures_are_the_same_whoever_falls_out(tmp_path: Path) -> None:
    operator, target = gemm(), reach(platforms.load("rvv"))
    found = tuple(problems.of(operator, "f32", shape) for shape in SHAPES)
    evaluator = Evaluator(operator, target, StageRun("f32", Stage.BLOCKING, found, Seed.draw(0)), tmp_path)
    template = next(one for one in offline.templates(operator.folder, operator.name) if one.name == "outer")
    kernel = Kernel(template, "f32", instantiate.micro_space(target.platform, template, "f32").at(0))
    trial = Trial("k", 0, Stage.BLOCKING, Variant(kernel))
    made = evaluator.prepare(trial)
    assert isinstance(made, Prepared)

    def measured(*race: Rung) -> TrialResult:
        ended = evaluator.measure(replace(trial, race=race), made)
        assert ended.outcome.ok
        return ended

    far, near = ([(vlen, bar) for vlen in target.vlens] for bar in (1e-3, 1e9))
    beyond = (("small", 2.0), ("near", 2.0))
    small, large = ([("small", *bar) for bar in far], [("near", *bar) for bar in near])
    whole = measured(Rung(1), Rung(2))
    first = measured(Rung(1, tuple(far), beyond[:1], tuple(small)), Rung(2))
    second = measured(Rung(1), Rung(2, (*far[1:], near[0]), beyond, tuple(small)))
    in_one_class = measured(Rung(1), Rung(2, tuple(far), beyond, (*small, *large)))
    costs, labels = whole.score.per_problem, [problem.label for problem in found]
    assert list(costs) == labels
    assert dict(first.score.per_problem) == {labels[0]: costs[labels[0]]}
    assert second.score == whole.score
    assert dict(in_one_class.score.per_problem) == {labels[at]: costs[labels[at]] for at in (0, 1, 3)}
    each = [1e3 * costs[problem.label].value / operator.reference.work(problem) for problem in found]
    assert (first.score.cost or 0.0) == pytest.approx(2 * each[0])
    assert (in_one_class.score.cost or 0.0) == pytest.approx(((2 * each[0]) ** 2 * each[1] * each[3]) ** 0.25)


def test_an_edge_kernel_is_compiled_for_what_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENSOROP_OBJECTS", raising=False)  # its sources lie in the job's own folder
    operator, target = gemm(), reach(platforms.load("rvv"))
    template = next(one for one in offline.templates(operator.folder, operator.name) if one.name == "outer")
    space = instantiate.micro_space(target.platform, template, "f32")
    point = next(point for point in map(space.at, range(space.size)) if point["lmul"] == 4)
    variant = Variant(Kernel(template, "f32", point))
    problem = problems.of(operator, "f32", SHAPES[0])
    for stage, edge in ((Stage.MICRO, False), (Stage.BLOCKING, True)):
        work = tmp_path / stage.value
        evaluator = Evaluator(operator, target, StageRun("f32", stage, (problem,), Seed.draw(0)), work)
        trial = Trial("k", 0, stage, variant)
        made = evaluator.prepare(trial)
        assert isinstance(made, Prepared)
        assert evaluator.measure(trial, made).outcome.ok
        (source,) = work.rglob("kernel.c")
        assert ("_edge_kernel" in source.read_text()) is edge


@pytest.mark.parametrize("platform", ["rvv", "cortex-a53"])
def test_a_wrong_tile_is_found_whatever_is_drawn(platform: str, tmp_path: Path) -> None:
    """The smallest tile but one, in its last row and column alone; the template is our own but for that."""
    operator, target = gemm(), reach(platforms.load(platform))
    outer = next(one for one in offline.templates(operator.folder, operator.name) if one.name == "outer")
    wrong = "{% if n == 2 and mr_vectors == 1 and tails %}\n    c[m - 1 + ldc] += alpha;\n{% endif %}\n"
    for number, text in enumerate((outer.text, outer.text + wrong)):
        template = replace(outer, text=text)
        space = instantiate.micro_space(target.platform, template, "f32")
        point = next(point for point in map(space.at, range(space.size)) if point["nr"] == 2)
        problem = problems.of(operator, "f32", SHAPES[0])
        for seed in range(3):
            run = StageRun("f32", Stage.BLOCKING, (problem,), Seed.draw(seed))
            evaluator = Evaluator(operator, target, run, tmp_path)
            trial = Trial("k", 0, Stage.BLOCKING, Variant(Kernel(template, "f32", point)))
            made = evaluator.prepare(trial)
            assert isinstance(made, Prepared)
            ended = evaluator.measure(trial, made).outcome
            assert ended.kind is (Kind.WRONG if number else Kind.OK), ended
