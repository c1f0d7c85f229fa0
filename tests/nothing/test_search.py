"""The search loop with a real journal, real tuners, and costs from a formula."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from tensorop.errors import JobError
from tensorop.model.budget import Budget
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.point import Point
from tensorop.model.search_events import Began, EndReason, Exhausted, GivenUp, Lost, SearchEnded, TrialEnded
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Finished, Kind, Limit, Outcome, Rung, Score, Stage, Trial, TrialResult
from tensorop.model.verdict import Seed
from tensorop.process import deadline
from tensorop.runners import process
from tensorop.search import arms as limits
from tensorop.search.arms import Arm, FixedArms
from tensorop.search.loop import StageSearch, search
from tensorop.space import Space, strategy
from tensorop.store import journal as store
from tensorop.store.journal import Journal, journal_path
from tensorop.trial.trial import carry_out, in_time, side_by_side
from tests.support.classes import extended

SPACES = {
    "rows": Space.of({"a": (1, 2, 3, 4, 5), "b": (0, 1, 2, 3)}),
    "columns": Space.of({"a": (1, 2, 3), "w": ("x", "y")}),
}


KERNELS = {name: Kernel(KernelTemplate("op", name, "offline", "", name), "f32") for name in SPACES}


def arms(least=None):
    return [Arm(KERNELS[name], space, least=(least or {}).get(name, 0)) for name, space in SPACES.items()]


def name_of(trial):
    return trial.variant.template.name


class Formula:
    """Costs by a formula of the point; a fifth of the points fail, by their digest."""

    def __init__(self, pause=0.0, side_by_side=False):
        self.pause = pause
        self.target = SimpleNamespace(side_by_side=side_by_side, clocks=1, simulated=True)

    def prepare(self, trial):
        digest = hashlib.sha256(f"{name_of(trial)} {trial.point}".encode()).digest()
        if digest[0] % 5 == 0:
            return TrialResult(Outcome(Kind.COMPILE, "build", "no"), seconds={"build": 0.0})
        return digest[1] / 100 + trial.point["a"]

    def measure(self, trial, prepared):
        time.sleep(self.pause)
        return TrialResult(Outcome(Kind.OK), Score(prepared), {"measure": 0.0})


def a_search(journal, evaluate=None, budget=None, tuner="bayes", least=None, stage=Stage.MICRO, jobs=1, **more):
    given = {
        "arms": FixedArms(arms(least)),
        "carry_out": partial(side_by_side, evaluate or Formula(), jobs),
        "batch": jobs,
    }
    return StageSearch(
        run=StageRun("f32", stage, (), Seed(0, 0)),
        make_tuner=strategy.load(tuner).make,
        key_of=lambda variant: variant.id,
        journal=journal,
        budget=budget or Budget(trials=18),
        **{**given, **more},
    )


def ends(history):
    group = ("micro", "f32", 0)
    return [(name_of(e.trial), str(e.trial.point), e.outcome.kind, e.score.cost) for e in history.ended(group)]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    with Journal.open(folder, {}) as journal:
        events = list(search(a_search(journal)))
    return events, ends(store.read(folder))


def test_events_tell_the_whole_story(uninterrupted):
    events, trials = uninterrupted
    began = [e.trial for e in events if isinstance(e, Began)]
    ended = [e for e in events if isinstance(e, TrialEnded)]
    assert [e.finished.trial for e in ended] == began
    assert len(began) == len(trials) == 18
    assert {name_of(trial) for trial in began} == set(SPACES)
    assert isinstance(events[-1], SearchEnded)
    assert events[-1].reason is EndReason.BUDGET
    assert events[-1].best.score.cost == min(cost for *_, cost in trials if cost is not None)
    assert any(kind is Kind.COMPILE for _, _, kind, _ in trials)


def test_the_same_search_again_is_a_replay(tmp_path, uninterrupted):
    for replayed in (False, True):
        with Journal.open(tmp_path, {}) as journal:
            events = list(search(a_search(journal)))
        assert [e.replayed for e in events if isinstance(e, TrialEnded)] == [replayed] * 18
        assert events[-1].best == uninterrupted[0][-1].best
    with Journal.open(tmp_path, {}) as journal:  # a larger budget goes on
        events = list(search(a_search(journal, budget=Budget(trials=20))))
    assert sum(isinstance(e, Began) for e in events) == 2


def test_an_exhausted_space_ends_the_search(tmp_path):
    with Journal.open(tmp_path, {}) as journal:
        events = list(search(a_search(journal, budget=Budget(trials=1000))))
    assert {e.arm.template.name for e in events if isinstance(e, Exhausted)} == set(SPACES)
    assert events[-1].reason is EndReason.EXHAUSTED
    points = [(name_of(e.finished.trial), e.finished.trial.point) for e in events if isinstance(e, TrialEnded)]
    assert len(points) == len(set(points)) == sum(space.size for space in SPACES.values())


KILLED = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
import test_search as t
with t.Journal.open(Path(sys.argv[1]), {}) as journal:
    for event in t.search(t.a_search(journal, t.Formula(pause=0.02))):
        print(type(event).__name__, flush=True)
"""


