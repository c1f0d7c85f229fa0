"""One stage of one dtype's search."""

from __future__ import annotations

from dataclasses import dataclass

from tensorop.model.problem import Problem
from tensorop.model.trial import Stage
from tensorop.model.verdict import Seed

Group = tuple[Stage, str, int]  # stage, dtype, round: the journal's key of one search


@dataclass(frozen=True)
class StageRun:
    """The data on which an outcome depends in addition to trial and job; it is sent to worker processes."""

    dtype: str
    stage: Stage
    problems: tuple[Problem, ...]  # problems of each trial; a micro-kernel alone has its own problem
    seed: Seed  # for random inputs of verification
    round: int = 0
    # classes of problems, and the part of all problems that each has, if a trial is measured on some of them only
    shares: tuple[tuple[str, float], ...] = ()
    weights: tuple[tuple[str, float], ...] = ()  # label of a problem -> its weight in its class; empty: equal weights

    @property
    def group(self) -> Group:
        return (self.stage, self.dtype, self.round)
