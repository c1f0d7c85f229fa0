"""Parts of a search that can be left out: the job makes its product without them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tensorop import pipeline
from tensorop.events import Done, Phase, Trying
from tensorop.model.job import Job
from tensorop.model.operator import STAGES
from tensorop.specs import operators
from tensorop.store import journal
from tests.support import plugins
from tests.support.operators import gemm


@pytest.mark.extended
def test_a_product_without_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several VLENs and a board model: else there would be nothing to leave out."""
    left_out = {"single-vlen", "robust"}
    operator = replace(gemm(), stages=tuple(name for name in STAGES if name not in left_out))
    monkeypatch.setattr(operators, "load", lambda *_: operator)
    _, platform, _, folder = plugins.small_blocks(tmp_path / "plugins", "rvv", plugins.TWO_VLENS)
    shapes = ((16, 16, 16), (33, 40, 9))
    job = Job("gemm", platform, ("f32",), shapes, trials=3, out=tmp_path / "out", plugins=(Path(folder),))
    told = list(pipeline.run(job))
    assert isinstance(told[-1], Done)
    assert told[-1].library is not None
    assert told[-1].library.is_file()
    seen = {e.stage for e in told if isinstance(e, Trying)} | {e.name for e in told if isinstance(e, Phase)}
    assert not left_out & seen
    assert {"micro", "blocking", "smallest", "probes", "verification"} <= seen
    assert "constants" not in {name for name, _ in journal.read(tmp_path / "out").notes}
