"""Which draft gets the next trial.

Every arm first gets a few trials. Then the arm with the highest index is taken, in the manner of UCB1 (Auer,
Cesa-Bianchi, Fischer 2002): how good its best trial is against the best of all, as a ratio of costs in logarithm,
plus a bonus that falls with its trials. The best of an arm counts, not its mean, for only the winner is kept.
Every choice depends on the told history alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

FLOOR = 4
BONUS = 0.15  # an arm 15 % slower than the best, tried as often as sqrt(log total) allows, still gets its turn
FAILURE = 2.0  # an arm whose trials all failed counts as this many times the best cost


@dataclass
class _Arm:
    trials: int = 0
    best: float | None = None
    exhausted: bool = False


class Bandit:
    """Spreads a budget over named arms.

    floor: by arm, trials it gets before better ones are preferred; least: of these, those that come before any other
    arm's further ones.
    """

    def __init__(
        self, arms: Iterable[str], floor: Mapping[str, int] | None = None, least: Mapping[str, int] | None = None
    ) -> None:
        self._arms = {name: _Arm() for name in arms}
        self._floor = floor or {}
        self._least = least or {}

    def choose(self, asked: Mapping[str, int] | None = None, dry: Collection[str] = ()) -> str | None:
        """The arm to try next; None when every arm is exhausted. Ties go to the first one.

        asked: by arm, trials that were asked and have not ended; they count for an arm's first few.
        dry: arms that have no point until those have ended.
        """
        asked = asked or {}
        live = {name: arm for name, arm in self._arms.items() if not arm.exhausted and name not in dry}
        if not live:
            return None
        tried = {name: arm.trials + asked.get(name, 0) for name, arm in live.items()}
        for wanted in ({name: self._least.get(name, 0) for name in live}, {n: self._floor.get(n, FLOOR) for n in live}):
            if lacking := [name for name in live if tried[name] < wanted[name]]:
                return min(lacking, key=lambda name: tried[name])
        return max(live, key=lambda name: self._index(live[name]))

    def owed(self, asked: Mapping[str, int] | None = None) -> int:
        """How many trials arms that have points still lack of their least number."""
        had = {name: arm.trials + (asked or {}).get(name, 0) for name, arm in self._arms.items() if not arm.exhausted}
        return sum(max(0, self._least.get(name, 0) - trials) for name, trials in had.items())

    def tell(self, name: str, cost: float | None) -> None:
        """A trial of that arm ended, with None when it failed."""
        arm = self._arms[name]
        arm.trials += 1
        if cost is not None:
            arm.best = cost if arm.best is None else min(arm.best, cost)

    def exhaust(self, name: str) -> None:
        """That arm has no point left."""
        self._arms[name].exhausted = True

    def trials(self) -> dict[str, int]:
        return {name: arm.trials for name, arm in self._arms.items()}

    def _index(self, arm: _Arm) -> float:
        bests = [other.best for other in self._arms.values() if other.best is not None]
        total = sum(other.trials for other in self._arms.values())
        merit = 0.0 if not bests else -math.log(arm.best / min(bests) if arm.best is not None else FAILURE)
        return merit + BONUS * math.sqrt(math.log(total + 1) / max(1, arm.trials))