def run_and_kill(folder, lines):
    """Lets a real process run until it has told so many events, then kills it as the kernel would."""
    command = [sys.executable, "-c", KILLED, folder, str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for _ in range(lines):
            child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)


@pytest.mark.parametrize("kills", [extended([1]), [2], extended([23]), extended([8, 16, 21])])
def test_killed_and_resumed_equals_uninterrupted(tmp_path, uninterrupted, kills):
    for lines in kills:
        run_and_kill(tmp_path, lines)
    interrupted = store.read(tmp_path)
    assert len(interrupted.replay()) < 18
    with Journal.open(tmp_path, {}) as journal:
        events = list(search(a_search(journal)))
    assert ends(store.read(tmp_path)) == uninterrupted[1]
    assert events[-1].best == uninterrupted[0][-1].best


def test_a_trial_that_kills_its_run_is_tried_once_more_then_skipped(tmp_path):
    class Deadly(Formula):
        def prepare(self, trial):
            if trial.key == deadly:
                raise AssertionError("tried a third time")
            return super().prepare(trial)

    with Journal.open(tmp_path, {}) as journal:
        (first,) = [e for e in search(a_search(journal, budget=Budget(trials=1))) if isinstance(e, Began)]
    journal_path(tmp_path).unlink()
    deadly = first.trial.key
    for attempt in (1, 2):  # two processes that died in the middle of it
        with Journal.open(tmp_path, {}) as journal:
            assert journal.start(first.trial) == attempt
    with Journal.open(tmp_path, {}) as journal:
        events = list(search(a_search(journal, Deadly())))
    skipped = next(e.finished for e in events if isinstance(e, TrialEnded))
    assert skipped.trial == first.trial
    assert skipped.outcome.kind is Kind.CRASH
    assert "skipped" in skipped.outcome.message
    assert events[-1].trials == 18


def test_ctrl_c_sets_back_what_was_under_way(tmp_path, uninterrupted):
    class Interrupted(Formula):
        count = 0

        def measure(self, trial, prepared):
            self.count += 1
            if self.count == 4:
                raise KeyboardInterrupt
            return super().measure(trial, prepared)

    for _ in range(3):  # a user may press it as often as he likes
        with Journal.open(tmp_path, {}) as journal:
            *_, last = search(a_search(journal, Interrupted()))
        assert last.reason is EndReason.INTERRUPTED
        assert last.best is not None
        assert store.read(tmp_path).unfinished(("micro", "f32", 0)) == []
    with Journal.open(tmp_path, {}) as journal:
        list(search(a_search(journal)))
    assert ends(store.read(tmp_path)) == uninterrupted[1]


