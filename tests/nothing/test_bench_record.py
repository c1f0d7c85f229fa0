"""The record of a comparison: its JSON, its means, its table."""

import json
import math

import pytest
from rich.console import Console

from tensorop.cli import tables
from tensorop.commands import contenders
from tensorop.errors import UsageError
from tensorop.model.bench import AtVlen, BaselineInfo, Bench, Ratio, Row


def row(side, dtype, ratio, **more):
    ratios = {} if ratio is None else {"openblas": Ratio(ratio, 0.9 * ratio, 1.1 * ratio)}
    return Row("gemm", dtype, {"m": side, "n": side, "k": side}, "row", 100.0, ratios, 0.02, **more)


def bench(*rows, **more):
    found = {"openblas": BaselineInfo("0.3.34", "core SkylakeX"), "blis": BaselineInfo("0.9", "core skx")}
    given = {
        "model": None,
        "absent": {"mkl": "not in the cache"},
        "machine": {"cpu": "a core", "cores": 2, "load": 0.5},
    }
    return Bench("native", 1, "GFLOP/s", baselines=found, rows=rows, **{**given, **more})


def test_json_has_what_scripts_rely_on():
    record = json.loads(json.dumps(bench(row(16, "f32", 2.0), row(32, "f64", 0.5)).to_json(), allow_nan=False))
    assert {"platform", "threads", "unit", "model", "baselines", "results", "geomean", "geomean_by_dtype"} <= set(
        record
    )
    assert record["baselines"]["openblas"] == {"version": "0.3.34", "config": "core SkylakeX"}
    first = record["results"][0]
    assert [first[k] for k in ("op", "dtype", "m", "n", "k", "layout")] == ["gemm", "f32", 16, 16, 16, "row"]
    assert (first["ours"], first["spread"]) == (100.0, 0.02)
    assert first["ratio"] == {"openblas": 2.0}
    assert (first["low"], first["high"]) == (1.8, 2.2)
    assert record["geomean"]["openblas"] == pytest.approx(1.0)
    assert record["geomean_by_dtype"] == {"f32": {"openblas": 2.0}, "f64": {"openblas": 0.5}}
    assert record["lowest"] == {"openblas": 0.5}
    assert record["absent"] == {"mkl": "not in the cache"}


def test_a_baseline_without_rows_is_left_out_of_the_means_and_never_zero():
    compared = bench(row(16, "f32", None))
    assert compared.geomean() == {}
    assert compared.lowest() == {}
    assert not any(math.isnan(v) for v in compared.to_json()["geomean"].values())


def test_below_names_each_ratio():
    found = bench(row(16, "f32", 0.94), row(32, "f32", 0.96)).below(0.95)
    assert [(r.shape, name, value) for r, name, value in found] == [("16x16x16", "openblas", 0.94)]


def test_figures_of_each_vlen_stand_beside_the_mean():
    at = {128: AtVlen(4.0, {"openblas": Ratio(1.5, 1.4, 1.6)}, {"cycles": 250.0}, {"openblas": {"cycles": 375.0}})}
    record = bench(row(16, "f32", 1.5, by_vlen=at)).to_json()["results"][0]
    assert record["by_vlen"]["128"]["ratio"] == {"openblas": 1.5}
    assert record["by_vlen"]["128"]["per_kflop"] == {"ours": {"cycles": 250.0}, "openblas": {"cycles": 375.0}}


def test_the_table_shows_ratios_absence_and_noise():
    console = Console(width=160)
    with console.capture() as said:
        console.print(tables.bench_table(bench(row(16, "f32", 2.0, noisy=True), row(32, "f32", None))))
    text = said.get()
    assert "2.00" in text
    assert "1.80 to 2.20 noisy" in text
    line = next(line for line in text.splitlines() if line.startswith("32x32x32"))
    assert "-" in line
    assert "0.00" not in line
    notes = tables.bench_notes(bench(row(16, "f32", 2.0)))
    assert "absent: mkl: not in the cache" in notes
    assert any("core SkylakeX" in note for note in notes)


@pytest.mark.parametrize(("value", "text"), [(0.00412, "0.00412"), (3.14159, "3.14"), (254.3, "254"), (0.0, "0")])
def test_figures_have_three_digits(value, text):
    assert tables.figure(value) == text


def test_unknown_baselines_name_the_known_ones():
    with pytest.raises(UsageError, match="openblass") as caught:
        contenders.check_names(["openblass"])
    assert "did you mean openblas" in str(caught.value)
    with pytest.raises(UsageError, match=r"0\.1"):
        contenders.check_names(["openblas@0.1"])
