"""Racing: a trial is measured on a few problems of each class first, and on the others only where it does well.

Classes are kinds of problems that favour different configurations, such as small, skinny, deep and large ones
(`classes` of operator.yaml). A race has two halts: after a typical problem of each class, and after two of
each. Trials of one kernel template race each other. At a halt, a trial in the better half of the earlier ones that
reached it goes on to all problems, unless other templates are far better. The others go on in those classes alone where
they are near the best of all templates, since the library chooses among variants by shape. Each VLEN contributes its
best in equal parts, so that a variant for one VLEN alone is kept. Where a trial was dropped from classes, the tuner
gets an extrapolated cost: in such a class its cost so far, times the ratio of complete trials' cost in the class to
their cost at that halt.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tensorop.measure import statistics
from tensorop.model.trial import Finished, Rung, Samples

EACH = (1, 2)  # problems of each class before a halt
PART = 2  # one trial in so many goes on from a halt, over all VLENs
NEAR = 1.3  # within this factor of the best of a class a trial goes on there
FAR = 1.5  # above this factor of the least cost no trial goes on in all classes

Costs = Mapping[str, Samples]  # by problem


@dataclass(frozen=True)
class Course:
    """The problems of a race, in the order of measurement."""

    work: Mapping[str, float]  # problem -> flops
    classes: Mapping[str, str]  # problem -> class
    shares: Mapping[str, float] = field(default_factory=dict)  # class -> weight in a score; empty: by problems
    weights: Mapping[str, float] = field(default_factory=dict)  # problem -> weight in its class; by default 1

    @staticmethod
    def of(work: Mapping[str, float], classes: Mapping[str, str], weights: Mapping[str, float] | None = None) -> Course:
        """A typical problem of each class, then a second one, then the others; cheap ones first.

        Typical is the cheapest that has at least half of the class's median work, by weight.
        """
        weights = weights or {}
        course = Course(dict(sorted(work.items(), key=lambda one: one[1])), classes, weights=weights)
        place: dict[str, int] = {}
        for names in course.parts(course.work).values():
            below = [*itertools.accumulate(weights.get(name, 1.0) for name in names)]
            least = work[names[bisect.bisect_left(below, below[-1] / 2)]] / 2
            typical = next(name for name in names if work[name] >= least)
            order = [typical, *(name for name in names if name != typical)]
            place |= {name: min(at, EACH[-1]) for at, name in enumerate(order)}
        ordered = {name: work[name] for name in sorted(course.work, key=place.__getitem__)}
        return Course(ordered, classes, weights=weights)

    @property
    def halts(self) -> tuple[int, ...]:
        """Numbers of problems after which trials halt."""
        parts = self.parts(self.work).values()
        counts = (sum(min(each, len(of_class)) for of_class in parts) for each in EACH)
        return tuple(dict.fromkeys(count for count in counts if 0 < count < len(self.work)))

    def parts(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Class -> its problems among these; without classes, all are in one."""
        found: dict[str, list[str]] = defaultdict(list)
        for name in names:
            found[self.classes.get(name, "")].append(name)
        return dict(found)

    def cost(self, found: Costs, names: Iterable[str], vlen: int = 0) -> float:
        """Weighted geometric mean of the cost for 1000 operations on these problems. vlen: bits; 0: over all VLENs"""
        some = [*names]
        weights = [self.weights.get(name, 1.0) for name in some] if self.weights else []
        return statistics.geomean((1e3 * found[name].at(vlen) / self.work[name] for name in some), weights)

    def score(self, found: Costs, beyond: Mapping[str, float] | None = None) -> float:
        """The cost for the tuner: the geometric mean for 1000 operations, each class with its weight.

        beyond: class -> factor on the cost of its measured problems, for a trial that was dropped from the others
        """
        logs, weights = 0.0, 0.0
        for name, of_class in self.parts(found).items():
            weight = self.shares[name] if self.shares else len(self.parts(self.work)[name])
            logs += weight * math.log(self.cost(found, of_class) * (beyond or {}).get(name, 1.0))
            weights += weight
        return math.exp(logs / weights)

    def rungs(self, alike: Sequence[Finished], ended: Sequence[Finished], vlens: Sequence[int]) -> tuple[Rung, ...]:
        """The halts of the next trial. Each has costs; a trial that reaches one of them goes on in all classes.

        The halts have no costs until a trial was measured on all problems.

        alike: trials of the same template; ended: all trials
        """
        everyone, own = ([one.score.per_problem for one in some if one.outcome.ok] for some in (ended, alike))
        if all(len(found) < len(self.work) for found in everyone):
            return tuple(Rung(count) for count in self.halts)
        return tuple(self._rung(count, everyone, own, vlens) for count in self.halts)

    def _rung(self, count: int, everyone: Sequence[Costs], own: Sequence[Costs], vlens: Sequence[int]) -> Rung:
        first, every, whole = list(self.work)[:count], self.parts(self.work), list(_on(everyone, [*self.work]))
        came = list(_on(own, first))
        bars: list[tuple[int, float]] = []
        for vlen in vlens if came else ():
            among = math.ceil(len(came) / (PART * len(vlens))) - 1
            least = min(self.cost(one, first, vlen) for one in _on(everyone, first))
            bars.append((vlen, min(sorted(self.cost(one, first, vlen) for one in came)[among], FAR * least)))
        of_class: list[tuple[str, int, float]] = []
        beyond: list[tuple[str, float]] = []
        for name, known in self.parts(first).items():
            tried = list(_on(everyone, known))
            of_class += ((name, vlen, NEAR * min(self.cost(one, known, vlen) for one in tried)) for vlen in vlens)
            ratios = (self.cost(one, every[name]) / self.cost(one, known) for one in whole)
            beyond.append((name, statistics.geomean(ratios)))
        return Rung(count, tuple(bars), tuple(beyond), tuple(of_class))

    def goes_on(self, rung: Rung, found: Costs, slower: float = 1.0) -> frozenset[str]:
        """The classes in which a trial with these costs is measured on further problems.

        slower: factor on the costs to reach
        """
        first = list(self.work)[: rung.problems]
        reached = found.keys() >= {*first} and any(self.cost(found, first, at) <= slower * bar for at, bar in rung.bars)
        if reached or not rung.of_class:
            return frozenset(self.parts(self.work))
        parts = {name: of_class for name, of_class in self.parts(first).items() if found.keys() >= {*of_class}}
        near = (
            name
            for name, at, bar in rung.of_class
            if name in parts and self.cost(found, parts[name], at) <= slower * bar
        )
        return frozenset(near)

    def due(self, going: Collection[str], found: Costs, rung: Rung | None) -> list[str]:
        """The problems to measure before a halt (None: until the end) of a trial that goes on in these classes."""
        ahead = list(self.work)[: rung.problems if rung else None]
        return [name for name in ahead if name not in found and self.classes.get(name, "") in going]


def _on(passed: Iterable[Costs], names: Sequence[str]) -> Iterator[Costs]:
    """The trials that were measured on all of these problems."""
    return (found for found in passed if found.keys() >= {*names})
