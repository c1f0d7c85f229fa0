"""The report of a recorded run: every figure in the record, the record on the page, nothing from the network."""

import itertools
import json
import math
import random
import re
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tensorop import pipeline
from tensorop.commands import report
from tensorop.dispatch.tree import decide
from tensorop.errors import UsageError
from tensorop.model.bench import BaselineInfo, Bench, Ratio, Row
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.point import Point
from tensorop.model.trial import Stage, Trial
from tensorop.model.winner import trees_of
from tensorop.report import curves, drawing, labels, page, plots
from tensorop.report.roofline import Reached, Roofline
from tensorop.report.searches import SearchSummary, Tried
from tensorop.space import problems
from tensorop.specs import operators
from tensorop.store import journal as store
from tensorop.store.records import trial_record
from tensorop.toolchain import finished

RECORDED = Path(__file__).parents[1] / "data" / "run"
HOSTILE = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The report and the page's text."""
    found, page = report.report(_copy(tmp_path_factory.mktemp("told")))
    return found, page.read_text()


@pytest.fixture
def run(tmp_path):
    return _copy(tmp_path)


def _copy(tmp_path):
    """A copy, with one more trial that failed and whose message is markup."""
    folder = tmp_path / "run"
    shutil.copytree(RECORDED, folder)
    journal = folder / "share/tensorop/journal.jsonl"
    trial = {"key": "0123456789abcdef", "round": 0}
    template = next(d for d in store.read(folder).templates.values() if d.name == "outer")
    variant = Variant(Kernel(template, "f32", Point.of(mr_vectors=9)))
    begun = trial_record(Trial(trial["key"], 0, Stage.MICRO, variant))
    outcome = {"kind": "wrong-result", "where": "verify", "message": HOSTILE}
    ended = {"outcome": outcome, "score": {"cost": None, "per_problem": {}}, "seconds": {"build": 1.0}}
    with journal.open("a") as file:
        for event, more in (("started", begun), ("finished", ended)):
            file.write(json.dumps({"schema": 5, "event": event, "t": 900.0, **trial, **more}) + "\n")
    return folder


def test_a_journal_that_was_cut(run):
    """What the manifest says of the library is shown; a journal of nothing is no run."""
    path = run / "share/tensorop/journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    manifest = run / "share/tensorop/manifest.json"
    told = json.loads(manifest.read_text())
    told.setdefault("results", {})["verification"] = [{"dtype": "f32", "outcome": "ok", "threads": 1, "vlen": 64}]
    manifest.write_text(json.dumps(told))
    path.write_bytes(lines[0] + lines[1][:9])
    found, page = report.report(run)
    assert found.verification[0]["outcome"] == "ok"
    assert "has not been verified yet" not in page.read_text()
    for rest in (b"", lines[0][:-1]):
        path.write_bytes(rest)
        with pytest.raises(UsageError, match=r"contains no run: .*journal\.jsonl has no complete line"):
            report.report(run)


def test_a_product_of_no_search_has_no_report(run):
    (run / "share/tensorop/journal.jsonl").unlink()
    with pytest.raises(UsageError, match="has no journal of a search") as refused:
        report.report(run)
    assert f"tensorop inspect {run}" in refused.value.hint


def test_the_record_tells_the_run(run):
    found, page = report.report(run)
    assert page == run / "share/tensorop/report.html"
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert record["absent"] == {}
    micro, blocking = record["searches"]
    assert (micro["stage"], blocking["stage"]) == ("micro", "blocking")
    best = [t["best"] for t in micro["trials"]]
    assert best == sorted(best, reverse=True)
    assert micro["best"]["cost"] == min(t["cost"] for t in micro["trials"] if t["cost"])
    assert micro["kinds"]["wrong-result"] == 1
    (failure,) = record["failures"]
    assert (failure["kind"], failure["where"], failure["count"]) == ("wrong-result", "verify", 1)
    example = failure["example"]
    assert (example["dtype"], example["template"], example["point"]) == ("f32", "outer", {"mr_vectors": 9})
    assert example["message"] == HOSTILE
    assert record["bench"]["results"]
    assert any(c["name"] == "m_mod_4" for c in record["controls"])
    assert {v["vlen"] for v in record["verification"]} == {128, 256, 512, 1024}


