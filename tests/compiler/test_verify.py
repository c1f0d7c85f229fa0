"""The judge on this machine: every control is refused, honest kernels pass, an accepted fault stops the run."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tensorop.author import offline
from tensorop.errors import JobError, SpecError
from tensorop.model.architecture import host_arch
from tensorop.model.case import Case
from tensorop.model.kernel import Artifact, Kernel
from tensorop.model.operator import Operator
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind
from tensorop.model.verdict import Seed, Verdict, median_error
from tensorop.render import instantiate
from tensorop.specs.platforms import load
from tensorop.verify import grid
from tensorop.verify.controls import ControlRun, controls
from tensorop.verify.subject import Subject
from tests.support.kernels import platform
from tests.support.operators import beside_controls, builder, gemm, runner_of
from tests.support.templates import candidate

operator = gemm()
here = platform(host_arch())
runner, build = runner_of(here), builder(here)
tiles = dict.fromkeys(here.verify_vlens, operator.reference.CONTROL_TILE)
blocking = {"mc": 16, "kc": 32, "nc": 24, "variants": 2}


def program(control: str | Path, dtype: str = "f32") -> Path:
    path = control if isinstance(control, Path) else operator.folder / "controls" / f"{control}.c"
    built = build(beside_controls(path.name, path.read_text()), (f"-DTENSOROP_DTYPE_{dtype}=1",))
    assert isinstance(built, Artifact), built.log
    return built.path


@pytest.mark.covers("control gemm/*", "dtype gemm/{dtype}")
@pytest.mark.parametrize("dtype", operator.dtypes)
def test_every_control_ends_as_it_must(dtype: str) -> None:
    results = ControlRun(operator, here, runner, Seed.draw()).run([dtype])
    assert [result.name for result in results] == [c.name for c in controls(operator) if c.applies(here, dtype)]
    for result in results:
        assert result.as_expected, (result.name, result.outcome)
        assert bool(result.outcome.message) != result.outcome.ok


def test_a_control_in_a_program_of_its_own_ends_as_in_a_program_of_several() -> None:
    run = ControlRun(operator, here, runner, Seed.draw())
    several = run.run(["f32"])
    for result in several[:: len(several) // 4]:
        (control,) = (one for one in controls(operator) if one.name == result.name)
        assert run.judge(control, "f32") == result


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", operator.dtypes)
def test_an_honest_kernel_passes_the_whole_grid(dtype: str) -> None:
    subject, reference = Subject(runner, program("honest", dtype)), operator.reference

    def full(vlen: int, seed: Seed) -> Sequence[Case]:
        return reference.full_grid(dtype, tiles[vlen], blocking, seed.stream(0, vlen))

    (verdict,) = grid.verify(operator, subject, full, here.verify_vlens, Seed.draw())
    assert verdict.ok, verdict.outcome
    assert verdict.cases > 500
    if dtype == "i8":  # integers are exact
        assert verdict.worst == 0
    else:
        assert 0.01 < verdict.worst <= 1  # the bound is near what rounding really does
        assert 0 < median_error(verdict.errors) < verdict.worst


def test_the_recorded_seed_replays_the_failure() -> None:
    subject = Subject(runner, program("corner_off"))
    quick = grid.quick(operator, "f32", tiles)
    (first,) = grid.verify(operator, subject, quick, here.verify_vlens, Seed.draw())
    (again,) = grid.verify(operator, subject, quick, here.verify_vlens, Seed.parse(first.seed))
    (other,) = grid.verify(operator, subject, quick, here.verify_vlens, Seed.draw())
    assert first == again
    assert first.seed in first.outcome.message
    assert other.outcome.message != first.outcome.message


def test_a_fault_that_passes_stops_the_run(tmp_path: Path) -> None:
    broken = with_control(tmp_path, "/* fault: one nobody can see\n * expect: wrong-result\n */\n", "honest")
    with pytest.raises(
        JobError, match=r"self-test failed: verification accepted the known-wrong control 'planted' \(f64\)"
    ):
        ControlRun(broken, here, runner, Seed.draw()).run(["f64"])


def test_a_fault_caught_by_the_wrong_check_stops_the_run(tmp_path: Path) -> None:
    broken = with_control(tmp_path, "/* fault: C is zero\n * expect: guard-page\n */\n", "zero")
    with pytest.raises(JobError, match="must end as guard-page, but ended as wrong-result"):
        ControlRun(broken, here, runner, Seed.draw()).run(["f32"])


def test_a_control_that_does_not_compile_stops_the_run(tmp_path: Path) -> None:
    broken = with_control(tmp_path, "/* fault: none\n * expect: wrong-result\n */\nint x = y;\n", "zero")
    with pytest.raises(JobError, match="but ended as compile-failed"):
        ControlRun(broken, here, runner, Seed.draw()).run(["f32"])


def test_a_control_without_its_expectation_is_a_broken_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"planted\.c: expected 'fault:'"):
        controls(with_control(tmp_path, "/* fault: unknown */\n", "zero"))


def with_control(tmp_path: Path, head: str, name: str) -> Operator:
    """The operator with one control only, whose head is another."""
    folder = tmp_path / "controls"
    folder.mkdir()
    shutil.copy(operator.folder / "controls" / "product.h", folder)
    text = (operator.folder / "controls" / f"{name}.c").read_text().partition("*/")[2]
    (folder / "planted.c").write_text(head + text)
    return replace(operator, folder=tmp_path)


UNSTEADY = """#include "product.h"

