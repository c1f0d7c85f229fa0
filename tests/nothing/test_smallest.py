"""What a search measures for the smallest problems and beyond every cache: which stage gets which shapes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorop import pipeline
from tensorop.author import offline
from tensorop.backends import reach
from tensorop.errors import SpecError
from tensorop.model.architecture import host_arch
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.point import Point
from tensorop.model.trial import Finished, Kind, Outcome, Samples, Score, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.search.stages import direct_winner
from tensorop.search.task import JobContext, Task
from tensorop.space.problems import work
from tensorop.specs import operators, platforms
from tensorop.store.journal import Journal
from tests.support.operators import gemm

operator = gemm()
DIRECT = offline.direct(operator.folder, operator.name)
SIZES = ((4, 4, 4), (16, 16, 16), (64, 64, 64), (1, 1024, 1024))


def task(folder: Path, journal: Journal, runner: str, dtype: str = "f32", suite: str = "quick") -> Task:
    job = Job("gemm", "generic", ("f32", "i8"), SIZES, suite, out=folder)
    target = reach(platforms.load("generic"), runner)
    return JobContext(job, operator, target, pipeline.passes(operator), (), journal, Seed.draw(1), folder).task(dtype)


def shapes(problems: object) -> set[tuple[int, ...]]:
    return {tuple(int(side) for side in p.dims.values()) for p in problems}  # type: ignore[attr-defined]


def test_the_smallest_are_the_direct_variant_s_and_no_blocking_s(tmp_path: Path) -> None:
    assert operator.direct is not None
    with Journal.open(tmp_path, {}) as journal:
        here = task(tmp_path, journal, "null")
        blocked, smallest = shapes(here.problems), shapes(here.small_problems)
        widened = shapes(task(tmp_path, journal, "null", "i8").problems)
    assert {(64, 64, 64), (1, 1024, 1024), *operator.probes} <= blocked
    assert all(work(operator, "f32", shape) > operator.direct.always for shape in blocked)
    assert {*operator.suites["tiny"], (4, 4, 4), (16, 16, 16)} == smallest
    assert (16, 16, 16) in widened  # operands are packed, so the trees serve all sizes
    assert operator.clock_probes[0] not in blocked


@pytest.mark.skipif(host_arch() != "x86_64", reason="the plain platform is one of x86-64")
def test_a_clock_measures_a_matrix_beyond_every_cache(tmp_path: Path) -> None:
    with Journal.open(tmp_path, {}) as journal:
        with_suite = task(tmp_path, journal, "native", "f64").problems
        without = task(tmp_path, journal, "native", "f64", "4x4x4").problems
    assert set(operator.clock_probes) <= shapes(with_suite)
    assert not set(operator.clock_probes) & shapes(without)
    # one row by a matrix with contiguous rows, or columns; as a column of the transposed product it is the same
    beyond = max(shape for shape in operator.clock_probes if shape[0] == 1)
    there = [dict(one.options.pairs) for one in with_suite if operator.shapes.of(one.sizes) == beyond]
    assert there == [operator.layouts[0], operator.layouts[1]]


def test_a_direct_variant_names_a_suite_there_is(tmp_path: Path) -> None:
    folder = tmp_path / "templates" / "gemm"
    folder.mkdir(parents=True)
    text = (operator.folder / "operator.yaml").read_text()
    (folder / "operator.yaml").write_text(text.replace("direct: {suite: tiny", "direct: {suite: teeny"))
    with pytest.raises(SpecError, match=r"direct\.suite.*tiny.*'teeny'"):
        operators.load("gemm", (tmp_path,))


def test_of_close_ones_the_one_without_a_weakness_serves_the_smallest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By geomean alone the first would: 4 % cheaper, and on one shape twice as dear as the second."""
    assert DIRECT is not None
    sharp, even, slow = (Variant(Kernel(DIRECT, "f32", Point.of(mr_vectors=mr_vectors))) for mr_vectors in (1, 2, 4))
    measured = [(sharp, 24.0, (5.0, 20.0)), (even, 25.0, (9.0, 10.0)), (slow, 40.0, (9.0, 11.0))]

    def passed(*_: object) -> list[Finished]:
        return [
            Finished(
                Trial("k", 0, Stage.SMALLEST, variant),
                Outcome(Kind.OK, "measure"),
                Score(cost, {str(i): Samples("ns", c, c, c) for i, c in enumerate(each)}),
            )
            for variant, cost, each in measured
        ]

    monkeypatch.setattr(Task, "passed", passed)
    with Journal.open(tmp_path, {}) as journal:
        here = task(tmp_path, journal, "null")
        assert direct_winner(here) == even
        del measured[1]
        assert direct_winner(here) == sharp
