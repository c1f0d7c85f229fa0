"""A bandit that spreads a search's budget over arms: one arm for each template or kernel. Arms may be added later.

Every arm first gets a few trials. Then the arm with the highest index is next, in the manner of UCB1 (Auer,
Cesa-Bianchi, Fischer 2002). The index is the logarithm of (best cost of all / best cost of the arm), plus a bonus that
shrinks with the arm's trials. The best trial of an arm counts, not its mean, since only the winner is kept.
Every choice depends on earlier trials alone, so a resumed run makes the same choices.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.point import Point
from tensorop.model.stage_run import Group
from tensorop.model.trial import Finished, Kind, Limit, Stage
from tensorop.space import Space, seeds
from tensorop.space.strategy import Strategy
from tensorop.store.journal import Journal
from tensorop.trial.trial import FIRST_S

FLOOR = 4
BONUS = 0.15  # weight of the bonus, in natural logarithm of cost: about 15 %
FAILURE = 2.0  # the cost that counts for an arm without a passed trial, as a factor of the best cost of all arms
FACTOR = 10.0  # time limit of a trial, as a factor of the median time of passed trials
LEAST_S = 10.0  # shortest time limit; a busy machine, or the one trial that builds for several, takes longer
TURNS = 3  # of so many proposals in a row, the cost model makes one and the tuner the others
STRIKES = 2  # timeouts after which a template gets no further trials


# Writes further templates during a search: (dtype, trials so far in their order, part of the budget that is spent) ->
# the templates that are ready. They have passed the gates; a template's `parent` names the template that it was made
# from. A template that the search has stands for its seed configurations, which are to be tried next.
# The function may wait for the author; the search's clock stands still meanwhile. When the whole budget is spent
# (1.0), the search ends if the function returns nothing.
Revise = Callable[[str, Sequence[Finished], float], Sequence[KernelTemplate]]


@dataclass
class Remarks:
    """Remarks of a language model's author for the user."""

    now: list[str] = field(default_factory=list)  # remarks that are not shown yet
    at_end: list[str] = field(default_factory=list)  # remarks for the end of the job


@dataclass(frozen=True)
class Arm:
    """The configurations that one tuner searches; the arms of a stage share its budget."""

    kernel: Kernel  # the arm has its blockings, or its configurations if it has none yet (`Stage.of_kernels`)
    space: Space  # legal points
    first: Sequence[Point] = ()  # tried before the tuner is asked, and before better arms are preferred
    least: int = 0  # trials that the arm gets even beyond a time budget (not beyond a trial budget)

    def variant(self, stage: Stage, point: Point) -> Variant:
        """The variant at a point of the space."""
        kernel = self.kernel
        return Variant(replace(kernel, configuration=point)) if stage.of_kernels else Variant(kernel, point)


class FixedArms:
    """The arms of a search: all known from the start."""

    def __init__(self, arms: Sequence[Arm]) -> None:
        self._arms = arms

    def more(self, ended: Sequence[Finished], spent: float | None = None) -> Sequence[Arm]:
        """Arms to add now; called before the first trial and before each further request for trials.

        ended: trials so far, in their order
        spent: part of the budget; None while trials of earlier processes are replayed
        """
        found, self._arms = self._arms, ()
        return found


class GrowingArms(FixedArms):
    """The arms of the start, and one for each template that an author adds between trials.

    The journal records such a template with the number of trials before it. A resumed run takes it from there, so that
    it has the same arms in the same order without asking the author.
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
        self._own = {one.kernel.template.digest: one for one in arms}
        self._configured = 0  # lists of points that were taken from the journal

    def more(self, ended: Sequence[Finished], spent: float | None = None) -> Sequence[Arm]:
        noted = self._journal.history.joined(self._group)
        waiting = [(template, after) for template, after in noted if template.digest not in self._known]
        templates = [template for template, after in waiting if after <= len(ended)]
        if spent is not None and not waiting:
            templates = self._written(ended, spent)
        self._known |= {template.digest for template in templates}
        found = [*super().more(ended), *(arm for arm in map(self._arm, templates) if arm is not None)]
        return [*found, *self._with_points(len(ended))]

    def _with_points(self, ended: int) -> Iterator[Arm]:
        """Arms of the start with points of the author, which are tried next."""
        for digest, points, after in self._journal.history.configured(self._group)[self._configured :]:
            if after > ended:
                return
            self._configured += 1
            if (arm := self._own.get(digest)) is not None:
                template = replace(arm.kernel.template, seed_configurations=points)
                legal = seeds.named(seeds.own(template, arm.space), template, arm.space)
                yield replace(arm, first=legal, least=0)

    def _written(self, ended: Sequence[Finished], spent: float) -> list[KernelTemplate]:
        """The author's next templates. The first ones may be those that it wrote for an earlier process of the run."""
        known = self._known | self._journal.history.templates.keys()
        again: set[str] = set()
        while self._revise and (templates := self._revise(self._group[1], ended, spent)):
            if templates[0].digest in self._own:
                self._journal.configured(templates[0], self._group, len(ended))
                return []
            if fresh := [template for template in templates if template.digest not in known]:
                for template in fresh:
                    self._journal.template(template, (self._group, len(ended)))
                return fresh
            digests = {template.digest for template in templates}
            if digests <= again:
                break
            again |= digests
        return []


