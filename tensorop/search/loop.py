"""The search of one stage: ask, build, measure, tell, within a budget; every trial is in the journal.

Trials are requested in batches. Tuners get the costs in the order of the request, wherever the trials ran. Arms may be
added between batches.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

from tensorop.costs.expected import Expectation
from tensorop.errors import TensoropError
from tensorop.model.budget import Budget
from tensorop.model.kernel import Variant
from tensorop.model.point import Point
from tensorop.model.search_events import (
    Began,
    EndReason,
    Exhausted,
    GivenUp,
    Lost,
    SearchEnded,
    SearchEvent,
    TrialEnded,
)
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Finished, Kind, Limit, Outcome, Rung, Stage, Trial, TrialResult
from tensorop.process import children
from tensorop.process.clock import Clock
from tensorop.search.arms import FLOOR, Arm, Bandit, FixedArms, GrowingArms, Seeded, TimeLimits
from tensorop.search.task import Crew, Plan, Task, digest
from tensorop.space import Space, strategy
from tensorop.space.strategy import Strategy
from tensorop.store.journal import Journal
from tensorop.store.key import trial_key
from tensorop.toolchain import tool
from tensorop.toolchain.compile import candidate_flags
from tensorop.trial import company
from tensorop.trial.evaluator import Evaluator
from tensorop.trial.trial import FIRST_S, side_by_side

FOR_EACH_THREAD = 3  # whole trials of a batch
MAX_ATTEMPTS = 2  # an unfinished trial is tried once more, then skipped for good
MAX_LOST = 3  # the search stops when the target was unreachable so many times in a row


@dataclass(frozen=True)
class StageSearch:
    """What one stage searches, and how."""

    run: StageRun
    arms: FixedArms
    # (space, number of its arm) -> tuner; None: only each arm's first points are tried
    make_tuner: Callable[[Space, int], Strategy] | None
    # runs trials and yields their results in the same order
    carry_out: Callable[[Sequence[Trial], Limit], Generator[TrialResult, None, None]]
    key_of: Callable[[Variant], str]  # a variant's trial key
    journal: Journal
    budget: Budget
    batch: int = 1  # trials that are requested before the tuner gets the first of their costs
    first_batch: int | None = None  # as `batch`, until a trial has passed, whose time limits the next ones
    shared: bool = False  # trials share programs, so that a whole batch takes little longer than a part of it
    first_s: float = FIRST_S  # time limit of a trial until one has passed
    # (trials of the same template, all trials) -> where a trial that begins now may be dropped
    race: Callable[[Sequence[Finished], Sequence[Finished]], tuple[Rung, ...]] | None = None
    expectation: Expectation | None = None  # of the arms' blockings
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # as in Plan
    stopped: Callable[[], bool] = lambda: False  # whether the user asked the search to end


def conduct(task: Task, stage: Stage, plan: Plan) -> Iterator[SearchEvent]:
    """Runs a stage's plan."""
    job, target = task.job, task.target
    run = StageRun(task.dtype, stage, plan.problems, task.seed, shares=tuple(plan.shares.items()))
    own = {problem.label for problem in plan.problems}
    run = replace(run, weights=tuple((label, weight) for label, weight in task.weights.items() if label in own))
    compiler = (tool.compiler_version(), *candidate_flags(target.platform))

    @cache
    def platform(vlen: int) -> str:
        return digest(task.operator, target.at(vlen))

    def key_of(variant: Variant) -> str:
        vlen = variant.kernel.vlen
        return trial_key(variant, run, platform=platform(vlen), vlens=target.at(vlen).vlens, compiler=compiler)

    evaluator = Evaluator(task.operator, target, run, task.work, task.texts, known=task.answers)
    shared = any(company.takes(evaluator, arm.variant(stage, arm.space.at(0))) for arm in plan.arms)
    least = task.crew.batch if task.crew else max(job.jobs, target.clocks)
    # whole trials take different times, so each thread gets several of a batch
    several = FOR_EACH_THREAD if plan.race and task.crew is None else 1
    batch = job.batch or max(several * least, shared * company.MOST)
    if task.crew is not None:
        carry_out = partial(_by_crew, task, task.crew, run)
    else:
        carry_out = partial(side_by_side, evaluator, job.jobs)
    tuner = strategy.load(job.tuner, job.plugins)
    arms = FixedArms(plan.arms)
    if plan.joining is not None:
        arms = GrowingArms(plan.arms, task.journal, run.group, plan.joining, task.revise)
    yield from search(
        StageSearch(
            run=run,
            arms=arms,
            make_tuner=None if plan.only_first else lambda space, number: tuner.make(space, job.seed + number),
            carry_out=carry_out,
            key_of=key_of,
            journal=task.journal,
            budget=task.left(plan.budget, stage),
            batch=batch,
            first_batch=job.batch or least,
            shared=shared,
            first_s=plan.first_s * target.runner.patience,
            expectation=plan.expectation,
            only=plan.only,
            race=partial(evaluator.course.rungs, vlens=target.vlens) if plan.race else None,
            stopped=lambda: task.stop.asked,
        )
    )


