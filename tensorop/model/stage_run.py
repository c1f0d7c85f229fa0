"""One stage of one dtype's search."""

from __future__ import annotations

from dataclasses import dataclass

from tensorop.model.problem import Problem
from tensorop.model.trial import Stage
from tensorop.model.verdict import Seed

Group = tuple[Stage, str, int]  # stage, dtype, round: how the journal names one search


@dataclass(frozen=True)
class StageRun:
    """All that an outcome depends on beside the trial and what the job names; another process gets it as it is."""

    dtype: str
    stage: Stage
    problems: tuple[Problem, ...]  # that trials are measured on; a micro-kernel alone has one of its own
    seed: Seed  # what verification draws from
    round: int = 0

    @property
    def group(self) -> Group:
        return (self.stage, self.dtype, self.round)
