"""Both stages of a real search over the null runner: killed at any moment and resumed, it is the search it was."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tensorop import pipeline
from tensorop.author import offline
from tensorop.backends import reach
from tensorop.model.job import Job
from tensorop.model.trial import Stage
from tensorop.model.verdict import Seed
from tensorop.search.loop import conduct
from tensorop.search.task import JobContext, as_first_written
from tensorop.specs import operators, platforms
from tensorop.store import journal as store
from tensorop.store.journal import Journal
from tests.support.classes import extended

SHAPES = ((16, 16, 16), (64, 64, 64), (127, 129, 131))


def steps(folder, jobs=1):
    """Every event of all stages, for one dtype, with 24 trials."""
    operator = operators.load("gemm")
    target = reach(platforms.load("rvv"), "null")
    templates = tuple(offline.templates(operator.folder, operator.name))
    job = Job(
        operator="gemm", platform="rvv", dtypes=("f32",), shapes=SHAPES, budget_s=None, trials=24, jobs=jobs, out=folder
    )
    with Journal.open(folder, {}) as journal:
        passes = pipeline.passes(operator)
        task = JobContext(job, operator, target, passes, templates, journal, Seed.draw(0), folder / "work").task("f32")
        for part in passes:
            if part.plan and (plan := part.plan(task)):
                yield from conduct(task, Stage(part.name), plan)


def ended(folder):
    history = store.read(folder)
    return [
        (stage, str(end.trial.variant), end.score.cost) for stage in Stage for end in history.ended((stage, "f32", 0))
    ]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    list(steps(folder))
    trials = ended(folder)
    assert {stage for stage, *_ in trials} == {*Stage} - {Stage.FINALISTS, Stage.KERNELS}
    assert (
        len(trials) == len(set(trials)) == 23
    )  # one variant serves all there, so there are three specialisations, not four
    return trials


RUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import test_resume
for event in test_resume.steps(Path(sys.argv[1])):
    print(type(event).__name__, flush=True)
"""


@pytest.mark.parametrize("events", [extended([1]), extended([12]), extended([30]), [5, 33]])
def test_killed_and_resumed_is_the_search_it_was(tmp_path, uninterrupted, events):
    for count in events:
        command = [sys.executable, "-c", RUN, tmp_path, str(Path(__file__).parent)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            for _ in range(count):
                child.stdout.readline()
            os.kill(child.pid, signal.SIGKILL)
    assert len(ended(tmp_path)) < 24
    list(steps(tmp_path))
    assert ended(tmp_path) == uninterrupted


def test_fields_that_came_later_and_say_nothing_leave_keys_as_they_were() -> None:
    assert as_first_written([("name", "rvv"), ("fixed_vlen", 0), ("addresses", {})]) == {"name": "rvv", "fixed_vlen": 0}
    assert as_first_written([("addresses", {"tile": "uint64_t"})]) == {"addresses": {"tile": "uint64_t"}}


DIGESTS = """
from tensorop.backends import reach
from tensorop.search.task import digest
from tensorop.specs import catalog, operators, platforms
for name in catalog.names("platforms"):
    platform = platforms.load(name)
    print(name, digest(operators.load("gemm"), reach(platform, "null" if platform.device is None else None)))
"""


def test_every_process_computes_the_same_digest_of_a_platform():
    """It is a fact that a resumed run shares with its journal."""
    found = {
        subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert "cuda-sm90 " in found.pop()
