"""The judge under QEMU: every control is refused there too, the one that is right at one VLEN among them."""

from __future__ import annotations

import pytest

from tensorop.model.kernel import Artifact
from tensorop.model.trial import Kind
from tensorop.model.verdict import Seed
from tensorop.specs.platforms import load
from tensorop.verify import grid
from tensorop.verify.controls import controls, run_controls
from tensorop.verify.subject import Subject
from tests.support.operators import builder, gemm, runner_of

operator = gemm()


@pytest.mark.parametrize("name", ["rvv", "neon"])
@pytest.mark.parametrize("dtype", operator.dtypes)
def test_every_control_ends_as_it_must(name: str, dtype: str) -> None:
    platform = load(name)
    results = run_controls(operator, platform, runner_of(platform), builder(platform), Seed.draw(), [dtype])
    assert all(r.as_expected for r in results)
    refused = {r.name for r in results if not r.outcome.ok}
    assert {c.name for c in controls(operator)} - refused == {"honest"} | (set() if name == "rvv" else {"one_vlen"})


@pytest.mark.parametrize("dtype", operator.dtypes)
def test_one_vlen_is_not_enough(dtype: str) -> None:
    """The control passes where it is right and is found at the next VLEN, which the message names."""
    platform = load("rvv")
    (control,) = (c for c in controls(operator) if c.name == "one_vlen")
    built = builder(platform)(control.source(), (f"-DTENSOROP_DTYPE_{dtype}=1",))
    assert isinstance(built, Artifact)
    tiles = dict.fromkeys(platform.verify_vlens, operator.reference.CONTROL_TILE)
    quick = grid.quick(operator, dtype, tiles)
    subject = Subject(runner_of(platform), built.path)
    verdicts = grid.verify(operator, subject, quick, platform.verify_vlens, Seed.draw())
    assert [(v.vlen, v.ok) for v in verdicts] == [(128, True), (256, False)]
    assert "VLEN 256" in grid.outcome(verdicts).message
    (alone,) = grid.verify(operator, subject, quick, [512], Seed.draw())
    assert alone.outcome.kind is Kind.WRONG
