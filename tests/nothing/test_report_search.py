"""What the report says of a search: how soon it was good, where its seconds went, who won, what models predict."""

from __future__ import annotations

import itertools
import json
import math
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tensorop.commands import report
from tensorop.measure import statistics
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.point import Point
from tensorop.model.trial import Finished, Kind, Outcome, Rung, Samples, Score, Stage, Trial
from tensorop.report import anytime, choices, curves, importance, predicted, roofline
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
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """Without the forest, which takes most of a report's time (test_report.py has it)."""
    folder = tmp_path_factory.mktemp("told") / "run"
    shutil.copytree(RECORDED, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importance, "parameters", lambda _: [])
        record, page = report.report(folder)
    return json.loads(json.dumps(record, allow_nan=False)), page.read_text()


@pytest.mark.parametrize("costs", [[4.0, 2.0, 3.0, 1.0], [5.0, None, 2.0, None, 3.0], [1.0], [None, None], [None, 7.0]])
def test_random_order_is_the_mean_over_all_orders(costs: list[float | None]) -> None:
    found = anytime.random_order(ended(costs))
    for drawn in range(1, len(costs) + 1):
        bests = [min(filter(None, order[:drawn]), default=None) for order in itertools.permutations(costs)]
        logs = [math.log(best) for best in bests if best is not None]
        expected = math.exp(sum(logs) / len(logs)) if logs else None
        assert found[drawn - 1] == (None if expected is None else pytest.approx(expected))


def test_random_order_ranks_as_the_search_does() -> None:
    """A cost that one problem says is not better than a cost that two say."""
    assert anytime.random_order(ended([1.0, 5.0], [1, 2]))[-1] == pytest.approx(5.0)
    assert anytime.random_order(ended([1.0, 5.0], [1, 1]))[-1] == pytest.approx(1.0)


def test_how_soon_it_was_near_its_best() -> None:
    trials = ended([9.0, 1.0, None, 5.2, 5.0, 7.0], [2, 1, 2, 2, 2, 2])
    best = min((f for f in trials if f.outcome.ok), key=lambda f: f.rank)
    assert best.score.cost == 5.0
    # the 4th is within 5 %; two of six are: the first of them comes after 7/3 trials on average
    assert anytime.near_best(trials, best) == {"search": 4, "random": 2.3}
    assert anytime.near_best(ended([None]), None) is None


def test_halts_count_who_came_and_who_fell() -> None:
    race = (Rung(1), Rung(2, ((128, 7.5),), 1.1))
    trials = ended([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 8.0], [3, 3, 3, 3, 3, 2, 1, 1], race)
    told = {halt.pop("problems"): halt for halt in anytime.halts(trials)}
    assert {problems: (halt["came"], halt["ended"], halt["bars"]) for problems, halt in told.items()} == {
        1: (8, 2, {}),
        2: (6, 1, {128: 7.5}),
        3: (5, 5, {}),
    }
    assert told[1]["tau"] == told[2]["tau"] == pytest.approx(1.0)
    assert told[3]["tau"] is None
    turned = [replace(f, score=replace(f.score, per_problem=dict(_turned(f, i)))) for i, f in enumerate(trials)]
    assert anytime.halts(turned)[0]["tau"] == pytest.approx(-1.0)


def _turned(finished: Finished, number: int) -> list[tuple[str, Samples]]:
    """The first problem says the opposite of the others."""
    each = list(finished.score.per_problem.items())
    return [
        ("0", Samples("ns", (number + 1) ** -0.5, 1, 1)),
        *[(n, replace(s, value=1e3 * s.value)) for n, s in each[1:]],
    ]


def test_the_bound_is_the_models_multiply_adds() -> None:
    platform = platforms.load("rvv")
    peaks = [roofline.roofs(platform, "f32", None)[vlen][0] for vlen in platform.vlens]
    assert peaks == [8.0, 16.0, 16.0]
    assert roofline.bound(platform, "f32", None, "modelled-cycles") == pytest.approx(1e3 / statistics.geomean(peaks))
    assert roofline.bound(platform, "f32", None, "ns") is None  # nothing is known of a clock before the comparison
    clock = {"model": None, "peak": {"f32": 50.0}, "machine": {}}
    assert roofline.bound(platforms.load("native"), "f32", clock, "ns") == pytest.approx(20.0)


