"""A template that fails in the library costs itself: the rest is chosen among again."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tensorop import pipeline
from tensorop.author import offline
from tensorop.backends.null import Backend, Nowhere
from tensorop.dispatch import inside, probing, winners
from tensorop.dispatch.evidence import RefusedVariant
from tensorop.job import deliver
from tensorop.model.case import Case
from tensorop.model.job import Job
from tensorop.model.trial import Kind, Outcome, Samples, Stage
from tensorop.model.verdict import Seed, Verdict
from tensorop.runners.protocol import Entry
from tensorop.search import stages
from tensorop.search.loop import conduct
from tensorop.search.task import JobContext
from tensorop.space.problems import of
from tensorop.specs import platforms
from tensorop.store.journal import Journal
from tests.support.operators import gemm

WRONG = Outcome(Kind.WRONG, "verify", "wrong")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("job")
    operator, platform = gemm(), platforms.load("avx2")
    job = Job("gemm", "avx2", ("f32",), ((64, 64, 64), (8, 300, 70)), trials=24, out=folder)
    templates = offline.templates(operator.folder, operator.name, operator.added)
    with Journal.open(folder, {}) as journal:
        target, passes = Backend(platform, Nowhere()), pipeline.passes(operator)
        task = JobContext(job, operator, target, passes, templates, journal, Seed.draw(0), Path(folder)).task("f32")
        for part in (stages.MICRO, stages.BLOCKING):
            list(conduct(task, Stage(part.name), part.plan(task)))
        yield task, winners.first(task)


def test_winners_are_chosen_again_without_a_template(found):
    task, given = found
    before: set[str] = set()
    refused = []
    while given:
        refused.append(given.variants[0].template.name)
        given = winners.without(task, given, 0, before)
        assert given is None or not {variant.template.name for variant in given.variants} & set(refused)
    assert len(refused) == len(set(refused)) > 1
    assert set(refused) == before


def test_the_direct_variant_falls_alone(found):
    task, given = found
    kernel = given.variants[0].kernel
    kernel = replace(kernel, template=replace(kernel.template, name=offline.DIRECT))
    direct = replace(given, direct=replace(given.variants[0], kernel=kernel))
    before: set[str] = set()
    again = winners.without(task, direct, len(given.variants), before)
    assert again is not None
    assert again.direct is None
    assert again.variants == given.variants
    assert before == {offline.DIRECT}


def test_whose_case_failed(found):
    task, given = found
    problem = of(task.operator, "f32", (64, 64, 64))
    forced = Verdict(WRONG, 0, 1, "", dtype="f32", case=Case(problem.with_options(variant=1)))
    fault = winners.culprit(task.operator, [given], forced)
    assert fault is not None
    assert (fault.dtype, fault.number, fault.outcome) == ("f32", 1, WRONG)
    free = winners.culprit(task.operator, [given], Verdict(WRONG, 0, 1, "", dtype="f32", case=Case(problem)))
    assert free is not None
    assert 0 <= free.number < len(given.variants)
    assert winners.culprit(task.operator, [given], Verdict(WRONG, 0, 1, "", dtype="f32")) is None


def test_the_library_is_built_again_without_a_variant_that_fails_while_it_is_measured(found, monkeypatch):
    task, given = found
    staged, failed = [], given.variants[0].template.name

    def measure(task, library, winners):
        if any(variant.template.name == failed for variant in winners.variants):
            raise RefusedVariant(winners.dtype, 0, WRONG)

    def verify(*_):
        return [Verdict(Outcome(Kind.OK), 1, 1, "", dtype="f32")]
        yield

    monkeypatch.setattr(
        deliver, "_stage", lambda _, winners: staged.append(winners) or SimpleNamespace(library=Path("nowhere"))
    )
    monkeypatch.setattr(deliver, "_verify", verify)
    monkeypatch.setattr(deliver.publish, "discard", lambda _: None)
    fails = replace(probing.PASS, measure=measure, summary=None, wanted=lambda _: True)
    measured = replace(task, passes=(*(one for one in task.passes if one.measure is None), fails))
    events = list(deliver._proven(measured, {"f32": measured}, [given]))
    assert any(f"template '{failed}' passed its trials but failed" in getattr(one, "text", "") for one in events)
    assert len(staged) == 3  # with it, and twice without: to measure and to publish
    assert all(v.template.name != failed for w in staged[1:] for of_dtype in w for v in of_dtype.variants)


class Together(inside.LibraryBench):
    """Outcomes of variants side by side, by their numbers."""

    def __init__(self, task, given, outcomes):
        self.task, self.given, self.outcomes = task, given, outcomes
        self.entries = [Entry(0, (0, number)) for number in range(len(given.variants))]
        self.failed = []
        self.asked = []

    def _side_by_side(self, problem, numbers):
        self.asked.append(tuple(numbers))
        failing = [self.outcomes[number] for number in numbers if number in self.outcomes]
        return (
            failing[0]
            if failing
            else tuple({v: Samples("ns", 1.0, 1.0, 1.0) for v in self.task.target.vlens} for _ in numbers)
        )


@pytest.mark.parametrize("kind", [Kind.WRONG, Kind.CRASH, Kind.TIMEOUT])
def test_a_variant_that_fails_beside_the_others_is_refused_by_its_number(found, kind):
    task, given = found
    outcome = Outcome(kind, "measure", "so it ended")
    probe = inside.Probe(of(task.operator, "f32", (64, 64, 64)))
    with pytest.raises(RefusedVariant) as caught:
        Together(task, given, {1: outcome}).rows([probe])
    assert (caught.value.number, caught.value.outcome) == (1, outcome)


def test_a_variant_without_a_figure_is_noted_and_said(found):
    task, given = found
    before = len(task.journal.history.notes)
    probe = inside.Probe(of(task.operator, "f32", (64, 64, 64)), (0, 1))
    unsteady = Outcome(Kind.NOISY, "measure", "the clock drifts")
    assert Together(task, given, {1: unsteady}).rows([probe, probe]) == {}
    told = task.journal.history.notes[before:]
    assert {name for name, _ in told} == {"unmeasured"}
    assert [(data["variant"], data["kind"]) for _, data in told] == [(0, "noisy"), (1, "noisy")]
    said = list(deliver._unmeasured(task, before))
    template = given.variants[1].template.name
    assert said[1] == (
        f"f32: template '{template}' (variant 1) could not be measured on some shapes, which other variants serve: "
        "noisy: the clock drifts"
    )


def test_small_problems_that_are_left_to_the_choice_are_compared_too(found, monkeypatch):
    task, given = found
    monkeypatch.setattr(probing, "LibraryBench", lambda task, _, given: Together(task, given, {}))
    probing.compare(task, Path("nowhere"), given)
    name, data = task.journal.history.notes[-1]
    compared = {tuple(row["dims"].values()) for row in data["rows"]}
    assert name == "dispatch"
    assert {(64, 64, 64), (8, 300, 70), (1, 64, 64), (128, 10, 4), (2, 2, 1000)} <= compared
    assert (4, 4, 4) not in compared  # the direct kernel serves it, whatever the choice


def test_probes_of_a_number_of_trials_are_as_many_as_their_share(found, monkeypatch):
    task, given = found
    asked = []

    class Counted(Together):
        def rows(self, probes):
            asked.append(list(probes))
            return super().rows(probes)

    monkeypatch.setattr(probing, "LibraryBench", lambda task, _, given: Counted(task, given, {}))
    monkeypatch.setattr(
        type(task.target), "budgets", replace(task.target.budgets, probe_flops=1e7, random_probe_flops=1e7)
    )
    many = replace(task, job=replace(task.job, trials=200))
    assert many.share(probing.PASS.share).trials == 60
    probing.probe(many, Path("nowhere"), given)
    assert [len(batch) for batch in asked] == [24, 24, 12]
    assert len({probe.problem for batch in asked for probe in batch}) >= 58  # a small shape may be drawn twice
    notes = [data for _, data in task.journal.history.notes if "asked" in data]
    assert [data["done"] for data in notes[-3:]] == [False, False, True]
    probing.probe(many, Path("nowhere"), given)  # what an earlier process measured counts
    assert len(asked) == 3