def test_the_page_says_when_and_how_the_run_was_made(run):
    journal = run / "share/tensorop/journal.jsonl"
    with journal.open("a") as file:
        for name, data in (
            ("session", {"date": "2026-01-02 03:04 UTC", "command": "tensorop gemm --platform rvv --budget 60s"}),
            ("seed", "0:00ff"),
        ):
            file.write(json.dumps({"schema": 5, "event": "note", "t": 901.0, "name": name, "data": data}) + "\n")
    text = report.write(run).read_text()
    for told in ("<dd>2026-01-02 03:04 UTC", "tensorop gemm --platform rvv --budget 60s", "<code>0:00ff</code>"):
        assert told in text


def test_a_variant_links_to_its_source_and_a_template_says_why_it_was_not_tried(run):
    (choice,) = report.report(run)[0].choices
    source = run / f"share/tensorop/src/rvv_f32_{choice.variants[0]['template']}_8x4.c"
    source.parent.mkdir()
    source.write_text("const struct tensorop_f32_entry tensorop_gemm_f32_variant_0 = {")
    journal = run / "share/tensorop/journal.jsonl"
    line = next(line for line in journal.read_text().splitlines() if '"event":"template"' in line)
    for name, needs in (("late", []), ("lacking", ["no_such_primitive"])):
        template = json.loads(line)
        template["template"] |= {"name": name, "needs": needs, "text": f"// {name}\n"}
        with journal.open("a") as file:
            file.write(json.dumps(template) + "\n")
    found, page = report.report(run)
    assert f'<a href="src/{source.name}">{source.name}</a>' in page.read_text()
    assert found.choices[0].variants[0]["file"] == f"src/{source.name}"
    why = {use.name: use.untried for use in found.templates}
    assert why["outer"] == ""
    assert why["late"] == "the search ended before its first trial"
    assert why["lacking"] == "f32: rvv lacks the primitive no_such_primitive"


def test_the_map_names_its_axes_and_its_layout(told):
    assert all(plane.layout == "row" for plane in told[0].maps)
    assert "Find m of your shape on the horizontal axis and n on the vertical one" in told[1]
    assert "All in the layout row" in told[1]


def test_choices_are_those_of_the_tree(told):
    (choice,) = told[0].choices
    rows = {row.problem: row for row in choice.problems}
    assert "64x64x64 f32 layout=row" in rows
    for row in rows.values():
        assert row.template == choice.variants[row.variant]["template"]
        assert row.best_template == min(row.cost_by_template, key=row.cost_by_template.get)


def test_the_map_is_the_dispatch_of_every_problem(told):
    """Evaluated again, and in the axes that the operator names."""
    found = told[0]
    operator = operators.load("gemm")
    assert [(plane.axes, plane.fixed) for plane in found.maps] == [(("m", "n"), {"k": k}) for k in (16, 256, 2048)]
    (tree,) = trees_of(found.product["operators"]["gemm"]["dtypes"]["f32"])
    for plane in found.maps:
        for i, j in ((0, 0), (5, 20), (20, 5), (-1, -1)):
            sides = plane.sides[i], plane.sides[j], plane.fixed["k"]
            features = problems.features(operator, problems.of(operator, "f32", sides, 0))
            assert plane.chosen[j][i] == decide(tree.root, features)
    assert found.absent == {}


def search(*trials):
    """Of (template, cost) of each trial; the best is the last."""
    tried = [Tried("", "", template, {}, 0, "ok", cost, cost) for template, cost in trials]
    return SearchSummary("micro", "f32", 0, "ns", "ns", 1.0, {"ok": len(tried)}, {1: len(tried)}, tried[-1], tried)


def test_each_template_has_a_colour_of_its_own(told):
    templates = [f"template{i}" for i in range(8)]
    one = search(*((name, 8.0 - i) for i, name in enumerate(templates)))
    colours = page.colours(replace(told[0], searches=[one], maps=[]))
    assert len(set(colours.values())) == 8
    drawn = plots.convergence([one], colours)
    assert all(f"var(--{name})" in drawn for name in colours.values())
    assert all(template in drawn for template in templates)


