"""What the cost model expects of blockings, on recorded ones that were all measured on every problem."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from scipy.stats import kendalltau

from tensorop.author import offline
from tensorop.backends import qemu
from tensorop.costs.expected import Expectation
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Kind, Outcome, Samples, Score, Stage, Trial
from tensorop.render import instantiate
from tensorop.space import Space, problems
from tensorop.specs import operators, platforms
from tensorop.trial import race, selection

RECORD = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data" / "race-gemm-f32-spacemit-k1.json.gz").read_bytes())
)
EXAMPLE = Path(__file__).parents[2] / "examples" / "operator"
GEMM, K1 = operators.load("gemm"), platforms.load("spacemit-k1")


@dataclass(frozen=True)
class Recorded:
    problems: list[Problem]
    expectation: Expectation
    trials: list[Finished]
    kernels: dict[str, Kernel]

    def of(self, kernel: Kernel) -> list[Finished]:
        """A kernel's trials, the best first."""
        mine = [one for one in self.trials if one.trial.variant.kernel.id == kernel.id]
        return sorted(mine, key=lambda one: one.score.cost or 0.0)

    def space(self, kernel: Kernel) -> Space:
        return instantiate.blocking_space(GEMM, K1, kernel)


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    templates = {one.name: one for one in offline.templates(GEMM.folder, "gemm")}
    known = [problems.of(GEMM, "f32", tuple(map(int, name.split()[0].split("x"))), i) for name in RECORD["work"]
             for i in range(len(GEMM.layouts))]  # fmt: skip
    by_label = {one.label: one for one in known}
    of_record = [by_label[name] for name in RECORD["work"]]
    four = {"small": "size <= 262144", "skinny": "min(m, n) <= 32", "deep": "k >= 4 * max(m, n)", "large": "1"}
    classes = problems.classes(replace(GEMM, classes=four), of_record)  # these weigh equally
    course = race.Course(RECORD["work"], classes, dict.fromkeys(four, 1 / len(four)))
    trials = []
    for number, point in enumerate(RECORD["points"]):
        cost_of = {name: each[0] for name, each in point["costs"].items()}
        costs = {name: Samples("u", cost, cost, cost, by_vlen={256: cost}) for name, cost in cost_of.items()}
        variant = instantiate.variant(GEMM, templates[point["template"]], "f32", point["point"])
        score = Score(course.score(costs), costs)
        trials.append(Finished(Trial(str(number), 0, Stage.BLOCKING, variant), Outcome(Kind.OK), score))
    kernels = {one.trial.variant.kernel.id: one.trial.variant.kernel for one in trials}
    return Recorded(of_record, Expectation(GEMM, K1, of_record, K1.vlens), trials, kernels)


def test_of_the_best_kernel_typical_costs_order_blockings_as_measurements_do(recorded: Recorded) -> None:
    best = min(recorded.trials, key=lambda one: one.score.cost or 0.0).trial.variant.kernel
    order, trials = recorded.expectation.ranked(best, recorded.space(best)), recorded.of(best)
    place = {one.trial.variant.id: order.index(one.trial.variant.blocking) for one in trials}
    first = sorted(trials, key=lambda one: place[one.trial.variant.id])[:4]
    assert min(one.score.cost or 0.0 for one in first) <= 1.02 * (trials[0].score.cost or 0.0)
    tau = kendalltau([place[one.trial.variant.id] for one in trials], [one.score.cost for one in trials])
    assert tau.statistic > 0.5


def test_after_trials_the_next_blocking_is_expected_to_cost_least_and_does_other_work(recorded: Recorded) -> None:
    for kernel in recorded.kernels.values():
        seen, space = [one.trial.variant.blocking for one in recorded.of(kernel)], recorded.space(kernel)
        found: list[Point] = []
        while len(found) < 5 and (point := recorded.expectation.best(kernel, space, recorded.trials, [*seen, *found])):
            assert point in space
            assert point not in [*seen, *found]
            found.append(point)
        assert found
        again = recorded.expectation.best(kernel, space, recorded.trials, seen)
        assert again == found[0]  # of the same trials the same point, in any process


