"""What a job says first: how long it will take, and that it learns from the jobs before it."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tensorop import pipeline
from tensorop.backends import qemu, reach
from tensorop.events import Done, Event, Note, Phase, Trying
from tensorop.job import forecast, reckoning
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel, KernelTemplate
from tensorop.model.search_events import EndReason, Exhausted, SearchEnded
from tensorop.specs import operators, platforms

OPERATOR = operators.load("gemm")
KERNEL = Kernel(KernelTemplate("gemm", "outer", "offline", "", ""), "f32")
SHAPES = ((64, 64, 64), (256, 256, 256))


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path))
    monkeypatch.setattr("os.cpu_count", lambda: forecast.CORES)


def plan(platform: str = "rvv", operator: str = "gemm", **wish: object) -> forecast.Forecast:
    job = Job(operator, platform=platform, **{"shapes": SHAPES, **wish})  # type: ignore[arg-type]
    of = operators.load(operator)
    found = forecast.forecast(job, of, reach(platforms.load(platform), None), pipeline.passes(OPERATOR))
    assert found is not None
    return found


@pytest.mark.parametrize("platform", ["rvv", "generic"])
def test_every_part_is_in_the_first_line(platform: str) -> None:
    said = str(plan(platform))
    assert said.startswith("about ")
    for part in ("set-up", "search", "verification", "comparison"):
        assert part in said
    assert platform == "rvv" or "2.0 min search" in said
    assert "search" not in str(plan(platform, no_search=True))
    assert " tunables, " in str(plan(platform, "blas"))
    assert " tunables, " not in str(plan(platform, "blas", no_search=True)) + said


def test_more_work_takes_longer() -> None:
    usual, small = plan(), plan(dtypes=("f32",), budget_s=30.0)
    assert sum(small.seconds.values()) < sum(usual.seconds.values())
    assert plan("generic", budget_s=600.0).seconds["search"] == pytest.approx(600.0)
    # a budget is a wish: seeds are tried whatever it is
    assert plan(budget_s=0.1).seconds["search"] > 1.0


@pytest.mark.parametrize("platform", ["rvv", "generic"])
def test_a_trial_of_the_smallest_problems_is_built_and_started_all_the_same(platform: str) -> None:
    job = Job("gemm", platform=platform, shapes=((4, 4, 4),))
    small = forecast.forecast(job, OPERATOR, reach(platforms.load(platform), None), pipeline.passes(OPERATOR))
    assert small is not None
    rate = reach(platforms.load(platform)).budgets.part_seconds["blocking"]
    assert 0.3 < rate * small.sizes["blocking"] < rate * plan(platform).sizes["blocking"]
    # so that a job of such problems, whose trials take seconds, says nothing absurd of a job of large ones
    assert plan(platform).sizes["blocking"] < 20 * small.sizes["blocking"]


SUITE = tuple(map(tuple, operators.load("gemm").suites["quick"]))


def test_a_search_takes_what_its_first_trials_do_whatever_the_budget() -> None:
    """Those on the suite alone outlast ten seconds."""
    found = plan(shapes=SUITE, budget_s=10.0)
    rates = qemu.Backend.budgets.part_seconds
    assert found.seconds["search"] > 2 * sum(rates[name] * found.sizes[name] for name in ("micro", "blocking")) > 0
    assert found.seconds["search"] > 10
    # only the parts with a budget of their own become shorter
    assert found.seconds["search"] > plan(shapes=SUITE, budget_s=5.0).seconds["search"] > found.seconds["search"] - 5


def test_more_cores_take_less(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = plan(shapes=SUITE)
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    assert plan(shapes=SUITE, jobs=8).seconds["verification"] == pytest.approx(usual.seconds["verification"] / 4)
    # one process at a time is on the clock, however many may be
    assert plan("generic", jobs=8).seconds["comparison and report"] == plan("generic").seconds["comparison and report"]


def test_a_pretending_runner_has_none() -> None:
    job = Job("gemm", platform="generic", shapes=SHAPES)
    assert forecast.forecast(job, OPERATOR, reach(platforms.load("generic"), "null"), ()) is None


def events(early: bool) -> Generator[Event, None, None]:
    yield Phase("tools")
    yield Phase("verification")
    time.sleep(0.01)
    yield Phase("comparison")
    yield Done(Path(), None, None, early=early)


def test_what_a_job_took_is_what_the_next_one_will_take() -> None:
    before = plan()
    told = list(reckoning.watched(events(early=False), before))
    (phase,) = [event for event in told if isinstance(event, Phase) and event.name == "verification"]
    assert phase.seconds == before.seconds["verification"]
    after = plan()
    assert 0 < after.seconds["verification"] < before.seconds["verification"]
    assert plan(dtypes=("f32",)).seconds["verification"] == pytest.approx(after.seconds["verification"] / 2)
    assert after.seconds["library"] == before.seconds["library"]


def test_a_job_that_was_stopped_teaches_nothing() -> None:
    before = plan()
    list(reckoning.watched(events(early=True), before))
    assert plan().seconds == before.seconds


def a_run(plan: forecast.Forecast, slowness: float) -> tuple[list[str], float]:
    """What a job says of its time whose parts take `slowness` times what was forecast, and the time it takes."""
    seconds = 0.0

    def run() -> Generator[Event, None, None]:
        nonlocal seconds
        yield Phase("tools")
        seconds += plan.seconds["set-up"]
        for dtype in plan.stages["micro"][0]:
            for stage, (dtypes, budget, work) in plan.stages.items():
                if dtype in dtypes:
                    yield Phase(f"{stage} {dtype}")
                    yield Trying(stage, dtype, "", Exhausted(KERNEL))
                    seconds += max(budget, work * slowness) / len(dtypes)
                    yield Trying(stage, dtype, "", SearchEnded(EndReason.BUDGET, None, 1, 0.0))
        yield Phase("library")
        seconds += plan.seconds["library"] * slowness
        for stage, (dtypes, budget, _) in plan.stages.items():
            if dtypes == ("",):  # it measures inside the library
                yield Phase(stage)
                seconds += budget
        for part in ("verification", "comparison"):
            yield Phase(part)
            seconds += plan.seconds[plan.part(part)] * slowness
        yield Done(Path(), None, None, early=True)

    told = list(reckoning.watched(run(), plan, lambda: seconds))
    return [event.text for event in told if isinstance(event, Note)], seconds


def test_a_job_as_it_was_forecast_says_no_more_of_it() -> None:
    assert a_run(plan(), 1.0)[0] == []


def test_a_slow_job_says_so_as_it_goes() -> None:
    before = plan(budget_s=5.0)
    remarks, took = a_run(before, 6.0)
    assert took > 3 * sum(before.seconds.values())
    assert remarks
    assert all(text.startswith("new forecast: about ") for text in remarks)
    assert f"about {forecast.about(took)} in total" in remarks[-1]
    assert "verification" in remarks[0]


def test_a_busy_machine_is_named_before_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (64.0, 0.0, 0.0))
    for platform, effect in (("generic", "timings of this job are unreliable"), ("rvv", "job takes longer")):
        seen = []
        for event in pipeline.run(Job("gemm", platform=platform, shapes=SHAPES, out=tmp_path / platform)):
            if isinstance(event, Phase) and event.name == "tools":
                break
            seen += [event.text] if isinstance(event, Note) else []
        assert any("64.0 processes compete" in text and effect in text for text in seen), seen