@pytest.mark.parametrize("stop", [8, 10, 12, 14, 16])
def test_the_rest_of_a_batch_comes_first(tmp_path, stop):
    class Interrupted(Formula):
        count = 0

        def measure(self, trial, prepared):
            self.count += 1
            if self.count == stop:  # the second of two
                raise KeyboardInterrupt
            return super().measure(trial, prepared)

    for name, evaluate in (("whole", None), ("halves", Interrupted()), ("halves", None)):
        with Journal.open(tmp_path / name, {}) as journal:
            list(search(a_search(journal, evaluate, jobs=2)))
    assert ends(store.read(tmp_path / "halves")) == ends(store.read(tmp_path / "whole"))


def test_a_caller_that_stops_listening(tmp_path):
    with Journal.open(tmp_path, {}) as journal:
        events = search(a_search(journal))
        assert isinstance(next(events), Began)
        events.close()
        assert journal.history.replay() == []


def test_a_lost_target_says_nothing_of_the_candidate(tmp_path, uninterrupted):
    class Flaky(Formula):
        lost = 0

        def measure(self, trial, prepared):
            if self.lost < 2:
                self.lost += 1
                return TrialResult(Outcome(Kind.LOST, "measure", "no answer"))
            return super().measure(trial, prepared)

    with Journal.open(tmp_path, {}) as journal:
        events = list(search(a_search(journal, Flaky())))
    assert sum(isinstance(e, Lost) for e in events) == 2
    assert ends(store.read(tmp_path)) == uninterrupted[1]


def test_a_target_lost_for_good_stops_the_search(tmp_path):
    class Gone(Formula):
        def prepare(self, trial):
            return TrialResult(Outcome(Kind.LOST, "measure", "no answer"))

    with Journal.open(tmp_path, {}) as journal:
        events = list(search(a_search(journal, Gone())))
    assert events[-1] == SearchEnded(EndReason.LOST, None, 0, events[-1].seconds)


def test_builds_side_by_side_timings_never(tmp_path):
    class Watching(Formula):
        def __init__(self):
            super().__init__()
            self.barrier = threading.Barrier(3)
            self.building = set()
            self.threads = set()

        def prepare(self, trial):
            self.building.add(trial.key)
            self.barrier.wait(20)  # passes only when three are here at once
            self.building.discard(trial.key)
            return 1.0 + trial.point["a"]

        def measure(self, trial, prepared):
            assert not self.building
            self.threads.add(threading.get_ident())
            return super().measure(trial, prepared)

    evaluate = Watching()
    with Journal.open(tmp_path, {}) as journal:
        events = list(search(a_search(journal, evaluate, Budget(trials=12), "random", jobs=3)))
    assert events[-1].trials == 12
    assert evaluate.threads == {threading.get_ident()}


def test_several_clocks_measure_side_by_side_and_a_lost_one_is_left_out(tmp_path):
    class Machines(Formula):
        def __init__(self):
            super().__init__()
            self.target.clocks = 2
            self.both = threading.Barrier(2)

        def prepare(self, trial):
            return 1.0 + trial.point["a"]

        def measure(self, trial, prepared):
            if self.target.clocks == 2 and self.both.wait(20) == 0:  # passes only when two are here at once
                self.target.clocks = 1
                return TrialResult(Outcome(Kind.LOST, "measure", "no answer"))
            return super().measure(trial, prepared)

    evaluate = Machines()
    with Journal.open(tmp_path, {}) as journal:
        events = list(search(a_search(journal, evaluate, Budget(trials=6), "random", batch=2)))
    assert sum(isinstance(e, Lost) for e in events) == 1
    ended = [e.finished.trial.key for e in events if isinstance(e, TrialEnded)]
    assert len(ended) == len(set(ended)) == 6


def test_whole_trials_side_by_side_tell_in_the_same_order(tmp_path):
    class Uneven(Formula):
        def measure(self, trial, prepared):
            time.sleep(0.02 if trial.point["a"] % 2 else 0.0)
            return super().measure(trial, prepared)

    found = []
    for name in ("one", "two"):
        with Journal.open(tmp_path / name, {}) as journal:
            evaluate = (Uneven if name == "one" else Formula)(side_by_side=True)
            list(search(a_search(journal, evaluate, jobs=3)))
            found.append(ends(journal.history))
    assert found[0] == found[1]


