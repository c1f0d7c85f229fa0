"""What benchmarks/search_plots.py says of a journal."""

from __future__ import annotations

import itertools
import json
import math
import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import search_plots
from tensorop.measure import statistics
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.point import Point
from tensorop.model.trial import Finished, Kind, Outcome, Rung, Samples, Score, Stage, Trial
from tensorop.report import searches
from tensorop.specs import operators, platforms
from tensorop.store import journal

RECORDED = Path(__file__).parents[1] / "data" / "raced"  # rvv, three VLENs, blockings that raced, four templates
TEMPLATE = KernelTemplate("gemm", "t", "offline", "", "", {}, (), {}, ())


def ended(costs: list[float | None], problems: list[int] | None = None, race: tuple[Rung, ...] = ()) -> list[Finished]:
    """Trials with these costs, None for a failure, each measured on so many problems (one by default)."""
    found = []
    for number, cost in enumerate(costs):
        trial = Trial(str(number), 0, Stage.BLOCKING, Variant(Kernel(TEMPLATE, "f32", Point.of(n=number))), race)
        each = (
            {str(p): Samples("ns", cost + p, cost, cost) for p in range((problems or [1] * 99)[number])} if cost else {}
        )
        outcome = Outcome(Kind.OK if cost else Kind.WRONG, "measure")
        found.append(Finished(trial, outcome, Score(cost, each)))
    return found


@pytest.fixture(scope="module")
def found() -> dict[Stage, search_plots.Search]:
    history = journal.read(RECORDED)
    return {search.stage: search for search in search_plots.searches(platforms.load("rvv"), history)}


@pytest.mark.parametrize("costs", [[4.0, 2.0, 3.0, 1.0], [5.0, None, 2.0, None, 3.0], [1.0], [None, None], [None, 7.0]])
def test_random_order_is_the_mean_over_all_orders(costs: list[float | None]) -> None:
    found = searches.random_order(ended(costs))
    for drawn in range(1, len(costs) + 1):
        bests = [min(filter(None, order[:drawn]), default=None) for order in itertools.permutations(costs)]
        logs = [math.log(best) for best in bests if best is not None]
        expected = math.exp(sum(logs) / len(logs)) if logs else None
        assert found[drawn - 1] == (None if expected is None else pytest.approx(expected))


def test_random_order_ranks_as_the_search_does() -> None:
    """A cost that one problem says is not better than a cost that two say."""
    assert searches.random_order(ended([1.0, 5.0], [1, 2]))[-1] == pytest.approx(5.0)
    assert searches.random_order(ended([1.0, 5.0], [1, 1]))[-1] == pytest.approx(1.0)


def test_how_soon_it_was_near_its_best() -> None:
    trials = ended([9.0, 1.0, None, 5.2, 5.0, 7.0], [2, 1, 2, 2, 2, 2])
    # the best of two problems is 5.0; two of six are within 5 %, the 4th first; in random order one comes after 7/3
    assert search_plots.near_best(trials) == (4, pytest.approx(7 / 3))
    assert search_plots.near_best(ended([None])) is None


def test_halts_count_who_came_and_who_fell() -> None:
    race = (Rung(1), Rung(2, ((128, 7.5),), 1.1))
    trials = ended([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 8.0], [3, 3, 3, 3, 3, 2, 1, 1], race)
    first, second, end = search_plots.halts(trials)
    assert (first.problems, first.came, first.ended, first.bars) == (1, 8, 2, {})
    assert (second.problems, second.came, second.ended, second.bars) == (2, 6, 1, {128: 7.5})
    assert (end.problems, end.came, end.ended, end.bars) == (3, 5, 5, {})
    assert first.tau == second.tau == pytest.approx(1.0)
    assert end.tau is None
    turned = [replace(f, score=replace(f.score, per_problem=dict(_turned(f, i)))) for i, f in enumerate(trials)]
    assert search_plots.halts(turned)[0].tau == pytest.approx(-1.0)


def _turned(finished: Finished, number: int) -> list[tuple[str, Samples]]:
    """The first problem says the opposite of the others."""
    each = list(finished.score.per_problem.items())
    return [
        ("0", Samples("ns", (number + 1) ** -0.5, 1, 1)),
        *[(n, replace(s, value=1e3 * s.value)) for n, s in each[1:]],
    ]


