"""Nowhere: costs are made of the point alone, for searches without a compiler or a target."""

from __future__ import annotations

from dataclasses import dataclass

from tensorop.model.means import Means
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.trial import Outcome, Samples
from tensorop.runners import null
from tensorop.target import Target


@dataclass(frozen=True)
class Backend(Target):
    runner: null.Null

    name = "null"
    unit = shown = null.UNIT
    speed = f"flop/{null.UNIT}"
    means = Means(search=3e9, every_layout=5e7)
    side_by_side = True
    pretends = True

    @classmethod
    def start(cls, platform: Platform, address: str) -> null.Null:
        return null.Null()

    def pretend(self, point: Point, problem: str, work: float) -> tuple[Outcome, Samples | None]:
        return self.runner.pretend(point, problem, work)
