"""A template that fails in the library costs itself: the rest is chosen among again."""

from pathlib import Path

import pytest

from tensorop import deliver, finalists, probing, rechoice, search
from tensorop.author import offline
from tensorop.backends.null import Backend, Nowhere
from tensorop.finalists import Refused
from tensorop.model.case import Case
from tensorop.model.job import Job
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.model.verdict import Seed, Verdict
from tensorop.problems import of
from tensorop.runners.protocol import Entry
from tensorop.search import Ground
from tensorop.specs import platforms
from tensorop.store.journal import Journal
from tests.support.operators import gemm

WRONG = Outcome(Kind.WRONG, "verify", "wrong")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("job")
    operator, platform = gemm(), platforms.load("avx2")
    job = Job("gemm", "avx2", ("f32",), ((64, 64, 64), (8, 300, 70)), trials=24, out=folder)
    drafts = offline.drafts(operator.folder, operator.name, operator.added)
    with Journal.open(folder, {}) as journal:
        ground = Ground(job, operator, Backend(platform, Nowhere()), drafts, journal, Seed.draw(0), Path(folder))
        list(search.micro(ground, "f32"))
        kernels, problems = search.kernels(ground, "f32"), search.problems(ground, "f32")
        list(search.blocking(ground, "f32", kernels, problems))
        yield ground, finalists.winners(ground, "f32", kernels, problems)


def test_winners_are_chosen_again_without_a_template(found):
    ground, winners = found
    before: dict[str, set[str]] = {}
    refused = []
    given = [winners]
    while given:
        fault = Refused("f32", 0, WRONG)
        again = rechoice.without(ground, given, fault, before)
        refused.append(given[0].variants[0].draft.name)
        if again is None:
            break
        given, name = again
        assert name == refused[-1]
        assert not {variant.draft.name for variant in given[0].variants} & set(refused)
    assert len(refused) == len(set(refused)) > 1
    assert set(refused) == before["f32"]


def test_whose_case_failed(found):
    ground, winners = found
    problem = of(ground.operator, "f32", (64, 64, 64))
    forced = Verdict(WRONG, 0, 1, "", dtype="f32", case=Case(problem.with_options(variant=1)))
    fault = rechoice.of_verdict(ground, [winners], forced)
    assert fault is not None
    assert (fault.dtype, fault.number, fault.outcome) == ("f32", 1, WRONG)
    free = rechoice.of_verdict(ground, [winners], Verdict(WRONG, 0, 1, "", dtype="f32", case=Case(problem)))
    assert free is not None
    assert 0 <= free.number < len(winners.variants)
    assert rechoice.of_verdict(ground, [winners], Verdict(WRONG, 0, 1, "", dtype="f32")) is None


class Together(probing._Bench):
    """Outcomes of variants side by side, by their numbers."""

    def __init__(self, ground, given, outcomes):
        self.ground, self.given, self.outcomes = ground, given, outcomes
        self.entries = [Entry(0, (0, number)) for number in range(len(given.variants))]
        self.failed = []
        self.asked = []

    def _side_by_side(self, problem, numbers):
        self.asked.append(tuple(numbers))
        failing = [self.outcomes[number] for number in numbers if number in self.outcomes]
        return (
            failing[0]
            if failing
            else tuple({v: Samples("ns", 1.0, 1.0, 1.0) for v in self.ground.target.configurations} for _ in numbers)
        )


@pytest.mark.parametrize("kind", [Kind.WRONG, Kind.CRASH, Kind.TIMEOUT])
def test_a_variant_that_fails_beside_the_others_is_refused_by_its_number(found, kind):
    ground, winners = found
    outcome = Outcome(kind, "measure", "so it ended")
    probe = probing.Probe(of(ground.operator, "f32", (64, 64, 64)))
    with pytest.raises(Refused) as caught:
        Together(ground, winners, {1: outcome}).rows([probe])
    assert (caught.value.number, caught.value.outcome) == (1, outcome)


def test_a_variant_without_a_figure_is_noted_and_said(found):
    ground, winners = found
    before = len(ground.journal.history.notes)
    probe = probing.Probe(of(ground.operator, "f32", (64, 64, 64)), (0, 1))
    unsteady = Outcome(Kind.NOISY, "measure", "the clock drifts")
    assert Together(ground, winners, {1: unsteady}).rows([probe, probe]) == []
    told = ground.journal.history.notes[before:]
    assert {name for name, _ in told} == {"unmeasured"}
    assert [(data["variant"], data["kind"]) for _, data in told] == [(0, "noisy"), (1, "noisy")]
    said = list(deliver._unmeasured(ground, before))
    draft = winners.variants[1].draft.name
    assert said[1] == (
        f"f32: template '{draft}' (variant 1) has no figure for some shapes, which are left to the others: "
        "noisy: the clock drifts"
    )


def test_small_problems_that_are_left_to_the_choice_are_compared_too(found, monkeypatch):
    ground, winners = found
    monkeypatch.setattr(probing, "_Bench", lambda ground, _, given: Together(ground, given, {}))
    probing.compare(ground, Path("nowhere"), winners)
    name, data = ground.journal.history.notes[-1]
    compared = {tuple(row["dims"].values()) for row in data["rows"]}
    assert name == "dispatch"
    assert {(64, 64, 64), (8, 300, 70), (1, 64, 64), (128, 10, 4), (2, 2, 1000)} <= compared
    assert (4, 4, 4) not in compared  # the direct kernel serves it, whatever the choice
