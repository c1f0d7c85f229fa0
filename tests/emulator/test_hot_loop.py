"""A profile of a micro-kernel: stalls by instruction add up to the call's, and cost nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tensorop.measure.request import MeasureRequest
from tensorop.runners.protocol import Entry
from tensorop.trial.evaluator import Prepared
from tests.support import drawn_kernels


@pytest.mark.one_in(2)
@pytest.mark.parametrize("platform", ["cortex-a53", "spacemit-k1", "cortex-a76"])
def test_stalls_of_instructions_add_up(platform: str, tmp_path: Path) -> None:
    evaluate = drawn_kernels.evaluator(platform, tmp_path)
    trial = next(t for t in drawn_kernels.drawn(evaluate, 20, seed=5) if t.variant.template.name == "outer")
    built = evaluate.prepare(trial)
    assert isinstance(built, Prepared)
    vlen = evaluate.target.vlens[0]
    problem = evaluate.micro_problem(trial.variant, vlen)
    call = evaluate.call(problem, trial.variant, vlen)
    plain = MeasureRequest(built.program, [call], [Entry(1)], vlen=vlen, warm=(1,))
    (counted,) = evaluate.target.measure(plain)  # type: ignore[misc]
    (profiled,) = evaluate.target.measure(replace(plain, profile=True))  # type: ignore[misc]
    assert counted.profile == ()
    assert profiled.samples == counted.samples
    known = counted.samples.counters
    for cause in {cause for one in profiled.profile for cause in one.stalls}:
        whole = sum(one.stalls.get(cause, 0.0) for one in profiled.profile)
        assert whole == pytest.approx(known[f"stalls.{cause}"], rel=0.02, abs=2.0)
    executed = sum(one.runs for one in profiled.profile)
    assert known["instructions"] - 8 <= executed <= known["instructions"]


def test_the_hottest_loop_multiplies(tmp_path: Path) -> None:
    evaluate = drawn_kernels.evaluator("cortex-a53", tmp_path)
    trial = next(t for t in drawn_kernels.drawn(evaluate, 20, seed=5) if t.variant.template.name == "outer")
    built = evaluate.prepare(trial)
    assert isinstance(built, Prepared)
    loop = evaluate.hot_loop(trial, built)
    assert loop is not None
    assert loop.part > 0.5
    assert sum("fmla" in one.text for one in loop.instructions) >= int(trial.variant.point["nr"])