def test_a_recorded_search_is_told(found: dict[Stage, search_plots.Search]) -> None:
    assert {stage.value for stage in found} == {"micro", "blocking", "single-vlen", "smallest"}
    micro, blocking = found[Stage.MICRO], found[Stage.BLOCKING]
    passed = [cost for trial in micro.trials if (cost := search_plots.cost_of(trial))]
    assert micro.costs()[-1] == min(passed) == pytest.approx(searches.random_order(micro.trials)[-1])
    assert searches.random_order(micro.trials)[0] == pytest.approx(statistics.geomean(passed))
    assert micro.bound is not None
    assert micro.bound <= min(passed)
    assert found[Stage.SINGLE_VLEN].bound is None
    halts = search_plots.halts(blocking.trials)
    came = [halt.came for halt in halts]
    assert came == sorted(came, reverse=True)
    assert came[0] == sum(trial.outcome.ok for trial in blocking.trials) == sum(halt.ended for halt in halts)
    on = Counter(len(trial.score.per_problem) for trial in blocking.trials if trial.outcome.ok)
    assert {halt.problems: halt.ended for halt in halts} == on


def test_shares_add_up() -> None:
    """Of a cost that one tunable makes, the other has next to none."""
    trials = []
    for number, finished in enumerate(ended([1.0 + n % 5 for n in range(40)])):
        variant = Variant(Kernel(TEMPLATE, "f32", Point.of(by=number % 5, other=number % 3)))
        trials.append(replace(finished, trial=replace(finished.trial, stage=Stage.MICRO, variant=variant)))
    score, of_each = search_plots.shares(trials, of_kernels=True)
    assert sum(of_each.values()) == pytest.approx(1)
    assert of_each["by"] > 0.9
    assert score > 0.9


def test_predictions_are_of_shapes_left_out() -> None:
    said = search_plots.left_out(operators.load("gemm"), platforms.load("rvv"), journal.read(RECORDED))
    assert [one.vlen for one in said] == [128, 256, 512]
    for one in said:
        off = sorted(one.off)
        assert off[0] > 1e-9  # a model that had seen the shape would say what was measured of a problem alone
        assert math.log1p(one.error) == pytest.approx(statistics.quartiles(off)[1])
        assert one.close == pytest.approx(sum(x <= math.log(1.1) for x in off) / len(off))
        assert one.ordered > 0.6
        assert one.error < 0.3


def test_costs_that_mean_nothing_are_not_predicted(tmp_path: Path) -> None:
    """The same journal with every cost drawn at random: the figures show it."""
    shutil.copytree(RECORDED, tmp_path / "run")
    path = journal.journal_path(tmp_path / "run")
    rng = random.Random(1)

    def spoiled(line: str) -> str:
        record = json.loads(line)
        for samples in record.get("score", {}).get("per_problem", {}).values() if record["event"] == "finished" else ():
            samples["value"] *= (factor := math.exp(rng.uniform(-2, 2)))
            samples["by_vlen"] = {vlen: factor * cost for vlen, cost in samples.get("by_vlen", {}).items()}
        for row in record["data"]["rows"] if record.get("name") == "dispatch" else ():
            row["costs"] = [cost and cost * math.exp(rng.uniform(-2, 2)) for cost in row["costs"]]
        return json.dumps(record)

    path.write_text("".join(spoiled(line) + "\n" for line in path.read_text().splitlines()))
    said = search_plots.left_out(operators.load("gemm"), platforms.load("rvv"), journal.read(tmp_path / "run"))
    assert said
    assert all(one.error > 0.5 and one.ordered < 0.75 for one in said)


def test_the_page_and_the_tables_have_all_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(search_plots, "shares", lambda *_: (0.5, {"mr_vectors": 1.0}))  # which takes most of the time
    monkeypatch.setattr("sys.argv", ["search_plots.py", str(RECORDED), "--out", str(tmp_path / "page.html")])
    search_plots.main()
    text, printed = (tmp_path / "page.html").read_text(), capsys.readouterr().out
    for words in ("How soon it was good", "Where the seconds went", "What moved the cost", "Predicted and measured"):
        assert words in text
    assert "in random order" in text
    assert "probes, f32" in text
    assert text.count("<svg") == 4
    assert "f32 lanes: no point, rvv lacks load_low" in printed
    assert "points are legal" in printed


def test_a_search_of_one_trial_has_no_curve() -> None:
    lone = search_plots.Search(Stage.MICRO, "f32", ended([1.0]), None)
    assert search_plots.anytime([lone]) == search_plots.steps([lone], {}) == search_plots.importance([lone]) == ""
    assert search_plots.predicted([]) == ""