@dataclass
class _Count:
    floor: int  # trials of an arm before better arms are preferred
    least: int  # first trials, which come before those of all other arms
    trials: int = 0
    best: float | None = None
    exhausted: bool = False


class Bandit:
    """Spreads a budget over named arms."""

    def __init__(self) -> None:
        self._arms: dict[str, _Count] = {}

    def add(self, name: str, floor: int = FLOOR, least: int = 0) -> None:
        self._arms[name] = _Count(floor, least)

    def prefer(self, name: str, trials: int) -> None:
        """Gives so many of the next trials to an arm."""
        arm = self._arms[name]
        arm.floor = max(arm.floor, arm.trials) + trials

    def choose(self, asked: Mapping[str, int] | None = None, dry: Collection[str] = ()) -> str | None:
        """The arm to try next; None when every arm is exhausted. Ties go to the first arm.

        asked: arm -> trials that are requested and have not ended; they count as trials of the arm
        dry: arms that have no point until those trials end
        """
        live = {name: arm for name, arm in self._arms.items() if not arm.exhausted and name not in dry}
        tried = {name: arm.trials + (asked or {}).get(name, 0) for name, arm in live.items()}
        for wanted in ({n: arm.least for n, arm in live.items()}, {n: arm.floor for n, arm in live.items()}):
            if lacking := [name for name in live if tried[name] < wanted[name]]:
                return min(lacking, key=lambda name: tried[name])
        return max(live, key=lambda name: self._index(live[name]), default=None)

    def remaining(self, asked: Mapping[str, int] | None = None) -> int:
        """Trials still due to arms below their least number."""
        live = [(name, arm) for name, arm in self._arms.items() if not arm.exhausted]
        return sum(max(0, arm.least - arm.trials - (asked or {}).get(name, 0)) for name, arm in live)

    def tell(self, name: str, cost: float | None) -> None:
        """Records that a trial of the arm ended. cost: None when it failed."""
        arm = self._arms[name]
        arm.trials += 1
        if cost is not None:
            arm.best = cost if arm.best is None else min(arm.best, cost)

    def exhaust(self, name: str) -> None:
        """Records that the arm has no point left."""
        self._arms[name].exhausted = True

    def _index(self, arm: _Count) -> float:
        bests = [other.best for other in self._arms.values() if other.best is not None]
        total = sum(other.trials for other in self._arms.values())
        objective = 0.0 if not bests else -math.log(arm.best / min(bests) if arm.best is not None else FAILURE)
        return objective + BONUS * math.sqrt(math.log(total + 1) / max(1, arm.trials))


class Seeded:
    """Asks for the legal ones of `first`, then for the points of an inner strategy; never for a point twice.

    The inner strategy gets every cost, so it learns from the first points too.

    expected: (points seen) -> the cost model's proposal, which is one of TURNS proposals
    """

    def __init__(
        self,
        inner: Strategy | None,
        space: Space,
        first: Sequence[Point],
        expected: Callable[[Collection[Point]], Point | None] | None = None,
    ) -> None:
        self._inner, self._expected = inner, expected
        self._queue = [point for point in dict.fromkeys(first) if point in space]
        self._seen: set[Point] = set()

    def ask(self) -> Point | None:
        """The next point; None when none is left."""
        while points := self._queue[:1] or self._next():
            self._queue = self._queue[1:]
            fresh = [point for point in points if point not in self._seen]
            self._seen.update(points)
            if fresh:
                return fresh[0]
        return None

    def _next(self) -> list[Point]:
        if self._inner is None:
            return []
        expected = self._expected(self._seen) if self._expected and len(self._seen) % TURNS == 0 else None
        return [expected] if expected else self._inner.ask(1)

    def prefer(self, points: Sequence[Point]) -> int:
        """Asks for these points next; returns how many of them are new."""
        fresh = [point for point in dict.fromkeys(points) if point not in self._seen]
        self._queue = [*fresh, *(point for point in self._queue if point not in fresh)]
        return len(fresh)

    def tell(self, point: Point, cost: float | None) -> None:
        self._seen.add(point)
        self._queue = [waiting for waiting in self._queue if waiting != point]
        if self._inner:
            self._inner.tell(point, cost)


class TimeLimits:
    """Time limits of a search's trials, computed from earlier trials in their order.

    A resumed run has the same limits as one that never stopped.

    first_s: limit in seconds until a trial has passed; it doubles after each timeout, since the machine may be slow
    """

    def __init__(self, first_s: float = FIRST_S) -> None:
        self._first_s = first_s
        self._passed: list[float] = []
        self._problems = 0  # of those in `_passed`; a trial dropped by the race takes less time
        self._late = 0  # timeouts before any trial passed
        self._struck: Counter[str] = Counter()

    @property
    def known(self) -> bool:
        """Whether a trial has passed."""
        return bool(self._passed)

    @property
    def now(self) -> Limit:
        """The limit of a trial that begins now, from rendering to measuring."""
        if not self._passed:
            return Limit(self._first_s * 2.0**self._late, "no trial of this stage has passed yet")
        many = FACTOR * median(self._passed)
        basis = f"{FACTOR:g} times the median of the trials of this stage that passed"
        return Limit(many, basis) if many >= LEAST_S else Limit(LEAST_S, f"more than {basis}")

    def tell(self, finished: Finished) -> bool:
        """Records that a trial ended; True if its template gets no further trials."""
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
