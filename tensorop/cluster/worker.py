"""Code that runs in a worker: its fingerprint, which decides on its admission, and trials."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tensorop import __version__, paths
from tensorop.backends import reach
from tensorop.errors import JobError
from tensorop.model.job import Job
from tensorop.model.operator import Operator
from tensorop.model.point import Point
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Kind, Limit, Outcome, Trial, TrialResult
from tensorop.process import children
from tensorop.search.task import digest
from tensorop.space import problems
from tensorop.specs import operators, platforms
from tensorop.target import Target
from tensorop.toolchain import programs
from tensorop.trial import confinement
from tensorop.trial.evaluator import Evaluator
from tensorop.trial.trial import side_by_side

if TYPE_CHECKING:
    from distributed import Worker

_OK = Outcome(Kind.OK)


@dataclass(frozen=True)
class Fingerprint:
    """Everything in a process on which its results depend."""

    versions: Mapping[str, str] = field(default_factory=dict)  # name -> version, for tensorop and its tools
    costs: tuple[float, ...] = ()  # cost of a fixed kernel at each VLEN
    lacks: tuple[str, ...] = ()  # parts of the jail that its processes lack

    def unlike(self, mine: Fingerprint) -> str:
        """The reason why a process with the fingerprint `mine` cannot send trials there; "" if it can."""
        for name, version in mine.versions.items():
            if (theirs := self.versions.get(name, "absent")) != version:
                return f"its {name} is {theirs}, here it is {version}"
        return "" if self.costs == mine.costs else f"a fixed kernel costs {self.costs} there, {mine.costs} here"


def fingerprint(job: Job) -> Fingerprint:
    """This process's fingerprint for a job. Raises TensoropError if it cannot run the job at all."""
    operator, target = _loaded(job)
    target.bring(job.offline or None)
    versions = {
        "tensorop": f"{__version__} ({_code()})",
        **target.tools,
        "platform or operator": digest(operator, target),
    }
    return Fingerprint(versions, tuple(_costs(target)), () if target.simulated else confinement.missing(target))


def simulated(job: Job) -> bool:
    """Whether the job's target executes no program."""
    return _loaded(job)[1].simulated


def trials(job: Job, run: StageRun, several: Sequence[Trial], limit: Limit) -> list[TrialResult]:
    """Runs trials, in company if they can be. Raises JobError with the worker's address for faults of its own."""
    try:
        return list(side_by_side(_evaluator(job, run), 1, several, limit))
    except (OSError, children.Cancelled) as error:
        raise JobError(f"worker {_here().address} stopped: {error or 'it is shutting down'}") from None
    except JobError as error:
        raise JobError(f"worker {_here().address}: {error.message}", hint=error.hint) from None


def _here() -> Worker:
    from distributed import get_worker

    return get_worker()


def _loaded(job: Job) -> tuple[Operator, Target]:
    platform = platforms.load(job.platform, job.plugins)
    operator = problems.led_by(operators.load(job.operator, job.plugins), job.layout)
    return operator, reach(platform, job.runner, job.plugins)


@functools.lru_cache(maxsize=2)  # searches run one after the other; each keeps its operands in memory
def _evaluator(job: Job, run: StageRun) -> Evaluator:
    operator, target = _loaded(job)
    return Evaluator(operator, target, run, Path(_here().local_directory) / "tensorop")


@functools.cache
def _code() -> str:
    """A hash of tensorop's own files, since checkouts of one version differ."""
    native = paths.native_dir()
    total = sha256()
    for file in sorted([*native.parent.rglob("*.py"), *(path for path in native.rglob("*") if path.is_file())]):
        if "__pycache__" not in file.parts:
            total.update(f"{file.relative_to(native.parent)}\0".encode() + file.read_bytes())
    return total.hexdigest()[:12]


def _costs(target: Target) -> Iterator[float]:
    if target.simulated:
        _, samples = target.simulate(Point(()), "papers", 1.0)
        yield samples.value if samples else 0.0
        return
    found = target.sample_costs([programs.SAMPLE_CALL], "the kernel by which workers are admitted")
    yield from (found[0][at].value for at in target.vlens)