def test_the_last_batch_has_no_more_trials_than_there_is_time_for(tmp_path):
    class Slow(Formula):
        def measure(self, trial, prepared):
            time.sleep(0.1)
            return super().measure(trial, prepared)

    with Journal.open(tmp_path, {}) as journal:
        how = {"budget": Budget(seconds=1.05), "tuner": "random"}
        list(search(a_search(journal, Slow(), batch=8, first_batch=1, **how)))
        assert 2 <= len(ends(journal.history)) <= 12  # 1, 8 and then 2 that fit rather than 8


def elsewhere(trials, limit):
    """The last first, as other processes may be done."""
    done = {trial.key: carry_out(Formula(), trial, limit) for trial in reversed(trials)}
    return (done[trial.key] for trial in trials)


@pytest.mark.parametrize("more", [{}, {"carry_out": elsewhere}])
def test_killed_in_the_middle_of_a_batch_and_resumed_is_the_search_it_was(tmp_path, more):
    with Journal.open(tmp_path / "whole", {}) as journal:
        list(search(a_search(journal, jobs=2, batch=4)))
        whole = ends(journal.history)
    lines = journal_path(tmp_path / "whole").read_bytes().splitlines(keepends=True)
    events = [json.loads(line)["event"] for line in lines]
    assert events.count("started") == 18
    cuts = [i for i in range(2, len(lines)) if "finished" in (events[i - 1], events[i])]  # a batch is begun as one
    for cut in cuts[::4]:
        (tmp_path / f"{cut}" / "share" / "tensorop").mkdir(parents=True)
        journal_path(tmp_path / f"{cut}").write_bytes(b"".join(lines[:cut]))
        with Journal.open(tmp_path / f"{cut}", {}) as journal:
            list(search(a_search(journal, batch=4, **more)))
            assert ends(journal.history) == whole


@pytest.mark.parametrize("jobs", [1, 3])
def test_however_little_time_there_is_each_template_has_its_least(tmp_path, jobs):
    slow = Formula(pause=0.05)
    least = {"rows": 3, "columns": 2}
    with Journal.open(tmp_path, {}) as journal:
        events = list(search(a_search(journal, slow, Budget(seconds=0.001), jobs=jobs, least=least)))
    templates = [name_of(e.finished.trial) for e in events if isinstance(e, TrialEnded)]
    assert {name: templates.count(name) for name in SPACES} == least
    assert events[-1].reason is EndReason.BUDGET
    left = [e.left for e in events if isinstance(e, TrialEnded)]
    assert left[:jobs] == [None] * jobs  # the first batch
    assert min(left[jobs:-1], default=1) > 0
    with Journal.open(tmp_path, {}) as journal:  # and no more when the same command is given again
        events = list(search(a_search(journal, slow, Budget(seconds=0.001), jobs=jobs, least=least)))
    assert [e.replayed for e in events if isinstance(e, TrialEnded)] == [True] * sum(least.values())


def test_what_a_batch_begins_with_is_not_the_pace_of_its_trials(tmp_path):
    """Trials that share a program are all built before the first one ends."""

    def together(trials, limit):
        time.sleep(0.1 * len(trials))
        for trial in trials:
            yield TrialResult(Outcome(Kind.OK), Score(1.0 + trial.point["a"]), {"measure": 0.0})

    with Journal.open(tmp_path, {}) as journal:
        given = a_search(journal, budget=Budget(seconds=0.2), carry_out=together, batch=4, least={"rows": 12})
        left = [e.left for e in search(given) if isinstance(e, TrialEnded)]
    assert left[:4] == [None] * 4
    assert all(0.2 < seconds < 2.0 for seconds in left[4:8]), left  # seven trials are due, then four


