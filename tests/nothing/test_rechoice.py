"""A template that fails in the library costs itself: the rest is chosen among again."""

from pathlib import Path

import pytest

from tensorop import finalists, rechoice, search
from tensorop.author import offline
from tensorop.finalists import Refused
from tensorop.model.case import Case
from tensorop.model.job import Job
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed, Verdict
from tensorop.problems import of
from tensorop.runners.null import Null
from tensorop.search import Ground
from tensorop.specs import platforms
from tensorop.store.journal import Journal
from tensorop.target import Target
from tests.support.operators import gemm

WRONG = Outcome(Kind.WRONG, "verify", "wrong")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("job")
    operator, platform = gemm(), platforms.load("avx2")
    job = Job("gemm", "avx2", ("f32",), ((64, 64, 64), (8, 300, 70)), trials=24, out=folder)
    drafts = offline.drafts(operator.folder, operator.name, operator.added)
    with Journal.open(folder, {}) as journal:
        ground = Ground(job, operator, Target(platform, Null(), None), drafts, journal, Seed.draw(0), Path(folder))
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
