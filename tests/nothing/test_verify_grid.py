"""A grid's calls and how they are judged, on a subject that computes with the oracle itself."""

from __future__ import annotations

import numpy as np

from tensorop.model.case import Case
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed, Verdict, median_error
from tensorop.runners.session import Guest, Reply
from tensorop.space import problems
from tensorop.specs import operators
from tensorop.verify import grid
from tensorop.verify.answers import Answers

GEMM = operators.load("gemm")
PROBLEMS = [problems.of(GEMM, "f32", shape) for shape in ((5, 6, 7), (3, 9, 2))]


class Computes:
    """Right at every VLEN but one; what it is given is kept by VLEN."""

    def __init__(self, wrong_at=0, answers=None):
        self.wrong_at, self.given, self.guest, self.answers = wrong_at, {}, Guest(), answers

    def call(self, reference, case, rng, vlen):
        return reference.call(case.problem, rng, case.distribution, case.placement)

    def sent(self, problem, call):
        return call

    def execute(self, calls, vlen):
        self.given[vlen] = [call.buffers[0].data for call in calls]
        replies = []
        for call in calls:
            problem = next(problem for problem in PROBLEMS if tuple(problem.dims.values()) == call.dims)
            right = GEMM.reference.limits(problem, call)["C"][0].astype(np.float32).reshape(-1)
            replies.append(Reply(Outcome(Kind.OK), {"C": right + np.float32(vlen == self.wrong_at)}))
        return replies


def test_large_problems_have_the_same_inputs_at_every_vlen_and_the_oracle_is_asked_once(monkeypatch):
    seed, answers = Seed.draw(), Answers(GEMM.reference)
    subject = Computes(512, answers)
    cases = [Case(problem) for problem in PROBLEMS]
    verdicts = [grid.check(GEMM.reference, subject, cases, vlen, seed) for vlen in (128, 256, 512)]
    assert [verdict.outcome.kind for verdict in verdicts] == [Kind.OK, Kind.OK, Kind.WRONG]
    assert len(answers._limits) == len(PROBLEMS)
    assert verdicts[0].errors == (0.0, 0.0)
    for first, second in zip(subject.given[128], subject.given[256], strict=True):
        np.testing.assert_array_equal(first, second)
    subject.answers = None
    grid.check(GEMM.reference, subject, cases, 1024, seed)
    assert not np.array_equal(subject.given[128][0], subject.given[1024][0])


def test_the_error_of_each_call_is_kept():
    cases = [Case(problem) for problem in PROBLEMS]
    verdict = grid.check(GEMM.reference, Computes(), cases, 128, Seed.draw())
    assert len(verdict.errors) >= len(cases)
    assert all(0.9 < error <= 1 for error in verdict.errors)  # `limits` are the ends of the bound


def test_parts_of_a_grid_are_one_verdict_with_the_median_of_inexact_calls():
    parts = [Verdict(Outcome(Kind.OK), 0, 2, "0:0", errors) for errors in ((0.5, 0.0), (0.1, 0.3))]
    whole = grid.joined(parts)
    assert (whole.cases, whole.worst, median_error(whole.errors)) == (4, 0.5, 0.3)
    assert median_error(()) == 0


def test_where_nothing_was_tried_nothing_passed():
    """A grid without cases fails; without a case for several threads nothing is said of them."""
    verdict = grid.check(GEMM.reference, Computes(), [], 0, Seed.draw())
    assert (verdict.outcome.kind, verdict.cases) == (Kind.REFUSED, 0)
    assert verdict.outcome.message == "the grid has no case, so nothing was verified"
    assert grid.verify_threads(GEMM, lambda count: Computes(), [], (2, 4), 0, Seed.draw()) == ()


def test_what_is_called_again_differs_in_one_element_of_each_input_in_turn():
    for dtype in GEMM.dtypes:
        problem = problems.of(GEMM, dtype, (5, 6, 7))
        cases = [Case(problem), Case(problem, "special"), Case(problem)]
        calls = [
            (i, GEMM.reference.call(problem, np.random.default_rng(i), c.distribution)) for i, c in enumerate(cases)
        ]
        found = grid.with_changed(cases, calls, GEMM.reference, np.random.default_rng(3))
        numbers = [i for i, _ in found]
        assert numbers in ([0, 0, 0, 1, 2], [0, 1, 2, 2, 2])
        at = numbers.index(max(numbers, key=numbers.count))
        for first, second, name in ((at, at + 1, "A"), (at + 1, at + 2, "B")):
            for one, other in zip(found[first][1].buffers, found[second][1].buffers, strict=True):
                assert (one.data.view(np.uint8) != other.data.view(np.uint8)).any() == (one.name == name)
                assert (one.data != other.data)[one.data == one.data].sum() == (one.name == name)
