"""What a search spreads its budget over: arms, one a template or a kernel, of which more may come while it runs.

Every arm first gets a few trials. Then the arm with the highest index is taken, in the manner of UCB1 (Auer,
Cesa-Bianchi, Fischer 2002): how good its best trial is against the best of all, as a ratio of costs in logarithm,
plus a bonus that falls with its trials. The best of an arm counts, not its mean, for only the winner is kept.
Every choice depends on the trials so far alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tensorop.model.kernel import Kernel, KernelTemplate
from tensorop.model.point import Point
from tensorop.model.stage_run import Group
from tensorop.model.trial import Finished, Kind
from tensorop.space import Space
from tensorop.space.strategy import Strategy
from tensorop.store.journal import Journal
from tensorop.trial.trial import FIRST_S, Limit

FLOOR = 4
BONUS = 0.15  # an arm 15 % slower than the best, tried as often as sqrt(log total) allows, still gets its turn
FAILURE = 2.0  # an arm whose trials all failed counts as this many times the best cost
FACTOR = 10.0  # of the median of what trials took that passed: what the next may take
LEAST_S = 10.0  # a machine stumbles, and of points that share a build one makes it
STRIKES = 2  # trials of a template that ran into their limit: it is given up

# What writes further templates: of a dtype and its trials so far, in their order, it gives those that it has by now.
# They have passed the gates, and their `parent` names what they were made of.
Revise = Callable[[str, Sequence[Finished]], Sequence[KernelTemplate]]


@dataclass(frozen=True)
class Arm:
    """Variants that one tuner searches, of the budget all of a stage share."""

    kernel: Kernel  # whose blockings they are; without a configuration where these are searched (`Stage.of_kernels`)
    space: Space  # legal points of what is searched
    first: Sequence[Point] = ()  # to try before the tuner's own, and before better arms are preferred
    least: int = 0  # trials it gets however many seconds they take; a budget of trials still holds
    exempt: Sequence[Point] = ()  # measured on all problems unless far behind, where others race


class FixedArms:
    """Where a search's arms come from: all are there from the start."""

    def __init__(self, arms: Sequence[Arm]) -> None:
        self._arms = arms

    def more(self, ended: Sequence[Finished], live: bool) -> Sequence[Arm]:
        """Arms that join now. Asked before the first trial, and before each further one whose arm is open. ended: the
        trials so far, in their order; live: False while those of earlier processes are replayed."""
        found, self._arms = self._arms, ()
        return found


class GrowingArms(FixedArms):
    """These arms, and one for each template that an author adds between trials.

    A template that comes late is in the journal with the number of trials it came after, where a run that goes on finds
    it: the same arms in the same order, without their author.
    """

    def __init__(
        self,
        arms: Sequence[Arm],
        journal: Journal,
        group: Group,
        arm: Callable[[KernelTemplate], Arm | None],
        revise: Revise | None,
    ) -> None:
        super().__init__(arms)
        self._journal, self._group, self._arm, self._revise = journal, group, arm, revise
        self._known = {one.kernel.template.digest for one in arms}

    def more(self, ended: Sequence[Finished], live: bool) -> Sequence[Arm]:
        noted = self._journal.history.joined(self._group)
        waiting = [(template, after) for template, after in noted if template.digest not in self._known]
        templates = [template for template, after in waiting if after <= len(ended)]
        if live and self._revise and not waiting:
            known = self._known | self._journal.history.templates.keys()
            templates = [template for template in self._revise(self._group[1], ended) if template.digest not in known]
            for template in templates:
                self._journal.template(template, (self._group, len(ended)))
        self._known |= {template.digest for template in templates}
        return [*super().more(ended, live), *(arm for arm in map(self._arm, templates) if arm is not None)]


@dataclass
class _Count:
    floor: int  # trials an arm gets before better ones are preferred
    least: int  # of these, those that come before any other arm's further ones
    trials: int = 0
    best: float | None = None
    exhausted: bool = False


