"""The dry-run backend: computes a pretended cost, or a failure, from the point only.

It serves searches, journals and reports without a compiler or a target. Its costs are never shown as measurements.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NoReturn

from tensorop.errors import JobError
from tensorop.model.budget import Budgets
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.runners.base import Launch, Runner
from tensorop.target import Target


def _unit(*words: object) -> float:
    """A number in [0, 1): a hash of the words."""
    digest = hashlib.sha256("\0".join(map(str, words)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


class Nowhere(Runner):
    name = "null"
    emulated = True

    def place(self, program: Path) -> str:
        return str(program)

    def command(self, launch: Launch) -> NoReturn:
        raise JobError(
            "--runner null is a dry run and executes no program", hint="use --runner native or --runner qemu"
        )


@dataclass(frozen=True)
class Backend(Target):
    """The target of a dry run."""

    seed: int = 0  # another seed gives other costs
    failing: float = 0.03  # share of points that end as a crash or a wrong result

    name = "null"
    unit = shown = "pretended"
    speed = "flop/pretended"
    budgets = Budgets(problem_flops=3e9, every_layout_flops=5e7, flops_per_unit=1e8)
    side_by_side = True
    simulated = True
    ignores: ClassVar[Mapping[str, str]] = {
        "threads": "a dry run compares nothing",
        "unsafe": "a dry run executes no kernel",
    }

    @classmethod
    def start(cls, platform: Platform, address: str) -> Nowhere:
        return Nowhere()

    @property
    def tools(self) -> dict[str, str]:
        return {}

    def simulate(self, point: Point, problem: str, work: float = 1.0) -> tuple[Outcome, Samples | None]:
        """A pretended outcome and cost.

        Each numeric tunable has an optimum; the cost grows with the square of the distance to it, in log2. Each value
        of a text tunable adds a fixed cost. The sum is multiplied by `work`.
        """
        if _unit(self.seed, "fails", point.to_json()) < self.failing:
            kind = Kind.CRASH if _unit(self.seed, "how", point.to_json()) < 0.5 else Kind.WRONG
            return Outcome(kind, "verify", "pretended"), None
        cost = 1.0
        for name, value in point.items():
            if isinstance(value, int):
                best = 1 + 4 * _unit(self.seed, name, "best")
                cost += 0.2 * (math.log2(abs(value) + 1) - best) ** 2
            else:
                cost += 0.5 * _unit(self.seed, name, value)
        cost *= work * (1 + 0.1 * _unit(self.seed, problem))
        return Outcome(Kind.OK, "measure"), Samples(self.unit, cost, cost * 0.99, cost * 1.01)