def test_trial_axes_count_whole_trials():
    drawn = plots.convergence([search(("a", 2.0), ("a", 1.0))], {"a": "one"})
    assert not re.search(r">[12]\.[0-9]+</text>", drawn.split("trial</text>")[0])


@pytest.mark.parametrize("limits", [(0.9, 1.3), (0.5, 4), (0.01, 3000), (5.9, 9.2), (99, 101)])
def test_no_two_tick_labels_meet(limits):
    figure, (axes, _) = drawing.panels(2, 2.3)
    axes.set_xscale("log")
    axes.set_xlim(*limits)
    drawing.plain_ticks(axes, "x")
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    boxes.sort(key=lambda box: box.x0)
    assert len(boxes) >= 2
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_labels_stand_beside_their_points_and_over_nothing():
    rng = random.Random(3)
    points = [Reached("512x512x512", 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(0, 2)) for _ in range(40)]
    roof = Roofline("f32", None, "GFLOP/s", 90.0, 20.0, points)
    told = list(labels.beside(roof, (0.05, 200), (0.5, 200), (7.0, 2.4)))
    assert 10 < len(told) < 40
    boxes = []
    for point, (dx, dy), side in told:
        x, y = (
            math.log(point.intensity / 0.05) / math.log(4000) * 7.0,
            math.log(point.ours / 0.5) / math.log(400) * 2.4,
        )
        left = x + dx / 72 - (0 if side == "left" else 0.605)
        boxes.append((left, y + dy / 72 - 0.05, left + 0.6, y + dy / 72 + 0.05))
        assert abs(dx) <= 72 * 0.31
    for i, one in enumerate(boxes):
        assert not any(
            one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3] for other in boxes[:i]
        )


def test_speeds_show_both_libraries_at_every_vlen(told):
    bench = told[0].bench
    drawn = curves.speeds(bench, "f32")
    assert all(f"VLEN {vlen}" in drawn for vlen in bench.vlens)
    assert "this library" in drawn
    assert "openblas" in drawn
    widths = curves.by_vlen(bench)
    for vlen in (128, 256, 512):
        ratios = [row.by_vlen[vlen].ratios["openblas"].value for row in bench.rows]
        assert f">{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}</text>" in widths


def test_the_best_so_far_ends_at_the_best(told):
    first = told[0].searches[0]
    assert first.trials[-1].best == first.best.cost


def test_roofs_lie_over_what_was_reached(told):
    assert told[0].roofline
    for roof in told[0].roofline:
        assert roof.points
        assert all(point.ours <= roof.peak for point in roof.points)


def test_the_page_needs_no_network_and_escapes_what_it_shows(told):
    found, text = told
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert not re.search(r"(?:src|href)=\"(?!#|src/)", text)  # links lead into the product
    assert "://" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert text.count("<svg") >= 4
    assert "#0a0b" not in text  # every colour is the page's
    for row in found.bench.rows:
        assert f"{row.ratios['openblas'].value:.3f}" in text
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_the_same_record_makes_the_same_page(tmp_path, told):
    assert report.write(_copy(tmp_path)).read_text() == told[1]


def test_what_further_threads_add_is_plotted(run):
    bench = json.loads((run / "share/tensorop/bench.json").read_text())
    bench["machine"] = {"cpu": "Some CPU", "cores": 4}
    by_threads = {
        count: bench
        | {"threads": int(count), "results": [row | {"ours": gain * row["ours"]} for row in bench["results"]]}
        for count, gain in (("1", 1.0), ("2", 1.87), ("4", 3.25))
    }
    kept = bench | {"threads": 1, "by_threads": by_threads}
    (run / "share/tensorop/threads.json").write_text(json.dumps(kept))
    found, page = report.report(run)
    assert [(one.threads, one.rows[0].ours / found.bench.rows[0].ours) for one in found.threads] == [
        (1, 1.0), (2, pytest.approx(1.87)), (4, pytest.approx(3.25))]  # fmt: skip
    text = page.read_text()
    assert "on Some CPU, 4 cores" in text
    drawn = text[text.index("Speedup by number of threads") :]
    assert {"1.87", "3.25", "this library", "openblas"} <= set(re.findall(r">([^<>]+)</text>", drawn))
    (run / "share/tensorop/threads.json").unlink()
    assert "Speedup by number of threads" not in report.write(run).read_text()


