"""What all trials of one search share."""

from __future__ import annotations

from dataclasses import dataclass

from tensorop.model.job import Job
from tensorop.model.problem import Problem
from tensorop.model.trial import Stage
from tensorop.model.verdict import Seed


@dataclass(frozen=True)
class Conditions:
    """All that a trial's outcome depends on beside the trial: by name what is in files (operator, platform, backend),
    so that another process can carry it out. problems: what is measured but with kernels alone."""

    job: Job
    dtype: str
    stage: Stage
    problems: tuple[Problem, ...]
    seed: Seed
