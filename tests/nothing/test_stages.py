"""An operator's list of the parts of its search: what may stand there, and that most may be left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tensorop import pipeline
from tensorop.errors import SpecError
from tensorop.events import Done, Trying
from tensorop.model.job import Job
from tensorop.model.operator import NEEDED, STAGES
from tensorop.model.trial import Stage
from tensorop.specs import operators
from tests.support.classes import some
from tests.support.operators import gemm

SHAPES = ((16, 16, 16), (256, 256, 256), (1024, 1024, 1024))


def test_every_part_has_its_name() -> None:
    assert tuple(pipeline.PASSES) == STAGES == gemm().stages
    assert [name for name, one in pipeline.PASSES.items() if one.plan] == [
        stage.value
        for stage in Stage
        if stage is not Stage.KERNELS  # which jobs for devices have
    ]


@pytest.mark.parametrize(
    "stages",
    ["[micro, blocking, finalist]", "[micro]", "[blocking, micro]", "[micro, blocking, probes, finalists]", "[]"],
)
def test_an_unknown_or_misplaced_part_is_refused(tmp_path: Path, stages: str) -> None:
    folder = tmp_path / "templates" / "gemm"
    folder.mkdir(parents=True)
    text = (gemm().folder / "operator.yaml").read_text()
    before = f"stages: [{', '.join(STAGES)}]"
    assert before in text
    (folder / "operator.yaml").write_text(text.replace(before, f"stages: {stages}"))
    with pytest.raises(
        SpecError, match=r"operator\.yaml: key 'stages': expected micro, blocking and any of finalists, "
    ):
        operators.load("gemm", (tmp_path,))


@pytest.mark.parametrize(
    "left_out", some([name for name in STAGES if name not in NEEDED], lambda name: name == "finalists")
)
def test_a_job_without_a_part_does_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_out: str) -> None:
    operator = replace(gemm(), stages=tuple(name for name in STAGES if name != left_out))
    monkeypatch.setattr(operators, "load", lambda *_: operator)
    job = Job("gemm", "rvv", ("f32",), SHAPES, runner="null", trials=30, out=tmp_path)
    told = list(pipeline.run(job))
    assert isinstance(told[-1], Done)
    tried = {event.stage for event in told if isinstance(event, Trying)}
    assert {"micro", "blocking"} < tried
    assert left_out not in tried
    assert {"single-vlen", "smallest"} - {left_out} <= tried