static int calls;

/* Both orders of summation are right; which one is taken depends on what was called before. */
void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    int backwards = calls++ % 2;
    FOR_EACH_ELEMENT(p, i, j) {
        REAL sum = 0;
        for (int64_t q = 0; q < p.k && p.alpha != 0; ++q) {
            int64_t at = backwards ? p.k - 1 - q : q;
            sum += p.a[i * p.a_row + at * p.a_col] * p.b[at * p.b_row + j * p.b_col];
        }
        update(&p, i, j, sum);
    }
}
"""


def test_results_that_change_from_call_to_call_are_refused(tmp_path: Path) -> None:
    vlen = here.verify_vlens[0]
    cases = operator.reference.thread_grid("f32", tiles[vlen], Seed.draw().stream(8))
    steady = Subject(runner, program("honest"))
    verdicts = grid.verify_threads(operator, lambda threads: steady, cases, (1, 2), vlen, Seed.draw())
    assert [(v.threads, v.ok) for v in verdicts] == [(1, True), (2, True)]
    (tmp_path / "unsteady.c").write_text(UNSTEADY)
    unsteady = Subject(runner, program(tmp_path / "unsteady.c"))
    (verdict,) = grid.verify_threads(operator, lambda threads: unsteady, cases, (2,), vlen, Seed.draw())
    assert verdict.outcome.kind is Kind.WRONG
    assert "differs between equal calls with 2 threads" in verdict.outcome.message


def test_a_shipped_template_passes_with_no_more_memory_than_it_asks_for() -> None:
    """And one vector less is found: a packed block that grows past its end cannot hide."""
    plain = load("generic")
    template = offline.templates(operator.folder, operator.name)[0]
    space = instantiate.micro_space(plain, template, "f32")
    blocks = {"mc": 8, "kc": 8, "nc": 8, "pack_a": 1, "pack_b": 1}
    point = instantiate.defaults(operator, plain, "f32", Point.of({**space.at(0), **blocks}))
    made = builder(plain)(candidate(plain, template, point, "f32"), ())
    assert isinstance(made, Artifact), made.log
    vlen = plain.vlens[0]
    lanes = plain.lanes("f32", point, vlen)
    tile = instantiate.tile(operator, plain, Kernel(template, "f32", point), vlen)
    quick = grid.quick(operator, "f32", {vlen: tile})

    def verdict(less: int) -> Verdict:
        def workspace(problem: Problem, vlen: int) -> int:
            return max(operator.reference.workspace(problem, point, lanes) - less, 0)

        subject = Subject(runner_of(plain), made.path, workspace=workspace)
        return grid.verify(operator, subject, quick, [vlen], Seed.draw())[0]

    assert verdict(0).ok, verdict(0).outcome
    assert verdict(128).outcome.kind is Kind.GUARD