def test_two_blockings_of_equal_work_are_one(recorded: Recorded) -> None:
    kernel = next(one for one in recorded.kernels.values() if one.template.name == "outer")
    largest = max(int(size) for name in RECORD["work"] for size in name.split()[0].split("x"))
    expectation = Expectation(GEMM, K1, recorded.problems, K1.vlens)
    values = {"a_stationary": [0], "pack_a": [1], "pack_b": [1], "kc": [64], "mc": [64], "nc": [largest, 2 * largest]}
    space = Space.of(values)
    first = expectation.best(kernel, space, (), [])
    assert first is not None
    assert expectation.best(kernel, space, (), [first]) is None


def test_an_expectation_needs_no_trial_that_passed(recorded: Recorded) -> None:
    kernel = next(iter(recorded.kernels.values()))
    failed = Finished(Trial("x", 0, Stage.BLOCKING, Variant(kernel)), Outcome(Kind.WRONG, "x"), Score(None))
    space = recorded.space(kernel)
    assert recorded.expectation.best(kernel, space, [failed], []) == recorded.expectation.best(kernel, space, [], [])


def test_without_decisions_the_blockings_nearest_to_the_defaults_come_first() -> None:
    operator, platform = operators.load("conv1d", (EXAMPLE,)), platforms.load("native")
    (template, *_) = offline.templates(operator.folder, "conv1d")
    kernel = Kernel(template, "f32", instantiate.micro_space(platform, template, "f32").at(0))
    space = instantiate.blocking_space(operator, platform, kernel)
    problem = problems.of(operator, "f32", operator.suites[operator.usual][0])
    expectation = Expectation(operator, platform, [problem], platform.vlens)
    defaults = instantiate.defaults(operator, platform, "f32", kernel.configuration)
    order = expectation.ranked(kernel, space)
    assert order[0] == space.nearest({name: defaults[name] for name, _ in space.dimensions})
    assert set(order) == set(space.points())
    assert expectation.best(kernel, space, (), order[:1]) is None


def test_what_a_trial_left_out_costs_about_what_was_measured(recorded: Recorded) -> None:
    fresh = Expectation(GEMM, K1, recorded.problems, K1.vlens)
    for kernel in recorded.kernels.values():
        best, *_ = recorded.of(kernel)
        small = dict(
            sorted(best.score.per_problem.items(), key=lambda one: one[1].value)[: len(recorded.problems) // 2]
        )
        expected = fresh.unmeasured(replace(best, score=Score(best.score.cost, small)), recorded.trials)
        assert {name for name, _ in expected} == best.score.per_problem.keys() - small.keys()
        off = [math.log(cost / best.score.per_problem[name].value) for (name, _), cost in expected.items()]
        assert math.sqrt(sum(one**2 for one in off) / len(off)) < 0.5


def test_finalists_are_measured_where_they_may_be_the_best(recorded: Recorded) -> None:
    sketch = {one.label for one in problems.sketch(GEMM, recorded.problems, qemu.Backend.budgets)}
    short = [
        replace(one, score=replace(one.score, per_problem={p: one.score.per_problem[p] for p in sketch}))
        for one in recorded.trials
    ]
    fresh = Expectation(GEMM, K1, recorded.problems, K1.vlens)
    left = {one.trial.variant.id: fresh.unmeasured(one, short) for one in short}
    every = {one.trial.variant.id: {**left[one.trial.variant.id], **selection.by_vlen(one, [256])} for one in short}
    chosen = selection.finalists(short, every)
    only = selection.worthwhile({name: left[name] for name in chosen})
    costs = {one.trial.variant.id: selection.by_vlen(one, [256]) for one in recorded.trials}
    work, off = 0.0, []
    for problem in RECORD["work"].keys() - sketch:
        measured = [name for name in chosen if name not in only or problem in only[name]]
        work += len(measured) * RECORD["work"][problem]
        least, found = (min(costs[name][problem, 256] for name in some) for some in (chosen, measured))
        off.append(math.log(found / least))
    assert len(only) == len(chosen) - 1
    assert math.exp(sum(off) / len(off)) < 1.01
    assert work < 0.7 * len(chosen) * sum(RECORD["work"][problem] for problem in RECORD["work"].keys() - sketch)
