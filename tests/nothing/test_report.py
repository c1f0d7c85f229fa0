"""The report of a recorded run: every figure in the record, the record on the page, nothing from the network."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tensorop.commands import report
from tensorop.errors import UsageError
from tensorop.report import loops
from tensorop.report.choices import decide

RECORDED = Path(__file__).parents[1] / "data" / "run"
HOSTILE = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The record and the page's text."""
    record, page = report.report(_copy(tmp_path_factory.mktemp("told")))
    return record, page.read_text()


@pytest.fixture
def run(tmp_path):
    return _copy(tmp_path)


def _copy(tmp_path):
    """A copy, with one more trial that failed and whose message is markup."""
    folder = tmp_path / "run"
    shutil.copytree(RECORDED, folder)
    journal = folder / "share/tensorop/journal.jsonl"
    trial = {"key": "0123456789abcdef", "round": 0}
    begun = {"stage": "micro", "draft": "outer", "dtype": "f32", "point": {"mv": 9}}
    outcome = {"kind": "wrong-result", "where": "verify", "message": HOSTILE}
    ended = {"outcome": outcome, "score": {"cost": None, "per_problem": {}}, "seconds": {"build": 1.0}}
    with journal.open("a") as file:
        for event, more in (("started", begun), ("finished", ended)):
            file.write(json.dumps({"schema": 1, "event": event, "t": 900.0, **trial, **more}) + "\n")
    return folder


def test_the_record_tells_the_run(run):
    record, page = report.report(run)
    assert page == run / "share/tensorop/report.html"
    json.dumps(record, allow_nan=False)
    assert record["absent"] == {}
    micro, blocking = record["searches"]
    assert (micro["stage"], blocking["stage"]) == ("micro", "blocking")
    best = [t["best"] for t in micro["trials"]]
    assert best == sorted(best, reverse=True)
    assert micro["best"]["cost"] == min(t["cost"] for t in micro["trials"] if t["cost"])
    assert micro["kinds"]["wrong-result"] == 1
    assert record["failures"] == [
        {"kind": "wrong-result", "where": "verify", "count": 1,
         "example": {"dtype": "f32", "draft": "outer", "point": {"mv": 9}, "message": HOSTILE}}]  # fmt: skip
    assert record["bench"]["results"]
    assert any(c["name"] == "m_mod_4" for c in record["controls"])
    assert {v["vlen"] for v in record["verification"]} == {128, 256, 512, 1024}


def test_importance_adds_up(told):
    found = {entry["stage"]: entry for entry in told[0]["importance"]}
    assert sum(found["micro"]["parameters"].values()) == pytest.approx(1)


def test_choices_are_those_of_the_tree_with_their_regret(told):
    (choice,) = told[0]["choices"]
    rows = {row["problem"]: row for row in choice["problems"]}
    assert "64x64x64 f32 layout=row" in rows
    for row in rows.values():
        assert row["draft"] == choice["variants"][row["variant"]]["draft"]
        assert row["regret"] is None or row["regret"] >= 0
    assert any(row["regret"] is not None for row in rows.values())


def test_roofs_lie_over_what_was_reached(told):
    roofs = told[0]["roofline"]
    assert roofs
    for roof in roofs:
        assert all(point["ours"] <= roof["peak"] for point in roof["points"])


def test_the_page_needs_no_network_and_escapes_what_it_shows(told):
    record, text = told
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert not re.search(r"(?:src|href)=\"(?!#)", text)
    assert "://" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert text.count("<svg") >= 4
    assert "#0a0b" not in text  # every colour is the page's
    for row in record["bench"]["results"]:
        assert f"{row['ratio']['openblas']:.3f}" in text
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_the_same_record_makes_the_same_page(run, told):
    assert report.write(run).read_text() == told[1]


def test_a_run_without_a_product_is_told_as_far_as_it_came(run):
    (run / "share/tensorop/manifest.json").unlink()
    (run / "share/tensorop/bench.json").unlink()
    record, page = report.report(run)
    assert set(record["absent"]) == {"product", "bench"}
    assert record["searches"]
    assert "has not come to a library yet" in page.read_text()


def test_no_run_is_said(tmp_path):
    with pytest.raises(UsageError, match="holds no run"):
        report.report(tmp_path)
    with pytest.raises(UsageError, match="does not exist"):
        report.report(tmp_path / "nothing")


def test_archives_are_read_member_by_member():
    def member(name, data):
        return f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)

    long = b"a_very_long_name_of_a_kernel.o/\n"
    data = b"!<arch>\n" + member("/", b"index") + member("//", long) + member("a.o/", b"one") + member("/0", b"four")
    assert list(loops.members(data)) == [("a.o", b"one"), ("a_very_long_name_of_a_kernel.o", b"four")]
    assert list(loops.members(b"no archive")) == []


def test_trees_decide_at_their_thresholds():
    tree = {"feature": "k", "threshold": 8, "low": {"variant": 0}, "high": {"variant": 3}}
    assert [decide(tree, {"k": k}) for k in (1, 8, 9)] == [0, 0, 3]
