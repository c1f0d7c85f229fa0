"""Budgets and the bandit, neither of which looks at a clock of its own."""

import pytest

from tensorop.errors import UsageError
from tensorop.model.budget import Budget, parse_seconds
from tensorop.process.clock import Clock
from tensorop.search.arms import Bandit


@pytest.mark.parametrize(
    ("text", "seconds"), [("2.5s", 2.5), ("90s", 90), ("3m", 180), ("1h30m", 5400), ("0.5m", 30), ("200ms", 0.2)]
)
def test_times(text, seconds):
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "m", "3 m", "-3m", "3x", "1m or so", "0x10", "\u0665s"])
def test_no_times(text):
    with pytest.raises(UsageError, match="expected a time"):
        parse_seconds(text)


@pytest.mark.parametrize("text", ["2", "90", "0.5", " 2 "])
def test_a_number_alone_is_asked_back(text):
    with pytest.raises(UsageError, match=f"{text.strip()}s or {text.strip()}m"):
        parse_seconds(text)


@pytest.mark.parametrize("limits", [{}, {"seconds": 0.0}, {"seconds": -1.0}, {"trials": 0}, {"seconds": float("inf")}])
def test_no_budgets(limits):
    with pytest.raises(UsageError, match=r"--budget|--trials|limit"):
        Budget(**limits)


def test_shares_keep_a_trial():
    assert Budget(trials=3).share(0.1) == Budget(trials=1)
    assert Budget(seconds=100.0, trials=10).share(0.25) == Budget(seconds=25.0, trials=2)


def test_a_clock_goes_on_from_what_was_spent():
    clock = Clock(Budget(seconds=100.0, trials=3), seconds=90.0, trials=2)
    assert clock.trials_left == 1
    assert clock.seconds_left(45.0) == pytest.approx(10.0, abs=1.0)
    assert clock.seconds_left(4.0) == pytest.approx(4.0)
    assert clock.seconds_left(45.0, due=1) == pytest.approx(45.0)
    assert clock.seconds_left(45.0, due=7) == pytest.approx(45.0)  # the budget allows one more
    clock.trials += 1
    assert clock.trials_left == 0
    assert Clock(Budget(seconds=5.0), seconds=6.0).out_of_time


def test_a_clock_counts_the_trials_that_time_is_left_for():
    assert Clock(Budget(seconds=100.0), seconds=80.0, trials=10).trials_in_time == 3  # 2.5 at the pace so far
    assert Clock(Budget(seconds=100.0), seconds=180.0, trials=10).trials_in_time == 0
    assert Clock(Budget(seconds=100.0)).trials_in_time is None
    assert Clock(Budget(trials=100), seconds=1.0, trials=10).trials_in_time is None


def bandits(*names, **more):
    bandit = Bandit()
    for name in names:
        bandit.add(name, **more)
    return bandit


def pull(costs, trials, points=1000):
    bandit, tried = bandits(*costs), dict.fromkeys(costs, 0)
    for _ in range(trials):
        arm = bandit.choose()
        if arm is None:
            break
        bandit.tell(arm, costs[arm](tried[arm]))
        tried[arm] += 1
        if tried[arm] == points:
            bandit.exhaust(arm)
    return tried


def test_the_better_arm_gets_most_and_no_arm_starves():
    trials = pull({"slow": lambda n: 300.0, "fast": lambda n: 100.0 - n / 10, "broken": lambda n: None}, 60)
    assert trials["fast"] > 35
    assert min(trials.values()) >= 4


def test_equal_arms_share():
    trials = pull({"a": lambda n: 100.0, "b": lambda n: 100.0}, 41)
    assert abs(trials["a"] - trials["b"]) <= 1


def test_exhausted_arms_end_the_search():
    assert pull({"a": lambda n: 1.0, "b": lambda n: None}, 100, points=5) == {"a": 5, "b": 5}
    assert Bandit().choose() is None


def test_trials_under_way_count_for_an_arms_first_few() -> None:
    bandit = bandits("one", "two", floor=1)
    assert bandit.choose() == "one"
    assert bandit.choose({"one": 1}) == "two"
    assert bandit.choose(dry={"one"}) == "two"
    assert bandit.choose(dry={"one", "two"}) is None
