"""torch's attention as a baseline: it computes what is asked of it, and is compared like every baseline."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensorop.backends import reach
from tensorop.commands import libraries
from tensorop.model.case import Case
from tensorop.model.verdict import Seed
from tensorop.render import adapting
from tensorop.runners.session import Guest
from tensorop.specs import operators, platforms
from tensorop.verify import grid
from tensorop.verify.subject import Subject
from tests.support.commands import tensorop

torch = pytest.importorskip("torch")

OPERATOR = operators.load("attention")
SHAPES = "b1h4g2s40t72d24,b1h4g1s1t300d64,b2h2g2s130t130d32"


def compared(case: Case) -> bool:
    """Whether torch computes it: no ragged batch, no log-sum-exps; a NaN behind a mask is not left out there."""
    options = dict(case.problem.options)
    return not options["ragged"] and not options["lse"] and case.distribution != "special"


@pytest.mark.parametrize("dtype", ["f32"])
def test_it_computes_what_is_asked(dtype: str) -> None:
    target = reach(platforms.load("native"))
    tested = libraries.bring("torch", target, [dtype], 1)
    guest = Guest(
        libraries=(tested.library(target.runner, dtype),), environment=tested.environment(target.runner, 0, dtype)
    )
    program = adapting.program(target.platform, OPERATOR).path
    cases = OPERATOR.reference.quick_grid(dtype, OPERATOR.reference.CONTROL_TILE, np.random.default_rng(0))
    cases = [case for case in cases if compared(case)]
    assert len(cases) > 10
    verdict = grid.check(OPERATOR.reference, Subject(target.runner, program, guest), cases, 0, Seed.draw())
    assert verdict.ok, verdict.outcome


@pytest.mark.parametrize("layout", [0, 1, 2])
def test_it_is_compared(made: Path, layout: int) -> None:
    words = (
        "--against",
        "torch",
        "--dtype",
        "f32",
        "--shapes",
        SHAPES,
        "--layout",
        layout,
        "--fast",
        "--format",
        "json",
    )
    ended = tensorop("bench", made, *words, cwd=made)
    assert ended.status == 0, ended.stderr
    record = ended.json()
    assert record["baselines"]["torch"]["version"] == torch.__version__.partition("+")[0]
    assert "oneAPI" in record["baselines"]["torch"]["config"]
    assert [row["verdict"] for row in record["results"]] == [{"ours": "ok", "torch": "ok"}] * 3
    assert all(row["ratio"]["torch"] > 0 for row in record["results"])
