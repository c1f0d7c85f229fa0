"""conv2d: its judge refuses faulty kernels, and its baselines compute what it asks for."""

from __future__ import annotations

import numpy as np
import pytest

from tensorop.backends import reach
from tensorop.build import harness
from tensorop.commands import libraries
from tensorop.errors import UsageError
from tensorop.model.verdict import Seed
from tensorop.provision.targets import host_arch
from tensorop.runners.session import Guest
from tensorop.specs import operators, platforms
from tensorop.verify import grid
from tensorop.verify.controls import Control, controls, run_control
from tensorop.verify.subject import Subject
from tests.support.convolutions import PIPELINED, verdict
from tests.support.kernels import platform
from tests.support.operators import builder, runner_of

operator = operators.load("conv2d")
here = platform(host_arch())


@pytest.mark.parametrize("dtype", operator.dtypes)
@pytest.mark.parametrize("control", controls(operator), ids=lambda control: control.name)
def test_the_judge_knows_what_is_wrong(control: Control, dtype: str) -> None:
    result = run_control(control, dtype, operator, here, runner_of(here), builder(here), Seed.draw())
    assert result.as_expected, f"{result.outcome.kind}: {result.outcome.message}"


OWN_BASELINES = [("im2col+openblas", "f32"), ("im2col+openblas", "f64"), ("direct", "f32"), ("direct", "f64")]
OWN_BASELINES += [("onednn", "f32")] if host_arch() == "x86_64" else []


@pytest.mark.parametrize(("name", "dtype"), OWN_BASELINES)
def test_a_baseline_computes_what_is_asked(name: str, dtype: str) -> None:
    target = reach(platforms.load("native"))
    tested = libraries.bring(name, target, [dtype], 1, own=operator.baselines)
    environment = tested.environment(target.runner, 0, dtype)
    guest = Guest(libraries=(tested.library(target.runner, dtype),), environment=environment)
    program = harness.of_operator(target.platform, operator).path
    cases = list(operator.reference.quick_grid(dtype, operator.reference.CONTROL_TILE, np.random.default_rng(0)))
    if name == "onednn":  # whose ReLU makes 0 of a NaN; what is compared has none
        cases = [case for case in cases if case.distribution != "special" or not dict(case.problem.options)["relu"]]
    verdict = grid.check(operator.reference, Subject(target.runner, program, guest), cases, 0, Seed.draw())
    assert verdict.ok, verdict.outcome


def test_a_name_may_mean_a_certain_build() -> None:
    own = {"im2col": "cblas", "direct": "none", "onednn": "onednn@2023.2.0"}
    assert libraries.below("onednn", own) == "onednn@2023.2.0"
    assert libraries.below("onednn", {}) == "onednn"
    assert libraries.below("im2col+openblas@0.3.29", own) == "openblas@0.3.29"
    assert libraries.below("direct", own) == "direct"
    assert set(libraries.check_names(["im2col+openblas", "onednn"], "riscv64", own)) == {"onednn"}
    with pytest.raises(UsageError, match="direct, im2col\\+openblas, libxsmm, mkl, onednn, onednn@"):
        libraries.check_known("winograd", "x86_64", own)


@pytest.mark.skipif(host_arch() != "x86_64", reason="the plain platform is one of x86-64")
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("packs", [(1, 1), (1, 0), (0, 0)], ids=["both packed", "weights in place", "both in place"])
def test_a_variant_is_right(packs: tuple[int, int], dtype: str) -> None:
    chosen = {**PIPELINED, "mr_vectors": 2, "nr": 4, "pack_a": packs[0], "pack_b": packs[1]}
    found = verdict("generic", "outer", dtype, chosen)
    assert found.ok, found.outcome