def test_one_trial_where_nothing_is_due(tmp_path):
    with Journal.open(tmp_path, {}) as journal:
        events = list(search(a_search(journal, Formula(pause=0.05), Budget(seconds=0.001))))
    assert sum(isinstance(e, TrialEnded) for e in events) == 1


def test_a_number_of_trials_is_no_wish(tmp_path):
    with Journal.open(tmp_path, {}) as journal:
        events = list(search(a_search(journal, budget=Budget(trials=2), least={"rows": 3, "columns": 2})))
    assert sum(isinstance(e, TrialEnded) for e in events) == 2


def test_results_of_another_build_are_not_ours(tmp_path):
    with Journal.open(tmp_path, {}) as journal:
        list(search(a_search(journal)))
    lines = journal_path(tmp_path).read_text().splitlines()
    stale = [json.loads(line) for line in lines]
    for record in stale[1:]:
        if "key" in record:
            record["key"] = "made by another compiler: " + record["key"]
    journal_path(tmp_path).write_text("".join(json.dumps(record) + "\n" for record in stale))
    with Journal.open(tmp_path, {}) as journal:
        events = list(search(a_search(journal)))
    assert sum(isinstance(e, Began) for e in events) == 18


ONE = {name: Kernel(KERNELS["rows"].template, "f32", Point.of(of=name)) for name in SPACES}
SLOW = (KERNELS["columns"].id, ONE["columns"].id)


class Slow(Formula):
    """Points of `columns` wait for a process that does not end; the others say how long they took."""

    def __init__(self, took=0.01, **more):
        super().__init__(**more)
        self.took = took

    def measure(self, trial, prepared):
        if trial.arm in SLOW:
            ended = process.run(["sleep", "600"], timeout_s=500)
            assert ended.timed_out
            return TrialResult(Outcome(Kind.TIMEOUT, "verify", "did not return within 500 s"))
        return TrialResult(Outcome(Kind.OK), Score(prepared), {"measure": self.took})


@pytest.fixture
def short(monkeypatch):
    """Limits that a test can wait for."""
    monkeypatch.setattr(limits, "LEAST_S", 0.2)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("overlap", [False, True])
def test_a_template_that_runs_into_the_limit_twice_gets_no_further_trials(tmp_path, overlap):
    told = []
    for _ in range(2):  # and again from its journal
        with Journal.open(tmp_path, {}) as journal:
            what = a_search(journal, Slow(side_by_side=overlap), first_s=0.5)
            events = list(search(what))
            assert journal.history.notes == [
                ("given up", {"template": "columns", "stage": "micro", "dtype": "f32", "round": 0})
            ]
        told.append([e.template for e in events if isinstance(e, GivenUp)])
        late = [
            e.finished.outcome for e in events if isinstance(e, TrialEnded) and name_of(e.finished.trial) == "columns"
        ]
        stopped = [outcome for outcome in late if outcome.kind is Kind.TIMEOUT]
        assert len(stopped) == 2
        assert all("the trial took longer than its limit of" in outcome.message for outcome in stopped)
        assert sum(isinstance(e, TrialEnded) for e in events) == 18
    assert told == [["columns"], ["columns"]]


@pytest.mark.usefixtures("short")
def test_a_template_is_given_up_with_all_its_arms(tmp_path):
    with Journal.open(tmp_path, {}) as journal:
        one = [Arm(ONE[name], space) for name, space in SPACES.items()]
        events = list(search(a_search(journal, Slow(), first_s=0.3, stage=Stage.BLOCKING, arms=FixedArms(one))))
    assert [e.template for e in events if isinstance(e, GivenUp)] == ["rows"]
    assert events[-1].reason is EndReason.EXHAUSTED
    assert sum(isinstance(e, TrialEnded) for e in events) < 18


@pytest.mark.usefixtures("short")
def test_however_slow_a_small_budget_gets_its_first_trials_and_no_more(tmp_path):
    with Journal.open(tmp_path, {}) as journal:
        least = dict.fromkeys(SPACES, 1)
        events = list(search(a_search(journal, Slow(), Budget(seconds=1e-3), first_s=0.3, least=least)))
    assert sorted(name_of(e.trial) for e in events if isinstance(e, Began)) == ["columns", "rows"]
    assert events[-1].seconds < 60