def test_alternatives_and_indicative_figures_are_shown(run):
    path = run / "share/tensorop/bench.json"
    bench = json.loads(path.read_text())
    bench["model"] |= {"indicative": {"f32": "its ranges are wide"}, "alternatives": {"no fetch": "nothing is fetched"}}
    for row, ratio in zip(bench["results"], itertools.cycle((0.45, 3.36)), strict=False):
        for at in (row, *row["by_vlen"].values()):
            at["alternatives"] = {"openblas": {"no fetch": ratio}}
    path.write_text(json.dumps(bench))
    text = report.write(run).read_text()
    line = next(line for line in text.splitlines() if "<td>no fetch</td>" in line)
    assert all(said in line for said in ('<td class="n">0.45</td>', "nothing is fetched"))
    assert "f32 (indicative: its ranges are wide)" in text
    assert "<td>f32 (indicative)</td>" in text


def test_the_best_of_several_baselines_has_a_column(run):
    assert "<b>best</b>" not in report.write(run).read_text()
    path = run / "share/tensorop/bench.json"
    bench = json.loads(path.read_text())
    for row in bench["results"]:
        for at in (row, *row["by_vlen"].values()):
            at["ratio"]["best"], at["interval"]["best"], at["called"] = 0.77, [0.76, 0.78], {"best": "openblas"}
    path.write_text(json.dumps(bench))
    text = report.write(run).read_text()
    assert '<th class="n">best</th><th>interval</th>' in text
    assert text.count('>0.770</td><td class="w muted">0.76 to 0.78 (openblas)</td>') == len(bench["results"])
    assert "The column <b>best</b> compares with the fastest right baseline of each shape, which brackets name." in text


def test_a_run_without_a_product_is_told_as_far_as_it_came(run):
    (run / "share/tensorop/manifest.json").unlink()
    (run / "share/tensorop/bench.json").unlink()
    found, page = report.report(run)
    assert set(found.absent) == {"product", "bench"}
    assert found.searches
    assert "has not come to a library yet" in page.read_text()
    journal = run / "share/tensorop/journal.jsonl"
    journal.write_text(journal.read_text().replace('"platform":"rvv"', '"platform":"my-board"'))
    lacking = report.report(run)[0].absent["operator and platform"]
    assert "my-board" in lacking
    assert "where it is a plug-in, give its folder: --plugins DIR" in lacking


def test_no_run_is_said(tmp_path):
    with pytest.raises(UsageError, match="contains no run"):
        report.report(tmp_path)
    with pytest.raises(UsageError, match="does not exist"):
        report.report(tmp_path / "nothing")


def test_archives_are_read_member_by_member():
    def member(name, data):
        return f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)

    long = b"a_very_long_name_of_a_kernel.o/\n"
    data = b"!<arch>\n" + member("/", bytes(4)) + member("//", long) + member("a.o/", b"one") + member("/0", b"four")
    assert list(finished.archive_members(data)) == [("a.o", b"one"), ("a_very_long_name_of_a_kernel.o", b"four")]
    assert list(finished.archive_members(b"no archive")) == []


def test_trees_decide_at_their_thresholds():
    told = {"feature": "k", "threshold": 8, "low": {"variant": 0}, "high": {"variant": 3}}
    (tree,) = trees_of({"variants": [{}] * 4, "tree": told, "regret": 0.0})
    assert [decide(tree.root, {"k": k}) for k in (1, 8, 9)] == [0, 0, 3]
    with pytest.raises(ValueError, match="variant 3 of 3"):
        trees_of({"variants": [{}] * 3, "tree": told, "regret": 0.0})


def test_it_says_which_caches_the_model_has(run):
    file = run / "share/tensorop/bench.json"
    bench = json.loads(file.read_text())
    bench["model"] |= {"caches": ["l1", "l2"], "not_modelled": ["l3"]}
    file.write_text(json.dumps(bench))
    _, page = report.report(run)
    assert "The model has the caches l1 and l2; it treats l3 and DRAM as one level." in page.read_text()


