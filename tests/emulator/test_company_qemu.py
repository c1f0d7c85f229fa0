"""Micro-kernels under a board model: verdict and cycles depend neither on other kernels nor on who wrote the kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tensorop.trial.judging import PATIENT
from tensorop.trial.trial import carry_out, side_by_side
from tests.support import drawn_kernels
from tests.support.classes import extended


@pytest.mark.parametrize(
    ("operator", "platform", "dtype"),
    [
        ("gemm", "spacemit-k1", "f32"),
        extended("gemm", "cortex-a53", "f64"),
        extended("gemm", "rvv", "f32"),
        extended("gemm", "rvv", "i8"),
        extended("conv2d", "rvv", "f32"),
    ],
)
def test_cycles_are_equal_alone_in_company_and_in_any_order(
    operator: str, platform: str, dtype: str, tmp_path: Path
) -> None:
    evaluate = drawn_kernels.evaluator(platform, tmp_path, dtype, operator)
    trials = drawn_kernels.drawn(evaluate, 8, seed=7)
    together = list(side_by_side(evaluate, 1, trials, PATIENT))
    assert all(result.outcome.ok for result in together), together
    backwards = list(side_by_side(evaluate, 2, trials[::-1], PATIENT))[::-1]
    alone = [carry_out(evaluate, trial, PATIENT) for trial in trials[:3]]
    for trial, first, other in [
        *zip(trials, together, backwards, strict=True),
        *zip(trials, together, alone, strict=False),
    ]:
        assert first.outcome == other.outcome
        assert first.score == other.score, trial.variant.point
    kernel = trials[0].variant.kernel
    theirs = replace(kernel, template=replace(kernel.template, author="llm"))
    found = carry_out(evaluate, replace(trials[0], variant=replace(trials[0].variant, kernel=theirs)), PATIENT)
    assert found.score == together[0].score
    assert found.text is not None