class Bandit:
    """Spreads a budget over named arms."""

    def __init__(self) -> None:
        self._arms: dict[str, _Count] = {}

    def add(self, name: str, floor: int = FLOOR, least: int = 0) -> None:
        self._arms[name] = _Count(floor, least)

    def choose(self, asked: Mapping[str, int] | None = None, dry: Collection[str] = ()) -> str | None:
        """The arm to try next; None when every arm is exhausted. Ties go to the first one.

        asked: by arm, trials that were asked and have not ended; they count for an arm's first few.
        dry: arms that have no point until those have ended.
        """
        live = {name: arm for name, arm in self._arms.items() if not arm.exhausted and name not in dry}
        tried = {name: arm.trials + (asked or {}).get(name, 0) for name, arm in live.items()}
        for wanted in ({n: arm.least for n, arm in live.items()}, {n: arm.floor for n, arm in live.items()}):
            if lacking := [name for name in live if tried[name] < wanted[name]]:
                return min(lacking, key=lambda name: tried[name])
        return max(live, key=lambda name: self._index(live[name]), default=None)

    def remaining(self, asked: Mapping[str, int] | None = None) -> int:
        """How many trials arms that have points still lack of their least number."""
        live = [(name, arm) for name, arm in self._arms.items() if not arm.exhausted]
        return sum(max(0, arm.least - arm.trials - (asked or {}).get(name, 0)) for name, arm in live)

    def tell(self, name: str, cost: float | None) -> None:
        """A trial of that arm ended, with None when it failed."""
        arm = self._arms[name]
        arm.trials += 1
        if cost is not None:
            arm.best = cost if arm.best is None else min(arm.best, cost)

    def exhaust(self, name: str) -> None:
        """That arm has no point left."""
        self._arms[name].exhausted = True

    def _index(self, arm: _Count) -> float:
        bests = [other.best for other in self._arms.values() if other.best is not None]
        total = sum(other.trials for other in self._arms.values())
        objective = 0.0 if not bests else -math.log(arm.best / min(bests) if arm.best is not None else FAILURE)
        return objective + BONUS * math.sqrt(math.log(total + 1) / max(1, arm.trials))


class Seeded:
    """Asks for `first` (those of them that are legal), then for what the inner strategy asks, where there is one; never
    a point twice.

    The inner strategy gets every cost, so it learns from the first points too.
    """

    def __init__(self, inner: Strategy | None, space: Space, first: Sequence[Point]) -> None:
        self._inner = inner
        self._queue = [point for point in dict.fromkeys(first) if point in space]
        self._seen: set[Point] = set()

    def ask(self) -> Point | None:
        """None when there is nothing more to try."""
        while points := self._queue[:1] or (self._inner.ask(1) if self._inner else []):
            self._queue = self._queue[1:]
            fresh = [point for point in points if point not in self._seen]
            self._seen.update(points)
            if fresh:
                return fresh[0]
        return None

    def tell(self, point: Point, cost: float | None) -> None:
        self._seen.add(point)
        self._queue = [waiting for waiting in self._queue if waiting != point]
        if self._inner:
            self._inner.tell(point, cost)


class TimeLimits:
    """How long a search's trials may take, by those that ended, in their order: a run that goes on has those of one
    that never stopped.

    first_s: the limit while none has passed, in seconds; twice that after each that ran into it, for a machine can be
    slow.
    """

    def __init__(self, first_s: float = FIRST_S) -> None:
        self._first_s = first_s
        self._passed: list[float] = []
        self._problems = 0  # of those: what ended early says nothing of one that does not
        self._late = 0  # before any has passed
        self._struck: Counter[str] = Counter()

    @property
    def now(self) -> Limit:
        """Of a trial that begins now, from rendering to measuring."""
        if not self._passed:
            return Limit(self._first_s * 2.0**self._late, "as none of its stage has passed yet")
        many = FACTOR * median(self._passed)
        basis = f"{FACTOR:g} times the median of those of its stage that passed"
        return Limit(many, basis) if many >= LEAST_S else Limit(LEAST_S, f"more than {basis}")

    def tell(self, finished: Finished) -> bool:
        """A trial ended; whether its template is given up with it."""
        if finished.outcome.ok and (problems := len(finished.score.per_problem)) >= self._problems:
            self._passed = self._passed if problems == self._problems else []
            self._problems = problems
            self._passed.append(sum(finished.seconds.values()))
        if finished.outcome.kind is not Kind.TIMEOUT:
            return False
        self._late += not self._passed
        template = finished.trial.variant.template.digest
        self._struck[template] += 1
        return self._struck[template] == STRIKES