def test_a_bar_is_of_the_baseline_that_the_axis_names():
    def row(side, **ratios):
        each = {name: Ratio(value, value, value) for name, value in ratios.items()}
        return Row("gemm", "f32", {"m": side, "n": side, "k": side}, "row", 1.0, each, 0.0)

    rows = row(8, first=1.25, other=3.0), row(9, other=3.5)
    named = {name: BaselineInfo("1", "") for name in ("first", "other")}
    bench = Bench("native", 1, "GFLOP/s", None, named, {}, rows, {})
    drawn = plots.ratios(bench, "f32")
    assert "ratio to first" in drawn
    assert "8x8x8" in drawn
    assert "1.25" in drawn
    assert "3.50" not in drawn  # nobody's ratio stands for the first one's
    assert "ratio to other" in plots.ratios(replace(bench, rows=rows[1:]), "f32")


def test_each_vlen_stands_by_itself(run):
    file = run / "share/tensorop/bench.json"
    bench = json.loads(file.read_text())
    name = next(iter(bench["baselines"]))
    bench["baselines"][name]["remarks"] = ["VLEN 512: no right kernel of this width"]
    first, second = bench["results"][:2]
    first["by_vlen"] = {
        "128": {"ours": 1.0, "ratio": {name: 3.21}, "interval": {name: [3.11, 3.31]}},
        "512": {"ours": 1.0, "ratio": {}, "interval": {}},
    }
    second["by_vlen"] = {
        "128": {"ours": 1.0, "ratio": {name: 3.21}, "interval": {name: [3.21, 3.21]}},
        "512": {"ours": 1.0, "ratio": {name: 0.765}, "interval": {name: [0.765, 0.765]}},
    }
    bench["results"] = [first, {**second, "shape": "9x9x9"}]
    file.write_text(json.dumps(bench))
    text = report.report(run)[1].read_text()
    assert f"0.77×</b><span>{name}, f32, VLEN 512, geometric mean" in text
    assert f"lowest ratio to {name}: 9x9x9 f32 at VLEN 512" in text
    assert "VLEN 128: 3.21 (3.11 to 3.31)" in text
    assert "VLEN 512: not measured" in text
    assert "no right kernel of this width" in text


def test_nothing_is_named_without_its_value(tmp_path):
    """A search of one trial each, whose target pretends and has no board."""
    job = Job("gemm", "generic", ("f32",), ((8, 8, 8),), trials=1, budget_s=None, runner="null", out=tmp_path)
    list(pipeline.run(job))
    found, page = report.report(tmp_path)
    assert not found.run.facts["board"]
    text = re.sub(r"<style>.*?</style>", "", page.read_text(), flags=re.DOTALL)
    head = re.search('<p class="muted">(.*?)</p>', text)[1]
    assert head.startswith("tensorop ")
    assert all(len(words.split()) > 1 for words in head.split(", "))
    assert "1 shape," in head
    for empty in ("None", "nan", "Undefined", "{}", "[]", "1 trials", "1 shapes", ">0 calls", " ,"):
        assert empty not in re.sub("<[^>]*>", " ", re.sub("<code>.*?</code>", "", text))


def test_the_axis_of_two_trials_counts_two():
    text = plots.convergence([search(("t", 2.0), ("t", 1.9))], {"t": "one"})
    before, _, _ = text.partition(">trial<")
    assert re.findall(r">([0-9.]+)</text>", before) == ["1", "2"]


def test_a_search_in_which_one_trial_passed_is_not_drawn():
    assert plots.convergence([search(("t", 2.0))], {"t": "one"}) == ""


def test_what_is_saved_of_recorded_times_is_shown(told):
    assert "recorded time saved" not in told[1]
    rows = [replace(row, time_share=0.9 / len(told[0].bench.rows)) for row in told[0].bench.rows]
    text = page.page(replace(told[0], bench=replace(told[0].bench, rows=tuple(rows))))
    saved = 1 - sum(1 / row.ratios["openblas"].value for row in rows) / len(rows)
    assert f"{100 * saved:.1f} %</b><span>of the recorded time saved, compared with openblas; 90.0 %" in text


def test_calls_that_nobody_counted_are_no_calls(told):
    """A product's manifest has verdicts without how many calls they are of."""
    assert "calls of the finished library verified" not in page.page(
        replace(told[0], verification=[{"dtype": "f32", "vlen": 0, "threads": 1, "outcome": "ok"}])
    )
