"""Tunables that the kernel alone says nothing of: whichever value it ranks first, each goes on to whole problems."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorop import pipeline
from tensorop.author import offline
from tensorop.backends.null import Backend, Nowhere
from tensorop.errors import SpecError
from tensorop.model.job import Job
from tensorop.model.trial import Stage
from tensorop.model.verdict import Seed
from tensorop.search import stages
from tensorop.search.loop import conduct
from tensorop.search.task import SHORTLISTED, JobContext
from tensorop.specs import platforms
from tensorop.store.journal import Journal
from tests.support.operators import gemm

operator = gemm()
templates = tuple(offline.templates(operator.folder, operator.name))
SHAPES = ((64, 64, 64), (1, 512, 512))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("platform", ["avx2", "avx512"])
@pytest.mark.parametrize("seed", range(4))
def test_a_matrix_read_once_gets_its_kernel_however_the_kernel_alone_ranks(
    platform: str, seed: int, tmp_path: Path
) -> None:
    """Little time: each template's first trials alone. What a kernel costs is the seed's."""
    job = Job("gemm", platform=platform, dtypes=("f32",), shapes=SHAPES, budget_s=0.01, jobs=1, out=tmp_path)
    target = Backend(platforms.load(platform), Nowhere(), seed=seed, failing=0.0)
    with Journal.open(tmp_path, {}, fresh=True) as journal:
        for template in templates:
            journal.template(template)
        passes = pipeline.passes(operator)
        task = JobContext(job, operator, target, passes, templates, journal, Seed.draw(0), tmp_path / "work").task(
            "f32"
        )
        list(conduct(task, Stage.MICRO, stages.micro(task)))
        kernels = task.shortlist
        found = {k.configuration["straight"] for k in kernels.values() if k.template.name == "dot"}
        assert found == {0, 1}
        ended = [f for f in task.passed(Stage.MICRO) if f.score.cost is not None]
        best = min(ended, key=lambda f: f.score.cost or 0.0).trial.variant.kernel.id
        assert next(iter(kernels)) == best  # time for several choices of packing goes to it
        tried = list(conduct(task, Stage.BLOCKING, stages.blocking(task)))
    assert tried
    assert len(kernels) <= SHORTLISTED


def test_an_unseen_tunable_is_one_of_its_own() -> None:
    text = (operator.folder / "kernels/dot.c.j2").read_text()
    wrong = text.replace("unseen: [straight]", "unseen: [crooked]")
    assert wrong != text
    with pytest.raises(SpecError, match="'unseen': expected names of its tunables, got 'crooked'"):
        offline.parse(wrong, operator="gemm", name="dot", author="offline")