def test_a_recorded_search_tells_its_figures(told: tuple[dict[str, Any], str]) -> None:
    record, text = told
    searches = {search["stage"]: search for search in record["searches"]}
    assert set(searches) == {"micro", "blocking", "single-vlen", "smallest"}
    for search in searches.values():
        passed = [t["cost"] for t in search["trials"] if t["cost"]]
        assert len(search["random"]) == (0 if search["stage"] == "single-vlen" else len(search["trials"]))
        if search["stage"] == "micro":
            assert search["random"][-1] == pytest.approx(min(passed))
            assert search["random"][0] == pytest.approx(statistics.geomean(passed))
        spent = sum(search["steps"].values())
        assert spent == pytest.approx(search["trials"][-1]["spent"], abs=0.3)
        assert {"render", "build", "verify", "measure"} == set(search["steps"])
        if search["bound"]:
            assert search["bound"] <= min(passed)
    assert searches["single-vlen"]["bound"] is None
    blocking = searches["blocking"]
    assert f"{100 * blocking['bound'] / blocking['best']['cost']:.0f} %" in text
    came = [halt["came"] for halt in blocking["halts"]]
    assert came == sorted(came, reverse=True)
    assert came[0] == blocking["kinds"]["ok"]
    assert sum(halt["ended"] for halt in blocking["halts"]) == blocking["kinds"]["ok"]
    assert {str(halt["problems"]): halt["ended"] for halt in blocking["halts"]} == blocking["problems"]
    assert "trials by fidelity" in text
    noted = [json.loads(line) for line in journal.journal_path(RECORDED).read_text().splitlines()]
    probed = sum(one["data"]["seconds"] for one in noted if one.get("name") == "dispatch")
    assert record["probes"] == {"f32": pytest.approx(probed, abs=0.2)}
    assert "probes, f32" in text
    for words in ("How soon it was good", "Where the seconds went", "Predicted and measured", "in random order"):
        assert words in text
    assert record["absent"].keys() <= {"bench"}


def test_what_each_template_won_adds_up(told: tuple[dict[str, Any], str]) -> None:
    record, text = told
    assert record["choices"]
    for choice in record["choices"]:
        assert sum(won["share"] for won in choice["won"]) == pytest.approx(1)
        for won in choice["won"]:
            rows = [row for row in choice["problems"] if row["template"] == won["template"]]
            assert won["served"] == len(rows)
            gains = []
            for row in rows:
                others = [cost for name, cost in row["cost_by_template"].items() if name != won["template"]]
                if others and row["cost"]:
                    gains.append(min(others) / row["cost"])
                    assert row["cost"] >= row["cost_by_template"][won["template"]]
            assert won["rivals"] == len(gains)
            assert won["by"] == (pytest.approx(statistics.geomean(gains) - 1) if gains else None)
    assert any(won["rivals"] for choice in record["choices"] for won in choice["won"])
    assert "better than others" in text


def test_a_template_without_rivals_won_against_nobody() -> None:
    rows = [{"template": "a", "cost": 2.0, "cost_by_template": {"a": 1.9}}] * 3
    rows += [{"template": "b", "cost": 2.0, "cost_by_template": {"a": 3.0, "b": 2.0}}]
    first, second = choices._won(rows)
    assert (first["template"], first["share"], first["rivals"], first["by"]) == ("a", 0.75, 0, None)
    assert (second["share"], second["by"], second["least"], second["most"]) == (0.25, pytest.approx(0.5), 0.5, 0.5)


def test_predictions_are_of_shapes_left_out(told: tuple[dict[str, Any], str]) -> None:
    found = told[0]["predicted"]
    assert [one["vlen"] for one in found] == [128, 256, 512]
    for one in found:
        off = sorted(abs(math.log(p["predicted"] / p["measured"])) for p in one["points"])
        assert off[0] > 1e-9  # a model that had seen the shape would say what was measured of a problem alone
        assert math.log1p(one["error"]) == pytest.approx(statistics.quartiles(off)[1])
        assert one["close"] == pytest.approx(sum(x <= math.log(1.1) for x in off) / len(off))
        assert one["ordered"] > 0.6
        assert one["error"] < 0.3


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
    found = predicted.left_out(operators.load("gemm"), platforms.load("rvv"), journal.read(tmp_path / "run"))
    assert found
    assert all(one["error"] > 0.5 and one["ordered"] < 0.75 for one in found)


def test_a_search_of_one_trial_has_no_curve() -> None:
    lone = {"stage": "micro", "dtype": "f32", "trials": [{"cost": 1.0, "best": 1.0, "spent": 1.0}], "random": [1.0]}
    assert curves.anytime([lone]) == ""
    assert curves.steps([{**lone, "steps": {}}]) == ""
    assert curves.predicted([], "ns", {}) == ""
