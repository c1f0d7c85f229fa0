"""Racing: a trial is measured on a few problems of each class first, and on the others only where it does well.

Classes are kinds of problems that favour different configurations, such as small, skinny, deep and large ones
(`classes` of operator.yaml). A race has two halts: after the cheapest problem of each class, and after the two
cheapest. Trials of one kernel template race each other. At a halt, a trial in the better half of the earlier ones that
reached it goes on to all problems, unless other templates are far better. The others go on in those classes alone where
they are near the best of all templates, since the library chooses among variants by shape. Each VLEN contributes its
best in equal parts, so that a variant for one VLEN alone is kept.
Where a trial was dropped from classes, the tuner gets an extrapolated cost: in such a class its cost so far, times the
ratio of complete trials' cost in the class to their cost at that halt.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tensorop.measure import statistics
from tensorop.model.trial import Finished, Rung, Samples

EACH = (1, 2)  # problems of each class before a halt
PART = 2  # one in so many goes on from a halt, over all VLENs
NEAR = 1.3  # within this factor of the best of a class a trial goes on there
FAR = 1.5  # above this factor of the least cost no trial goes on in all classes

Costs = Mapping[str, Samples]  # by problem


@dataclass(frozen=True)
class Course:
    """The problems of a race, in the order of measurement."""

    work: Mapping[str, float]  # problem -> flops
    classes: Mapping[str, str]  # problem -> class
    shares: Mapping[str, float] = field(default_factory=dict)  # class -> its weight in a score; empty: of its problems

    @staticmethod
    def of(work: Mapping[str, float], classes: Mapping[str, str]) -> Course:
        """One problem of each class, then a second one, then the others; cheap ones first."""
        cheapest = sorted(work, key=lambda name: work[name])
        seen: dict[str, int] = defaultdict(int)
        place: dict[str, int] = {}
        for name in cheapest:
            place[name] = min(seen[classes[name]], EACH[-1])
            seen[classes[name]] += 1
        return Course({name: work[name] for name in sorted(cheapest, key=lambda name: place[name])}, classes)

    @property
    def halts(self) -> tuple[int, ...]:
        """Numbers of problems after which trials halt."""
        sizes = [len(names) for names in self.parts(self.work).values()]
        counts = (sum(min(each, size) for size in sizes) for each in EACH)
        return tuple(dict.fromkeys(count for count in counts if 0 < count < len(self.work)))

    def parts(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Class -> its problems among these; without classes, all are in one."""
        found: dict[str, list[str]] = defaultdict(list)
        for name in names:
            found[self.classes.get(name, "")].append(name)
        return dict(found)

    def cost(self, found: Costs, names: Iterable[str], vlen: int) -> float:
        """Geometric mean of the cost for 1000 operations on these problems, at a VLEN."""
        return statistics.geomean(1e3 * found[name].at(vlen) / self.work[name] for name in names)

    def score(self, found: Costs, beyond: Mapping[str, float] | None = None) -> float:
        """The cost for the tuner: the geometric mean for 1000 operations, each class with its weight.

        beyond: class -> factor on the cost of its measured problems, for a trial that was dropped from the others
        """
        weights = self.shares or {name: len(of_class) for name, of_class in self.parts(self.work).items()}
        logs = {
            name: math.log(self._mean(found, of_class) * (beyond or {}).get(name, 1.0))
            for name, of_class in self.parts(found).items()
        }
        return math.exp(sum(weights[name] * log for name, log in logs.items()) / sum(weights[name] for name in logs))

    def rungs(self, alike: Sequence[Finished], ended: Sequence[Finished], vlens: Sequence[int]) -> tuple[Rung, ...]:
        """The halts of the next trial, with the costs of which it must reach one at each.

        There is no cost to reach until a trial was measured on all problems.

        alike: trials of the same template; ended: all trials
        """
        everyone, own = ([one.score.per_problem for one in some if one.outcome.ok] for some in (ended, alike))
        if all(len(found) < len(self.work) for found in everyone):
            return tuple(Rung(count) for count in self.halts)
        return tuple(self._rung(count, everyone, own, vlens) for count in self.halts)

    def _rung(self, count: int, everyone: Sequence[Costs], own: Sequence[Costs], vlens: Sequence[int]) -> Rung:
        first, every = list(self.work)[:count], self.parts(self.work)
        whole = list(_on(everyone, list(self.work)))
        came = list(_on(own, first))
        among = math.ceil(len(came) / (PART * len(vlens))) - 1
        bars: list[tuple[int, float]] = []
        for vlen in vlens if came else ():
            least = min(self.cost(one, first, vlen) for one in _on(everyone, first))
            bars.append((vlen, min(sorted(self.cost(one, first, vlen) for one in came)[among], FAR * least)))
        of_class: list[tuple[str, int, float]] = []
        beyond: list[tuple[str, float]] = []
        for name, so_far in self.parts(first).items():
            tried = list(_on(everyone, so_far))
            of_class += ((name, vlen, NEAR * min(self.cost(one, so_far, vlen) for one in tried)) for vlen in vlens)
            ratios = (self._mean(one, every[name]) / self._mean(one, so_far) for one in whole)
            beyond.append((name, statistics.geomean(ratios)))
        return Rung(count, tuple(bars), tuple(beyond), tuple(of_class))

    def goes_on(self, rung: Rung, found: Costs, slower: float = 1.0) -> frozenset[str]:
        """The classes in which a trial with these costs is measured on further problems.

        slower: factor on the costs to reach
        """
        first = list(self.work)[: rung.problems]
        whole = all(name in found for name in first)
        if not rung.of_class or (whole and any(self.cost(found, first, v) <= slower * bar for v, bar in rung.bars)):
            return frozenset(self.parts(self.work))
        parts = {name: one for name, one in self.parts(first).items() if all(problem in found for problem in one)}
        return frozenset(
            name
            for name, vlen, bar in rung.of_class
            if name in parts and self.cost(found, parts[name], vlen) <= slower * bar
        )

    def due(self, going: Collection[str], found: Costs, rung: Rung | None) -> list[str]:
        """The problems to measure before a halt (None: until the end) of a trial that goes on in these classes."""
        ahead = list(self.work)[: rung.problems if rung else None]
        return [name for name in ahead if name not in found and self.classes.get(name, "") in going]

    def _mean(self, found: Costs, names: Iterable[str]) -> float:
        """As `cost`, over all VLENs."""
        return statistics.geomean(1e3 * found[name].value / self.work[name] for name in names)


def _on(passed: Iterable[Costs], names: Sequence[str]) -> Iterator[Costs]:
    """The trials that were measured on all of these problems."""
    return (found for found in passed if all(name in found for name in names))
