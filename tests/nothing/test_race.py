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
    wide = race.Course.of({"least": 1.0, "less": 40.0, "median": 100.0, "more": 200.0, "most": 1e3}, {})
    assert list(wide.work) == ["median", "least", "less", "more", "most"]  # the cheapest says nothing about its class
    assert race.Course.of(work, dict.fromkeys(work, "all")).halts == (1, 2)


def test_the_first_trial_is_measured_on_everything() -> None:
    failed = Finished(ended([1.0]).trial, Outcome(Kind.WRONG), Score(None))
    for rung in (*COURSE.rungs([], [], VLENS), *COURSE.rungs([failed], [failed], VLENS)):
        assert COURSE.goes_on(rung, ended([1e9]).score.per_problem)


def test_the_better_half_goes_on_in_all_classes_and_others_in_those_where_they_are_near_the_best() -> None:
    course = race.Course.of(WORK, {"small": "one", "middle": "two", "large": "two"})
    many = [ended([1.0, 1.0, 1.0]), *(ended([cost, cost]) for cost in (1.1, 1.2, 1.3, 1.4))]
    (first,) = course.rungs(many, many, VLENS[:1])
    assert first.problems == 2
    assert course.goes_on(first, ended([1.0, 1.3]).score.per_problem) == {"one", "two"}
    assert course.goes_on(first, ended([race.NEAR * 0.99, 50.0]).score.per_problem) == {"one"}
    assert course.goes_on(first, ended([50.0, race.NEAR * 0.99]).score.per_problem) == {"two"}
    assert not course.goes_on(first, ended([race.NEAR * 1.01, race.NEAR * 1.01]).score.per_problem)
    (first,) = course.rungs(many, many, VLENS)  # of two VLENs each has half of that half
    assert course.goes_on(first, ended([1.2, 1.4]).score.per_problem) == {"one"}


def test_a_template_that_is_far_behind_goes_on_nowhere() -> None:
    other, own = ended([1.0, 1.0, 1.0]), [ended([race.FAR * cost]) for cost in (1.1, 1.2, 1.3, 1.4)]
    (small, _) = COURSE.rungs(own, [other, *own], VLENS[:1])
    assert not COURSE.goes_on(small, ended([race.FAR * 1.05]).score.per_problem)


def test_the_problems_that_are_due_are_those_of_the_classes_where_it_goes_on() -> None:
    course = race.Course.of(WORK, {"small": "one", "middle": "two", "large": "two"})
    (first,) = course.rungs([ended([1.0, 1.0, 1.0])], [ended([1.0, 1.0, 1.0])], VLENS[:1])
    assert course.due({"one", "two"}, {}, first) == ["small", "middle"]
    found = ended([1.0, 9.0]).score.per_problem
    assert course.due({"two"}, found, None) == ["large"]
    assert course.due({"one"}, found, None) == []


def test_the_best_at_one_vlen_goes_on() -> None:
    first = ended([4.0, 4.0, 4.0])
    (small, _) = COURSE.rungs([first], [first], VLENS)
    assert not COURSE.goes_on(small, ended([6.0]).score.per_problem)
    assert COURSE.goes_on(small, ended([6.0], at_256=0.5).score.per_problem)


def test_the_first_of_a_template_falls_out_where_it_is_far_behind_all_others() -> None:
    other, fell = ended([1.0, 1.0, 1.0]), ended([race.NEAR * 2.0])
    for alike in ([], [fell]):
        (small, middle) = COURSE.rungs(alike, [other, *alike], VLENS)
        assert COURSE.goes_on(small, ended([race.NEAR * 0.99]).score.per_problem)
        assert not COURSE.goes_on(small, ended([race.NEAR * 1.6]).score.per_problem)
        assert COURSE.goes_on(middle, ended([1.0, race.NEAR]).score.per_problem)


def test_who_fell_out_costs_what_all_problems_would() -> None:
    first = ended([1.0, 2.0, 4.0])
    (small, middle) = COURSE.rungs([first], [first], VLENS)
    assert abs(COURSE.score(ended([1.0]).score.per_problem, dict(small.beyond)) - first.score.cost) < 1e-9
    assert abs(COURSE.score(ended([1.0, 2.0]).score.per_problem, dict(middle.beyond)) - first.score.cost) < 1e-9


def test_what_was_measured_on_all_problems_is_before_what_fell_out() -> None:
    assert ended([9.0, 9.0, 9.0]).rank < ended([1.0, 1.0]).rank < ended([1.5, 1.5]).rank


def test_a_race_is_in_the_journal() -> None:
    plain = ended([1.0]).trial
    trial = Trial(
        plain.key,
        0,
        plain.stage,
        plain.variant,
        (Rung(12, ((128, 3.5), (256, 2.25)), (("deep", 1.5),), (("deep", 128, 4.5),)),),
        ("16x16x16 f32", "32x32x32 f32"),
    )
    templates = {plain.variant.template.digest: plain.variant.template}
    assert records.trial_of(records.trial_record(trial), templates) == trial
    assert not {"race", "only"} & records.trial_record(plain).keys()


def test_a_slower_machine_lowers_the_bars() -> None:
    first = ended([4.0, 4.0, 4.0])
    (small, _) = COURSE.rungs([first], [first], VLENS)
    late = ended([6.0]).score.per_problem
    assert not COURSE.goes_on(small, late)
    assert COURSE.goes_on(small, late, slower=1.3)
