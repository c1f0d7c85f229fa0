"""A search over templates that come while it runs: an author adds one by what was scored so far."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tensorop import pipeline
from tensorop.author import offline
from tensorop.job import authoring
from tensorop.model.job import Job
from tensorop.model.kernel import KernelTemplate
from tensorop.model.stage_run import Group
from tensorop.model.trial import Finished, Stage
from tensorop.store import journal as store
from tests.support.operators import gemm

operator = gemm()
TEMPLATES = {template.name: template for template in offline.templates(operator.folder, operator.name)}
AFTER = 7  # trials of the first dtype
F32: Group = (Stage.MICRO, "f32", 0)


class Author:
    """Makes one template of whichever was best after some trials; forgets everything when its process ends."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[float | None]]] = []

    def __call__(self, dtype: str, ended: Sequence[Finished], spent: float) -> list[KernelTemplate]:
        self.told.append((dtype, [finished.score.cost for finished in ended]))
        if dtype != "f32" or len(ended) < AFTER:
            return []
        passed = [finished for finished in ended[:AFTER] if finished.score.cost is not None]  # one, whoever leads later
        best = min(passed, key=lambda finished: finished.score.cost or 0.0).trial.variant.template
        text = f"{best.text.rstrip()} /* once more */\n"
        return [replace(best, name="once-more", author="llm", text=text, parent=best.digest)]


def run(folder: Path, jobs: int, author: Author | None, last: int = 0) -> None:
    """last: the number of the event after which the process kills itself."""
    authoring.reviser = lambda *_: author  # type: ignore[assignment]
    shapes = ((16, 16, 16), (64, 64, 64))
    job = Job("gemm", "generic", ("f32", "f64"), shapes, runner="null", trials=100, jobs=jobs, out=folder)
    for count, _ in enumerate(pipeline.run(job), 1):
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authoring, "reviser", authoring.reviser)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody killed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(authoring, "reviser", authoring.reviser)
        run(folder := tmp_path_factory.mktemp("whole"), 1, Author())
    return folder


def tried(folder: Path) -> list[tuple[str, str, str, float | None]]:
    ends = [end for end in store.read(folder).replay() if isinstance(end, Finished)]
    return [(end.trial.stage.value, end.trial.dtype, str(end.trial.variant), end.score.cost) for end in ends]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.extended
def test_a_template_that_comes_late_gets_its_first_trials_at_once(tmp_path: Path, jobs: int) -> None:
    author = Author()
    run(tmp_path, jobs, author)
    history = store.read(tmp_path)
    names = [end.trial.variant.template.name for end in history.ended(F32)]
    ((late, after),) = history.joined(F32)
    assert AFTER <= after < AFTER + jobs
    assert late.parent in {template.digest for template in TEMPLATES.values()}
    assert names[after] == "once-more"
    assert "once-more" not in names[:after]
    # told what was scored so far, in order, each time before something new is tried
    costs = [end.score.cost for end in history.ended(F32)]
    told = [scores for dtype, scores in author.told if dtype == "f32"]
    assert told[0] == []
    assert all(scores == costs[: len(scores)] for scores in told)
    # the next dtype has it from the start, and nobody joins there
    assert "once-more" in [end.trial.variant.template.name for end in history.ended((Stage.MICRO, "f64", 0))]
    assert history.joined((Stage.MICRO, "f64", 0)) == []


def test_a_run_that_goes_on_needs_no_author_for_what_it_has(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "again")
    run(tmp_path / "again", 1, None)
    assert tried(tmp_path / "again") == tried(whole)


RUN = """
import os, signal, sys
from pathlib import Path
from tests.nothing import test_joining
for count in sys.argv[2:]:
    if not os.fork():
        test_joining.run(Path(sys.argv[1]), 1, test_joining.Author(), int(count))
        os._exit(1)
    assert os.wait()[1] == signal.SIGKILL
"""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("events", [[8], [16, 6], [19, 40], [60, 9]])
def test_killed_and_resumed_has_the_same_arms_in_the_same_order(whole: Path, tmp_path: Path, events: list[int]) -> None:
    command = [sys.executable, "-c", RUN, str(tmp_path / "killed"), *map(str, events)]
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True)
    assert len(tried(tmp_path / "killed")) < len(tried(whole))
    run(tmp_path / "killed", 1, Author())
    assert tried(tmp_path / "killed") == tried(whole)
    assert store.read(tmp_path / "killed").late == store.read(whole).late