def test_limits_follow_from_what_passed():
    spec = limits.TimeLimits(first_s=60.0)
    trial = Trial("k", 0, Stage.MICRO, Variant(KERNELS["rows"]))

    def ended(kind, seconds):
        return spec.tell(Finished(trial, Outcome(kind), Score(None), {"build": seconds / 2, "measure": seconds / 2}))

    assert spec.now.seconds == 60
    assert not ended(Kind.WRONG, 5)
    assert spec.now.seconds == 60
    assert not ended(Kind.TIMEOUT, 60)
    assert spec.now.seconds == 120  # the machine may be slow
    for seconds in (2, 3, 40):
        assert not ended(Kind.OK, seconds)
    assert spec.now.seconds == 30
    assert ended(Kind.TIMEOUT, 30)
    assert not ended(Kind.TIMEOUT, 30)  # that is said once
    for _ in range(4):
        ended(Kind.OK, 0.1)
    assert spec.now.seconds == limits.LEAST_S


def test_what_fails_in_time_or_passes_is_left_as_it_is():
    limit = Limit(0.2, "for a test")

    def late(outcome):
        process.run(["sleep", "60"], timeout_s=50)
        return TrialResult(outcome)

    for kind in (Kind.OK, Kind.LOST):
        assert in_time("measure", limit, 0.0, late, Outcome(kind)).outcome.kind is kind
    assert in_time("measure", limit, 0.0, late, Outcome(Kind.CRASH, "verify")).kind is Kind.TIMEOUT
    wrong = in_time("measure", limit, 0.0, lambda: TrialResult(Outcome(Kind.WRONG)))
    assert wrong.outcome.kind is Kind.WRONG

    def raises(error):
        process.run(["sleep", "60"], timeout_s=50)
        raise error

    stopped = in_time("prepare", limit, 0.0, raises, JobError("the tool was ended"))
    assert (stopped.kind, stopped.where) == (Kind.TIMEOUT, "prepare")
    with pytest.raises(JobError):
        in_time("prepare", Limit(60.0, ""), 0.0, lambda: (_ for _ in ()).throw(JobError("no compiler")))


def test_what_serves_others_has_no_deadline():
    with deadline.within(0.0) as end, deadline.none():
        assert not process.run(["true"], timeout_s=50).timed_out
    assert not end.struck
    with deadline.within(0.0) as end:
        assert process.run(["sleep", "60"], timeout_s=50).timed_out
    assert end.struck
    assert deadline.current() is None


def test_kernel_templates_do_not_race_each_other(tmp_path):
    told = []

    def race(alike, ended):
        told.append({name_of(done.trial) for done in alike})
        assert {id(done) for done in alike} <= {id(done) for done in ended}
        return ()

    with Journal.open(tmp_path, {}) as journal:
        list(search(a_search(journal, race=race)))
    assert told.count(set()) >= 2
    assert {*map(frozenset, told)} == {frozenset(), frozenset({"rows"}), frozenset({"columns"})}


def test_what_races_is_told_what_ended(tmp_path):
    """Each trial's race is made when it is asked, and is in the journal: a run that goes on has the same."""

    def race(alike, ended):
        return (Rung(1, ((0, float(len(ended) + 1)),)),)

    one = Arm(KERNELS["rows"], SPACES["rows"], [SPACES["rows"].at(3)])
    with Journal.open(tmp_path, {}) as journal:
        list(search(a_search(journal, arms=FixedArms([one]), race=race, budget=Budget(trials=5))))
    ended = store.read(tmp_path).ended(("micro", "f32", 0))
    bars = [rung.bars[0][1] for (rung,) in (end.trial.race for end in ended)]
    assert bars == [1.0, 2.0, 3.0, 4.0, 5.0]
