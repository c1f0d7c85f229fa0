"""Racing: a trial is measured on a few problems of each class first, and on the others only if it does well.

Classes are kinds of problems that favour different configurations, such as small, skinny, deep and large ones
(`classes` of operator.yaml). A race has two halts: after the cheapest problem of each class, and after the two
cheapest. Trials of one kernel template race each other. At a halt, a trial goes on if it is in the best third of the
earlier trials that reached it, or near the best of all templates in some class, since the library chooses among
variants by shape. Each VLEN contributes its best in equal parts, so that a variant for one VLEN alone is kept. An
exempt trial, and the first of a template, goes on unless it is far behind the trials of all templates. The tuner gets
an extrapolated cost for a dropped trial: its cost so far, times the ratio of complete trials' whole cost to their cost
at that halt.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tensorop.measure import statistics
from tensorop.model.trial import Finished, Rung, Samples

EACH = (1, 2)  # problems of each class before a halt
PART = 3  # one in so many goes on from a halt, over all VLENs
NEAR = 1.02  # within this factor of the best of a class a trial goes on
HOPELESS = 4.0  # an exempt trial is dropped above this factor of the least cost, at every VLEN

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
        sizes = [[self.classes[name] for name in self.work].count(one) for one in set(self.classes.values())]
        counts = (sum(min(each, size) for size in sizes) for each in EACH)
        return tuple(dict.fromkeys(count for count in counts if 0 < count < len(self.work)))

    def cost(self, found: Costs, vlen: int) -> float:
        """Geometric mean of the cost for 1000 operations, at a VLEN."""
        return statistics.geomean(1e3 * samples.at(vlen) / self.work[name] for name, samples in found.items())

    def score(self, found: Costs, rung: Rung | None = None) -> float:
        """The cost for the tuner: the geometric mean for 1000 operations. rung: the halt where the trial was dropped"""
        number = Counter(self.classes[name] for name in found if self.shares)
        weights = {
            name: self.shares[self.classes[name]] / number[self.classes[name]] if self.shares else 1.0 for name in found
        }
        logs = (weight * math.log(1e3 * found[name].value / self.work[name]) for name, weight in weights.items())
        return math.exp(sum(logs) / sum(weights.values())) * (rung.beyond if rung else 1.0)

    def by_class(self, found: Costs) -> dict[str, dict[str, Samples]]:
        parts: dict[str, dict[str, Samples]] = defaultdict(dict)
        for name, samples in found.items():
            parts[self.classes[name]][name] = samples
        return parts

    def rungs(
        self, alike: Sequence[Finished], ended: Sequence[Finished], exempt: bool, vlens: Sequence[int]
    ) -> tuple[Rung, ...]:
        """The halts of the next trial, with the costs of which it must reach one at each.

        There is no cost to reach until a trial was measured on all problems.

        alike: trials of the same template; ended: all trials
        exempt: drop the trial only if it is HOPELESS; holds for all until a trial of the template was measured
        completely
        """
        everyone, complete = self._passed(ended)
        passed, whole = self._passed(alike)
        if exempt or not whole:
            exempt = True
            passed, whole = everyone, complete
        if not whole:
            return tuple(Rung(count) for count in self.halts)
        made = []
        for count in self.halts:
            came = list(self._so_far(passed, count))
            among = math.ceil(len(came) / (PART * len(vlens))) - 1
            costs = {vlen: sorted(self.cost(found, vlen) for found in came) for vlen in vlens}
            bars = tuple((vlen, HOPELESS * of[0] if exempt else of[among]) for vlen, of in costs.items())
            best: dict[tuple[str, int], float] = {}
            for found in self._so_far(everyone, count):
                for name, part in self.by_class(found).items():
                    for vlen in vlens:
                        best[name, vlen] = min(best.get((name, vlen), math.inf), NEAR * self.cost(part, vlen))
            first = list(self.work)[:count]
            ratios = [self.score(found) / self.score({n: found[n] for n in first}) for found in whole]
            made.append(Rung(count, bars, statistics.geomean(ratios), tuple((*at, bar) for at, bar in best.items())))
        return tuple(made)

    def goes_on(self, rung: Rung, found: Costs, slower: float = 1.0) -> bool:
        """Whether a trial with these costs is measured on further problems. slower: factor on the costs to reach"""
        if not rung.bars or any(self.cost(found, vlen) <= slower * bar for vlen, bar in rung.bars):
            return True
        parts = self.by_class(found)
        return any(self.cost(parts[name], vlen) <= slower * bar for name, vlen, bar in rung.of_class if name in parts)

    def _passed(self, ended: Sequence[Finished]) -> tuple[list[Costs], list[Costs]]:
        """Costs of trials that passed, and of those among them that were measured on all problems."""
        passed = [finished.score.per_problem for finished in ended if finished.outcome.ok]
        return passed, [found for found in passed if len(found) == len(self.work)]

    def _so_far(self, passed: Sequence[Costs], count: int) -> Iterator[Costs]:
        """The costs on the first problems, of trials that were measured on so many."""
        first = list(self.work)[:count]
        return ({name: found[name] for name in first} for found in passed if len(found) >= count)