def _by_crew(
    task: Task, crew: Crew, run: StageRun, trials: Sequence[Trial], limit: Limit
) -> Generator[TrialResult, None, None]:
    for result in crew(run, trials, limit):
        if result.text is not None:
            task.texts.add_from_worker(result.text)
        yield result


def search(what: StageSearch) -> Iterator[SearchEvent]:
    """Runs the search and yields its events, `SearchEnded` last.

    On Ctrl-C, running trials are recorded as not begun. One trial, and the least number of each arm, run even without
    time. Raises what journal and evaluator raise.
    """
    return _Run(what).events()


class _Run:
    """The state of one running search."""

    def __init__(self, what: StageSearch) -> None:
        self.what = what
        self.history = what.journal.history
        self.group = what.run.group
        self.arms: dict[str, Arm] = {}
        self.tuners: dict[str, Seeded] = {}
        self.bandit = Bandit()
        self.clock = Clock(what.budget, self.history.spent(self.group))
        self.limits = TimeLimits(what.first_s)
        self.given_up: set[str] = set()
        self.ended: list[Finished] = []
        self.best: Finished | None = None
        self.under_way: list[Trial] = []
        self.again: list[Trial] = []  # trials to repeat before new ones are requested
        self.losses = 0
        # Seconds of a trial in the last batch; None before a batch has ended. Trials of a batch are prepared together,
        # so the time until the first of them has ended says nothing about the others.
        self.pace_s: float | None = None

    def events(self) -> Iterator[SearchEvent]:
        reason = EndReason.INTERRUPTED
        try:
            yield from self._replay()
            reason = yield from self._trials()
        except KeyboardInterrupt:
            if children.ending_for_good():
                raise
        finally:
            with contextlib.suppress(TensoropError):  # a journal that cannot be written was reported already
                for trial in filter(self._is_open, self.under_way):
                    self.what.journal.abandon(trial, Outcome(Kind.LOST, "search", "stopped from outside"))
        yield SearchEnded(reason, self.best, self.clock.trials, self.clock.elapsed)

    def _replay(self) -> Iterator[SearchEvent]:
        """Gives the tuners the journal's trials in order, except those of other builds or settings."""
        self._join()
        for finished in self.history.ended(self.group):
            if self._is_ours(finished.trial):
                yield self._learn(finished, replayed=True)
                yield from self._heed_time(finished)
                self._join()
        if self.clock.trials:
            self.pace_s = self.clock.elapsed / self.clock.trials
        unfinished = [begun.trial for begun in self.history.unfinished(self.group)]
        unfinished += self.history.set_back(self.group)  # the rest of their batch may have taught the tuner by now
        self.again = [trial for trial in unfinished if self._is_ours(trial) and not self._is_given_up(trial)]

    def _join(self, spent: float | None = None) -> Sequence[Arm]:
        """Adds the arms that are ready. Time that their author takes is not the search's.

        One that comes late gets its least number of trials even beyond the budget. spent: as in `FixedArms.more`
        """
        began, late = time.monotonic(), bool(self.arms)
        found = self.what.arms.more(self.ended, spent)
        self.clock.pause(time.monotonic() - began)
        self.clock.extend(sum(arm.least for arm in found) if late else 0)
        for arm in found:
            name, make = arm.kernel.id, self.what.make_tuner
            if name in self.tuners:
                self.bandit.prefer(name, self.tuners[name].prefer(arm.first))
                continue
            tuner = make(arm.space, len(self.arms)) if make else None
            self.arms[name], self.tuners[name] = arm, Seeded(tuner, arm.space, arm.first, self._expected(arm))
            self.bandit.add(name, len(arm.first) or FLOOR, arm.least)
        return found

    def _expected(self, arm: Arm) -> Callable[[Collection[Point]], Point | None] | None:
        if (found := self.what.expectation) is None:
            return None
        return lambda seen: found.best(arm.kernel, arm.space, self.ended, seen)

    def _trials(self) -> Generator[SearchEvent, None, EndReason]:
        """Batches until the budget is spent and no arm is to come."""
        while True:
            reason = yield from self._batches()
            over = reason in (EndReason.BUDGET, EndReason.EXHAUSTED) and not self.what.stopped()
            if not over or not self._join(1.0):
                return reason

    def _batches(self) -> Generator[SearchEvent, None, EndReason]:
        while self._goes_on():
            if self.what.stopped():
                return EndReason.INTERRUPTED
            batch_size = self.what.batch if self.limits.known else self.what.first_batch or self.what.batch
            if not self.what.shared and (in_time := self.clock.trials_in_time) is not None:
                batch_size = min(batch_size, max(in_time, self.bandit.remaining(), self.what.first_batch or 1))
            wanted = min(batch_size, self.clock.trials_left or batch_size)
            batch, self.again = self.again[:wanted], self.again[wanted:]
            if not batch:
                self._join(self.clock.spent)
                batch = yield from self._ask(wanted)
            if not batch:
                return EndReason.EXHAUSTED if self._goes_on() else EndReason.BUDGET
            began = self.clock.elapsed
            yield from self._try(batch)
            self.pace_s = (self.clock.elapsed - began) / len(batch)
            if self.losses >= MAX_LOST:
                return EndReason.LOST
        return EndReason.BUDGET

    def _goes_on(self, asked: Mapping[str, int] | None = None) -> bool:
        """Whether another trial is due: there is time, or an arm has not had its least number."""
        if self.clock.trials_left == 0:
            return False
        begun = self.clock.trials + sum((asked or {}).values())
        return not self.clock.out_of_time or begun == 0 or self.bandit.remaining(asked) > 0

    def _ask(self, wanted: int) -> Generator[SearchEvent, None, list[Trial]]:
        """New trials of the next arm, and of the following ones if it has too few; [] when all are exhausted."""
        fresh: list[Trial] = []
        asked: Counter[str] = Counter()
        dry: set[str] = set()
        while len(fresh) < wanted and self._goes_on(asked):
            arm = self.bandit.choose(asked, dry)
            if arm is None:
                break
            point = self.tuners[arm].ask()
            if point is None and asked[arm]:  # the requested trials may give it new points
                dry.add(arm)
                continue
            if point is None:
                self.bandit.exhaust(arm)
                yield Exhausted(self.arms[arm].kernel)
                continue
            trial = self._trial(self.arms[arm], point)
            known = self.history.finished(trial.key, trial.round)
            if known is None:
                fresh.append(trial)
                asked[arm] += 1
            else:  # requested before
                self.tuners[arm].tell(point, known.score.cost)
                self.bandit.tell(arm, known.score.cost)
        return fresh

    def _try(self, batch: Sequence[Trial]) -> Iterator[SearchEvent]:
        begun: list[Trial] = []
        for trial in batch:
            open_trial = self.history.started(trial.key, trial.round)
            if open_trial is not None and open_trial.attempts >= MAX_ATTEMPTS:
                died = Outcome(Kind.CRASH, "search", f"{MAX_ATTEMPTS} runs ended during this trial; it is skipped")
                yield self._end(trial, TrialResult(died))
                continue
            begun.append(trial)
        self.under_way += begun  # before they are written: an interrupt may come at once
        for trial, attempt in zip(begun, self.what.journal.start_all(begun), strict=True):
            yield Began(trial, attempt)
        with contextlib.closing(self.what.carry_out(begun, self.limits.now)) as results:
            for trial, measured in zip(begun, results, strict=True):
                ended: TrialEnded | Lost
                if measured.outcome.kind is Kind.LOST:
                    self.losses += 1
                    self.what.journal.abandon(trial, measured.outcome)
                    self.again.append(trial)
                    ended = Lost(trial, measured.outcome)
                else:
                    self.losses = 0
                    ended = self._end(trial, measured)
                self.under_way.remove(trial)
                yield ended
                if isinstance(ended, TrialEnded):
                    yield from self._heed_time(ended.finished)

    def _heed_time(self, finished: Finished) -> Iterator[SearchEvent]:
        """Stops trying a template after a trial that timed out once too often."""
        limit = self.limits.now
        if not self.limits.tell(finished):
            return
        template = finished.trial.variant.template
        self.given_up.add(template.digest)
        for name, arm in self.arms.items():
            if arm.kernel.template.digest == template.digest:
                self.bandit.exhaust(name)
        self.again = [trial for trial in self.again if not self._is_given_up(trial)]
        run = self.what.run
        data = {"template": template.name, "stage": run.stage.value, "dtype": run.dtype, "round": run.round}
        if ("given up", data) not in self.history.notes:
            self.what.journal.note("given up", data)
        yield GivenUp(template.name, limit)

    def _is_given_up(self, trial: Trial) -> bool:
        return trial.variant.template.digest in self.given_up

    def _end(self, trial: Trial, measured: TrialResult) -> TrialEnded:
        text = measured.text if measured.outcome.ok else None
        finished = Finished(trial, measured.outcome, measured.score, measured.seconds, text.id if text else "")
        if text is not None:
            self.what.journal.text(text)
        self.what.journal.finish(finished)
        return self._learn(finished, replayed=False)

    def _learn(self, finished: Finished, replayed: bool) -> TrialEnded:
        trial = finished.trial
        cost = finished.score.cost if finished.outcome.ok else None
        self.tuners[trial.arm].tell(trial.point, cost)
        self.bandit.tell(trial.arm, cost)
        self.clock.trials += 1
        self.ended.append(finished)
        if cost is not None and (self.best is None or finished.rank < self.best.rank):
            self.best = finished
        return TrialEnded(finished, self.best, replayed, self.clock.trials, self._left())

    def _left(self) -> float | None:
        """Expected further seconds: the rest of the budget, or the time of the trials that are due in any case."""
        return None if self.pace_s is None else self.clock.seconds_left(self.pace_s, self.bandit.remaining())

    def _trial(self, arm: Arm, point: Point) -> Trial:
        what, kernel = self.what, arm.kernel
        variant = arm.variant(what.run.stage, point)
        # blockings race within their template, so that a template for few problems survives the other problems
        alike = [done for done in self.ended if done.trial.variant.template == kernel.template]
        rungs = what.race(alike, self.ended) if what.race else ()
        only = what.only.get(variant.id, ())
        return Trial(what.key_of(variant), what.run.round, what.run.stage, variant, rungs, only)

    def _is_open(self, trial: Trial) -> bool:
        return self.history.started(trial.key, trial.round) is not None

    def _is_ours(self, trial: Trial) -> bool:
        arm = self.arms.get(trial.arm)
        return arm is not None and trial.point in arm.space and self.what.key_of(trial.variant) == trial.key
