"""A race among trials: where it halts, who goes on, and the cost that the tuner gets of a dropped trial."""

from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.point import Point
from tensorop.model.trial import Finished, Kind, Outcome, Rung, Samples, Score, Stage, Trial
from tensorop.store import records
from tensorop.trial import race

WORK = {"small": 1.0, "middle": 5.0, "large": 100.0}
COURSE = race.Course(WORK, dict.fromkeys(WORK, "all"))
VLENS = (128, 256)


def ended(costs: list[float], at_256: float = 1.0) -> Finished:
    """A trial with these costs an operation on the first problems, and at the longer vectors so many times as much."""
    found = {
        name: Samples("modelled-cycles", cost * work, cost, cost, by_vlen={128: cost * work, 256: cost * work * at_256})
        for cost, (name, work) in zip(costs, WORK.items(), strict=False)
    }
    kernel = Kernel(KernelTemplate("gemm", "d", "offline", "", "d"), "f32", Point.of({"mr_vectors": len(costs)}))
    trial = Trial("k", 0, Stage.BLOCKING, Variant(kernel))
    return Finished(trial, Outcome(Kind.OK), Score(race.Course(WORK, {}).score(found), found))


def test_a_race_halts_after_one_problem_of_each_class_and_after_two() -> None:
    work = {"d": 4.0, "a": 1.0, "c": 3.0, "b": 2.0, "f": 6.0, "e": 5.0}
    classes = {"a": "small", "b": "small", "c": "small", "d": "deep", "e": "deep", "f": "large"}
    course = race.Course.of(work, classes)
    assert list(course.work) == ["a", "d", "f", "b", "e", "c"]
    assert course.halts == (3, 5)
    assert race.Course.of({"a": 1.0}, {"a": "small"}).halts == ()
    assert race.Course.of(work, dict.fromkeys(work, "all")).halts == (1, 2)


def test_the_best_of_a_class_goes_on_however_bad_it_is_elsewhere() -> None:
    course = race.Course.of(WORK, {"small": "one", "middle": "two", "large": "two"})
    many = [ended([1.0, 1.0, 1.0]), *(ended([cost, 1.0]) for cost in (1.0, 1.1, 1.2, 1.3, 1.4))]
    (first, *_) = course.rungs(many, many, False, VLENS[:1])
    assert first.problems == 2
    assert course.goes_on(first, ended([50.0, 1.0]).score.per_problem)
    assert course.goes_on(first, ended([0.9, 50.0]).score.per_problem)
    assert not course.goes_on(first, ended([1.5, 1.5]).score.per_problem)


def test_the_first_trial_is_measured_on_everything() -> None:
    failed = Finished(ended([1.0]).trial, Outcome(Kind.WRONG), Score(None))
    for rung in (*COURSE.rungs([], [], False, VLENS), *COURSE.rungs([failed], [failed], False, VLENS)):
        assert COURSE.goes_on(rung, ended([1e9]).score.per_problem)


def test_the_best_third_goes_on() -> None:
    first = ended([4.0, 4.0, 4.0])
    (small, middle) = COURSE.rungs([first], [first], False, VLENS)
    assert small.problems == 1
    assert middle.problems == 2
    assert COURSE.goes_on(small, ended([4.0]).score.per_problem)
    assert not COURSE.goes_on(small, ended([4.1]).score.per_problem)
    many = [first, *(ended([cost]) for cost in (3.0, 2.0, 1.0, 5.0, 6.0))]
    (small, _) = COURSE.rungs(many, many, False, VLENS[:1])
    assert COURSE.goes_on(small, ended([2.0]).score.per_problem)
    assert not COURSE.goes_on(small, ended([2.1]).score.per_problem)
    (small, _) = COURSE.rungs(many, many, False, VLENS)  # of two VLENs each has half of that third
    assert COURSE.goes_on(small, ended([1.0]).score.per_problem)
    assert not COURSE.goes_on(small, ended([1.1]).score.per_problem)


def test_the_best_at_one_vlen_goes_on() -> None:
    (small, _) = COURSE.rungs([ended([4.0, 4.0, 4.0])], [], False, VLENS)
    assert COURSE.goes_on(small, ended([5.0], at_256=0.5).score.per_problem)


def test_what_is_exempt_falls_out_where_it_is_far_behind_at_every_vlen() -> None:
    everyone = [ended([4.0, 4.0, 4.0]), ended([8.0])]
    (small, _) = COURSE.rungs(everyone[1:], everyone, True, VLENS)
    assert COURSE.goes_on(small, ended([race.HOPELESS * 3.9]).score.per_problem)
    assert COURSE.goes_on(small, ended([race.HOPELESS * 5.0], at_256=0.7).score.per_problem)
    assert not COURSE.goes_on(small, ended([race.HOPELESS * 5.0]).score.per_problem)


def test_the_first_of_a_template_falls_out_where_it_is_far_behind_all_others() -> None:
    """Nobody of its own has been measured on all problems, since the one before fell out."""
    other, fell = ended([1.0, 1.0, 1.0]), ended([race.HOPELESS * 2.0])
    for alike in ([], [fell]):
        (small, middle) = COURSE.rungs(alike, [other, *alike], False, VLENS)
        assert COURSE.goes_on(small, ended([race.HOPELESS * 0.9]).score.per_problem)
        assert not COURSE.goes_on(small, ended([race.HOPELESS * 1.1]).score.per_problem)
        assert COURSE.goes_on(middle, ended([1.0, race.HOPELESS]).score.per_problem)


def test_who_fell_out_costs_what_all_problems_would() -> None:
    first = ended([1.0, 2.0, 4.0])
    (small, middle) = COURSE.rungs([first], [first], False, VLENS)
    assert abs(race.Course(WORK, {}).score(ended([1.0]).score.per_problem, small) - first.score.cost) < 1e-9
    assert abs(race.Course(WORK, {}).score(ended([1.0, 2.0]).score.per_problem, middle) - first.score.cost) < 1e-9


def test_what_was_measured_on_all_problems_is_before_what_fell_out() -> None:
    assert ended([9.0, 9.0, 9.0]).rank < ended([1.0, 1.0]).rank < ended([1.5, 1.5]).rank


def test_a_race_is_in_the_journal() -> None:
    plain = ended([1.0]).trial
    trial = Trial(
        plain.key, 0, plain.stage, plain.variant, (Rung(12, ((128, 3.5), (256, 2.25)), 1.5, (("deep", 128, 4.5),)),)
    )
    templates = {plain.variant.template.digest: plain.variant.template}
    assert records.trial_of(records.trial_record(trial), templates) == trial
    assert "race" not in records.trial_record(plain)


def test_a_slower_machine_lowers_the_bars() -> None:
    first = ended([4.0, 4.0, 4.0])
    (small, _) = COURSE.rungs([first], [first], False, VLENS)
    late = ended([5.0]).score.per_problem
    assert not COURSE.goes_on(small, late)
    assert COURSE.goes_on(small, late, slower=1.3)
