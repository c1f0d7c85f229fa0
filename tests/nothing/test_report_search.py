"""What the report says of a search and of who won."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tensorop.commands import report
from tensorop.dispatch import evidence
from tensorop.measure import statistics
from tensorop.model.bench import Bench
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Stage
from tensorop.report import choices, roofline
from tensorop.space import problems
from tensorop.specs import operators, platforms
from tensorop.store import journal

RECORDED = Path(__file__).parents[1] / "data" / "raced"  # rvv, three VLENs, blockings that raced, four templates


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    folder = tmp_path_factory.mktemp("told") / "run"
    shutil.copytree(RECORDED, folder)
    record, page = report.report(folder)
    return json.loads(json.dumps(record.to_json(), allow_nan=False)), page.read_text()


def test_the_bound_is_the_models_multiply_adds() -> None:
    platform = platforms.load("rvv")
    peaks = [roofline.roofs(platform, "f32", None)[vlen][0] for vlen in platform.vlens]
    assert peaks == [8.0, 16.0, 16.0]
    assert roofline.bound(platform, "f32", None, "modelled-cycles") == pytest.approx(1e3 / statistics.geomean(peaks))
    assert roofline.bound(platform, "f32", None, "ns") is None  # nothing is known of a clock before the comparison
    clock = Bench("native", 1, "GFLOP/s", None, {}, {}, (), {}, {"f32": 50.0})
    assert roofline.bound(platforms.load("native"), "f32", clock, "ns") == pytest.approx(20.0)


def test_a_recorded_search_tells_its_figures(told: tuple[dict[str, Any], str]) -> None:
    record, text = told
    searches = {search["stage"]: search for search in record["searches"]}
    assert set(searches) == {"micro", "blocking", "single-vlen", "smallest"}
    for search in searches.values():
        passed = [t["cost"] for t in search["trials"] if t["cost"]]
        if search["bound"]:
            assert search["bound"] <= min(passed)
    assert searches["single-vlen"]["bound"] is None
    blocking = searches["blocking"]
    assert f"{100 * blocking['bound'] / blocking['best']['cost']:.0f} %" in text
    assert record["absent"].keys() <= {"bench"}


def test_the_same_trials_in_random_order_end_at_the_best(told: tuple[dict[str, Any], str]) -> None:
    for search in told[0]["searches"]:
        curve = [cost for cost in search["random_order"] if cost is not None]
        assert len(search["random_order"]) == len(search["trials"])
        assert curve == sorted(curve, reverse=True)
        assert curve[-1] == pytest.approx(search["best"]["cost"])


def test_costs_inside_the_library_are_taken_before_those_of_trials() -> None:
    history, operator = journal.read(RECORDED), operators.load("gemm")
    manifest = json.loads((RECORDED / "share" / "tensorop" / "manifest.json").read_text())
    winners = manifest["operators"]["gemm"]["dtypes"]
    before = next(
        one for one in choices.choices(operator, winners, history, RECORDED / "share" / "tensorop") if one.problems
    )
    served = next(one for one in before.problems if one.cost)
    point = before.variants[served.variant]["point"]
    whole = set(Stage) - {Stage.MICRO}
    tried = (f.trial.variant for stage in whole for f in history.ended((stage, before.dtype, 0)))
    variant = next(one for one in tried if (one.template.name, dict(one.point)) == (served.template, point))
    problem = next(p for p in _all(operator, before.dtype) if p.label == served.problem)
    row = {"vlen": before.vlen, "dims": problem.sizes, "options": dict(problem.options), "costs": [12.5]}
    found = {"dtype": before.dtype, "variants": [{"id": variant.id, "specialisations": []}], "rows": [row]}
    history.notes.append((evidence.NOTE, found))
    after = next(
        one
        for one in choices.choices(operator, winners, history, RECORDED / "share" / "tensorop")
        if one.vlen == before.vlen
    )
    (again,) = [one for one in after.problems if one.problem == served.problem]
    assert again.cost == 12.5 != served.cost
    assert again.cost_by_template == {served.template: 12.5}


def _all(operator: Operator, dtype: str) -> list[Problem]:
    shapes = (*operator.suites["quick"], *operator.suites["tiny"])
    return [problems.of(operator, dtype, s, n) for s in shapes for n in range(len(operator.layouts))]


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
    assert "better than the best other" in text


def test_a_template_without_rivals_won_against_nobody() -> None:
    rows = [choices.ServedProblem("", 0, "a", 2.0, {"a": 1.9}, "a")] * 3
    rows += [choices.ServedProblem("", 1, "b", 2.0, {"a": 3.0, "b": 2.0}, "b")]
    first, second = choices.won(rows)
    assert (first.template, first.share, first.rivals, first.by) == ("a", 0.75, 0, None)
    assert (second.share, second.by, second.least, second.most) == (0.25, pytest.approx(0.5), 0.5, 0.5)
