"""Two comparisons side by side: what is matched, what is worse, what is refused."""

import copy
import json

import pytest

from tensorop.commands import compare
from tensorop.commands.compare import IMPROVED, SAME, WORSE
from tensorop.errors import UsageError
from tensorop.specs import benches


def row(side, ours, spread=0.02, dtype="f32", **more):
    dims = {"m": side, "n": side, "k": side}
    return {"op": "gemm", "dtype": dtype, **dims, "layout": "row", "ours": ours, "spread": spread, **more}


def bench(*rows, **more):
    given = {"platform": "native", "threads": 1, "unit": "GFLOP/s", "model": None, "machine": {"cpu": "a core"}}
    return {**given, **more, "results": list(rows)}


def compared(old, new):
    (then,), (now,) = (benches.parse(copy.deepcopy(record), "old.json") for record in (old, new))
    return compare.compare(then, now, 0.03, "old.json")


def verdicts(old, new):
    return {str(change.place): change.verdict for change in compared(old, new).changes}


@pytest.mark.parametrize(
    ("then", "now", "verdict"),
    [
        ((100, 0.02), (90, 0.02), WORSE),
        ((100, 0.02), (110, 0.02), IMPROVED),
        ((100, 0.0), (98, 0.0), SAME),  # below the threshold
        ((100, 0.3), (90, 0.3), SAME),  # the intervals meet
        ((100, 0.02), (100, 0.02), SAME),
    ],
)
def test_a_change_counts_beyond_threshold_and_intervals(then, now, verdict):
    assert list(verdicts(bench(row(16, *then)), bench(row(16, *now))).values()) == [verdict]


def test_a_slower_machine_is_no_slower_library():
    """A clock's change has to show beside the baseline too, unless that has another version or function."""

    def record(ours, ratio, version, called=""):
        span = {"ratio": {"openblas": ratio}, "interval": {"openblas": [0.99 * ratio, 1.01 * ratio]}}
        span |= {"called": {"openblas": called}} if called else {}
        return bench(row(16, ours, **span), baselines={"openblas": {"version": version, "config": ""}})

    old = record(100, 2.0, "0.3.34")
    assert list(verdicts(old, record(60, 2.0, "0.3.34")).values()) == [SAME]
    assert list(verdicts(old, record(60, 1.2, "0.3.34")).values()) == [WORSE]
    assert list(verdicts(old, record(60, 2.0, "0.3.35")).values()) == [WORSE]
    assert list(verdicts(old, record(150, 3.0, "0.3.34")).values()) == [IMPROVED]
    assert list(verdicts(old, record(150, 0.5, "0.3.34", "gemv")).values()) == [IMPROVED]
    gemv = record(100, 0.5, "0.3.34", "gemv")
    assert list(verdicts(gemv, record(60, 0.5, "0.3.34", "gemv")).values()) == [SAME]
    assert list(verdicts(gemv, record(60, 2.0, "0.3.34", "gemm")).values()) == [WORSE]


def test_a_models_counts_are_exact_and_each_vlen_stands_by_itself():
    model = {"unit": "flop/modelled-cycle", "model": {"name": "k1", "version": 4, "calibrated": False}}
    widths = [{"128": {"ours": x}, "256": {"ours": y}} for x, y in ((2.0, 3.0), (2.2, 2.8))]
    old, new = (bench(row(16, 2.5, 0.4, by_vlen=by_vlen), **model) for by_vlen in widths)
    assert verdicts(old, new) == {"gemm f32 16x16x16 row VLEN 128": IMPROVED, "gemm f32 16x16x16 row VLEN 256": WORSE}


def test_rows_are_matched_by_all_that_names_them():
    old = bench(row(16, 10), row(32, 10), row(16, 20, dtype="f64"), row(16, 5, layout="row,tb=1"))
    new = bench(row(16, 10, dtype="f64"), row(16, 10), row(64, 10))
    found = compared(old, new)
    assert {str(c.place): (c.old.value, c.new.value) for c in found.changes} == {
        "gemm f64 16x16x16 row": (20, 10),
        "gemm f32 16x16x16 row": (10, 10),
    }
    assert [str(place) for place in found.gone] == ["gemm f32 32x32x32 row", "gemm f32 16x16x16 row,tb=1"]
    assert [str(place) for place in found.added] == ["gemm f32 64x64x64 row"]
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert (record["improved"], record["same"], record["worse"]) == (0, 1, 1)
    assert record["results"][0]["change"] == pytest.approx(-0.5)
    with pytest.raises(UsageError, match="none has a shape, dtype and layout"):
        verdicts(bench(row(16, 1)), bench(row(17, 1)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"platform": "rvv"}, "old.json: key 'platform': expected native, got rvv"),
        ({"unit": "flop/modelled-cycle"}, "old.json: key 'unit': expected GFLOP/s, got flop/modelled-cycle"),
        ({"threads": 2}, "old.json: key 'threads': expected 1, got 2"),
        ({"model": {"name": "k1", "version": 3}}, "expected no board model, got board model k1 version 3"),
    ],
)
def test_a_record_of_something_else_is_refused(change, said):
    with pytest.raises(UsageError) as refused:
        verdicts(bench(row(16, 1), **change), bench(row(16, 1)))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json", "expected JSON"),
        ("[1]", "expected a JSON object with the result of a comparison, got list"),
        ("{}", "missing key 'platform'"),
        (json.dumps(bench({**row(16, 1), "ours": "fast"})), "key 'results.0.ours'"),
        (json.dumps(bench(row(16, -1.0))), "key 'results.0.ours'"),
        (json.dumps({**bench(), "results": 3}), "key 'results'"),
    ],
)
def test_a_file_that_is_no_comparison_is_refused_by_name_and_place(tmp_path, text, said):
    path = tmp_path / "old.json"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        benches.read(path)
    assert f"{path}: " in str(refused.value)
    assert said in str(refused.value)
    assert "bench DIR --format json" in str(refused.value.hint)


def test_a_file_that_cannot_be_read_is_said(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        benches.read(tmp_path / "absent.json")
    (tmp_path / "bytes").write_bytes(b"\xff\x00")
    with pytest.raises(UsageError, match="not UTF-8 text: invalid start byte at byte 0"):
        benches.read(tmp_path / "bytes")
    (tmp_path / "wide").write_bytes("{}".encode("utf-16"))
    with pytest.raises(UsageError, match="it is UTF-16 text; save it as UTF-8"):
        benches.read(tmp_path / "wide")
