"""The record of a comparison: its JSON, its means, its table."""

import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from tensorop.backends import reach
from tensorop.cli import tables
from tensorop.commands import libraries
from tensorop.errors import UsageError
from tensorop.model.bench import AtVlen, BaselineInfo, Bench, Ratio, Row, geomean
from tensorop.provision import baseline
from tensorop.report import curves
from tensorop.specs import benches, platforms
from tests.support.operators import gemm


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
    assert compared.to_json()["geomean"] == {}


def test_a_reason_that_several_share_is_said_once():
    large = dict.fromkeys(("xsmm 9x9x9", "xsmm 8x8x8", "xsmm 7x7x7"), "too large")
    absent = {"mkl": "not in the cache", **large}
    notes = tables.bench_notes(bench(row(16, "f32", 2.0), absent=absent))
    assert notes[-2:] == ["not measured: mkl: not in the cache", "not measured: xsmm 9x9x9 and 2 more: too large"]


def test_below_names_each_ratio():
    found = bench(row(16, "f32", 0.94), row(32, "f32", 0.96)).below(0.95)
    assert [(one.row.shape, one.baseline, one.ratio.value) for one in found] == [("16x16x16", "openblas", 0.94)]


def test_figures_of_each_vlen_stand_beside_the_mean():
    at = {128: AtVlen(4.0, {"openblas": Ratio(1.5, 1.4, 1.6)}, {"cycles": 250.0}, {"openblas": {"cycles": 375.0}})}
    record = bench(row(16, "f32", 1.5, by_vlen=at)).to_json()["results"][0]
    assert record["by_vlen"]["128"]["ratio"] == {"openblas": 1.5}
    assert record["by_vlen"]["128"]["per_kflop"] == {"ours": {"cycles": 250.0}, "openblas": {"cycles": 375.0}}


def test_the_function_of_a_baseline_that_was_called_is_named():
    two = bench(row(16, "f32", 2.0, called={"openblas": "gemv"}), row(32, "f32", 3.0))
    record = json.loads(json.dumps(two.to_json()))
    assert [one.get("called") for one in record["results"]] == [{"openblas": "gemv"}, None]
    assert [one.called for one in benches.parse(record, "here")[0].rows] == [{"openblas": "gemv"}, {}]
    assert str(two.lowest()["openblas"]) == "16x16x16 f32 (gemv)"
    console = Console(width=200)
    with console.capture() as said:
        console.print(tables.bench_table(two))
    assert "1.80 to 2.20 (gemv)" in said.get()
    assert any(note.startswith("in brackets: the baseline's function") for note in tables.bench_notes(two))
    assert not any("in brackets" in note for note in tables.bench_notes(bench(row(32, "f32", 3.0))))


def test_the_best_has_a_column_a_mean_and_a_name_for_each_shape():
    found = {"openblas": Ratio(2.0, 1.8, 2.2), "blis": Ratio(1.6, 1.5, 1.7), "best": Ratio(1.5, 1.4, 1.6)}
    both = [replace(row(side, "f32", 2.0), ratios=found, called={"best": "blis"}) for side in (16, 32)]
    two, alone = bench(*both), bench(row(16, "f32", 2.0))
    record = json.loads(json.dumps(two.to_json(), allow_nan=False))
    assert (record["geomean"]["best"], record["lowest"]["best"]) == (pytest.approx(1.5), 1.5)
    assert record["geomean_by_dtype"]["f32"]["best"] == pytest.approx(1.5)
    assert set(record["baselines"]) == {"openblas", "blis"}
    assert [(one["ratio"]["best"], one["interval"]["best"]) for one in record["results"]] == [(1.5, [1.4, 1.6])] * 2
    assert [one["called"] for one in record["results"]] == [{"best": "blis"}] * 2
    (again,) = benches.parse(record, "here")
    assert (again.columns, alone.columns) == (("openblas", "blis", "best"), ("openblas", "blis"))
    assert str(again.lowest()["best"]) == "16x16x16 f32 (blis)"
    console = Console(width=200)
    with console.capture() as said:
        console.print(tables.bench_table(two))
    assert "1.80 to 2.20  1.60  1.50  1.40 to 1.60 (blis)" in said.get()  # the others have no interval
    notes = tables.bench_notes(two)
    note = "best: the fastest right baseline of each shape, in brackets"
    assert f"{note}; its ratio is from other rounds than those that decided" in notes
    assert not any("the baseline's function" in note for note in notes)
    assert note in tables.bench_notes(replace(two, model=MODEL))
    assert not any(note.startswith("best") for note in tables.bench_notes(alone))
    limited = replace(two, baselines={**two.baselines, "blis": BaselineInfo("1", "", ("wide",), limited=(0,))})
    assert [limited.limited(name, 0) for name in limited.columns] == [False, True, True]


def widths(side, dtype, **ratios):
    """A row with a ratio at each VLEN, given as v128=1.5."""
    at = {int(v[1:]): AtVlen(4.0, {"openblas": Ratio(x, 0.9 * x, 1.1 * x)}) for v, x in ratios.items()}
    return row(side, dtype, math.prod(ratios.values()) ** (1 / len(ratios)), by_vlen=at)


def test_the_lowest_is_over_everything_that_was_measured():
    found = bench(widths(16, "f32", v128=3.0, v512=0.93), widths(32, "f64", v128=1.2, v512=1.3))
    record = found.to_json()
    assert record["lowest"] == {"openblas": 0.93}
    assert record["lowest_at"] == {"openblas": {"dtype": "f32", "shape": "16x16x16", "layout": "row", "vlen": 512}}
    assert record["geomean_by_vlen"]["512"] == {"f32": {"openblas": 0.93}, "f64": {"openblas": pytest.approx(1.3)}}
    wide = record["lowest_by_vlen"]["512"]["f64"]["openblas"]
    assert (wide["ratio"], wide["shape"], wide["vlen"]) == (1.3, "32x32x32", 512)
    assert [str(one) for one in found.below(1.0)] == ["16x16x16 f32 at VLEN 512"]
    assert any("lowest of 4 ratios to openblas: 0.93 at 16x16x16 f32" in n for n in tables.bench_notes(found))


def test_the_table_has_each_vlen_by_itself_with_its_interval():
    console = Console(width=200)
    with console.capture() as said:
        console.print(tables.bench_table(bench(widths(16, "f32", v128=3.0, v512=0.5))))
    lines = said.get().splitlines()
    assert "openblas VLEN 128" in lines[1]
    assert "openblas VLEN 512" in lines[1]
    line = next(line for line in lines if line.startswith("16x16x16"))
    assert "2.70 to 3.30" in line
    assert "0.45 to 0.55" in line
    mean = next(line for line in lines if line.startswith("geomean"))
    assert "lowest 3.00" in mean
    assert "lowest 0.50" in mean
    assert "1.22" not in said.get()  # the mean over VLENs


def test_what_a_reader_must_know_of_a_baseline_is_said():
    told = {"openblas": BaselineInfo("0.3.34", "core A", ("VLEN 512: no right kernel of this width",), limited=(512,))}
    found = replace(bench(widths(16, "f32", v256=3.0, v512=0.5)), baselines=told)
    info = found.to_json()["baselines"]["openblas"]
    assert (info["remarks"], info["limited"]) == (["VLEN 512: no right kernel of this width"], [512])
    assert "* openblas, VLEN 512: no right kernel of this width" in tables.bench_notes(found)
    console = Console(width=200)
    with console.capture() as said:
        console.print(tables.bench_table(found))
    means = said.get().splitlines()[-1].split()
    assert (means[-4:], means.count("*")) == (["0.50", "lowest", "0.50", "*"], 1)
    older = json.loads(json.dumps(found.to_json()))  # of a file that names the VLEN in the remark alone
    del older["baselines"]["openblas"]["limited"]
    assert benches.parse(older, "here")[0].baselines == told


def alternative(value, under):
    return {"openblas": Ratio(value, 0.9 * value, 1.1 * value, {"no prefetcher": under})}


MODEL = {
    "name": "a core",
    "version": 1,
    "calibrated": False,
    "interval": True,
    "indicative": {"f64": "its intervals are wide"},
    "alternatives": {"no prefetcher": "nothing is prefetched"},
}


def modelled():
    at = {128: AtVlen(4.0, alternative(2.0, 0.7)), 256: AtVlen(4.0, alternative(2.0, 2.8))}
    f32 = Row("gemm", "f32", {"m": 16}, "row", 4.0, alternative(2.0, 1.4), 0.02, by_vlen=at)
    other = dict.fromkeys((128, 256), AtVlen(4.0, alternative(0.5, 0.9)))
    f64 = Row("gemm", "f64", {"m": 16}, "row", 4.0, alternative(0.5, 0.9), 0.02, by_vlen=other)
    return bench(f32, f64, model=MODEL)


def test_alternatives_stand_beside_the_ratios_with_the_lowest_at_any_vlen():
    record = json.loads(json.dumps(modelled().to_json()))
    under = record["alternatives"]["no prefetcher"]
    assert under["geomean"]["openblas"] == pytest.approx(math.sqrt(1.4 * 0.9))
    assert under["geomean_by_dtype"] == {"f32": {"openblas": 1.4}, "f64": {"openblas": 0.9}}
    assert under["lowest"] == {"openblas": 0.7}
    assert under["lowest_at"]["openblas"]["vlen"] == 128
    assert under["geomean_by_vlen"]["256"]["f32"] == {"openblas": pytest.approx(2.8)}
    first = record["results"][0]
    assert first["alternatives"] == {"openblas": {"no prefetcher": 1.4}}
    assert first["by_vlen"]["128"]["alternatives"] == {"openblas": {"no prefetcher": 0.7}}
    # "lowest ends" are of the interval alone
    assert (first["low"], first["high"]) == (1.8, 2.2)
    assert record["geomean"]["openblas"] == pytest.approx(1.0)
    assert bench(row(16, "f32", 2.0)).to_json()["alternatives"] == {}


def test_what_was_printed_is_read_again():
    whole = replace(modelled(), peak={"f32": 8.0})
    clocked = bench(
        row(16, "f32", 2.0, noisy=True, peak_share=0.5, empty_ns={"ours": 3.0}, written="a16", path_instructions=90)
    )
    each = {"by_threads": {"1": whole.to_json(), "2": clocked.to_json()}}
    assert [one.to_json() for one in benches.parse(json.loads(json.dumps(each)), "x")] == list(
        each["by_threads"].values()
    )
    assert [one.to_json() for one in benches.parse(whole.to_json(), "x")] == [whole.to_json()]
    each["by_threads"]["2"]["unit"] = 3
    with pytest.raises(UsageError, match=r"x: by_threads.2: key 'unit': expected text, got 3"):
        benches.parse(each, "x")


def test_what_is_indicative_is_called_so_wherever_it_stands():
    found = modelled()
    console = Console(width=160)
    with console.capture() as said:
        console.print(tables.bench_table(found))
    assert "f64 (indicative)" in said.get()
    assert "f32 (indicative)" not in said.get()
    notes = tables.bench_notes(found)
    assert "f64 is indicative only: its intervals are wide" in notes
    said = "alternative 'no prefetcher': openblas 0.79 at VLEN 128, 1.59 at VLEN 256, lowest 0.70; nothing"
    assert any(said in note for note in notes)
    assert found.to_json()["model"]["indicative"] == {"f64": "its intervals are wide"}


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
    assert "not measured: mkl: not in the cache" in notes
    assert any("core SkylakeX" in note for note in notes)


@pytest.mark.parametrize(("value", "text"), [(0.00412, "0.00412"), (3.14159, "3.14"), (254.3, "254"), (0.0, "0")])
def test_figures_have_three_digits(value, text):
    assert tables.figure(value) == text


def test_unknown_baselines_name_the_known_ones():
    with pytest.raises(UsageError, match="openblass") as caught:
        libraries.check_names(["openblass"])
    assert "did you mean openblas" in str(caught.value)
    with pytest.raises(UsageError, match=r"0\.1"):
        libraries.check_names(["openblas@0.1"])


def test_peers_in_the_cache_are_those_that_need_no_download(tmp_path, monkeypatch):
    target, operator = reach(platforms.load("generic"), "native"), gemm()
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path))
    assert libraries.in_cache(operator, target, 1) == []
    entry = baseline.baseline("mkl", "x86_64").entry
    for folder in (entry.folder, baseline.baseline("blis", "x86_64", 2).entry.folder):
        folder.mkdir(parents=True)
        (folder / "entry.json").write_text("{}")
    assert libraries.in_cache(operator, target, 1) == ["mkl"]
    assert libraries.in_cache(operator, target, 2) == ["mkl", "blis"]  # another build
    (entry.folder / "half").touch()
    assert libraries.in_cache(operator, target, 1) == []
    assert libraries.in_cache(replace(operator, peers=("cudnn", "openblas@0.3.29")), target, 1) == []


@pytest.mark.parametrize(("threads", "load", "said"), [(2, 4.0, True), (2, 2.1, False), (1, 4.0, False)])
def test_several_threads_on_a_busy_machine_are_said(threads: int, load: float, said: bool) -> None:
    machine = {"cpu": "a core", "cores": 2, "load": load}
    notes = tables.bench_notes(replace(bench(row(16, "f32", 2.0), machine=machine), threads=threads))
    assert any("busy: 4.0 processes shared 2 cores" in note for note in notes) == said


def test_an_older_row_has_its_sizes_between_others():
    sizes = {"c": 64, "h": 9, "u": 2, "p": 0}
    new = Row("conv", "f32", sizes, "row", 1.0, {}, 0.0, written="c64h9u2")
    record = json.loads(json.dumps(bench(new, new).to_json()))
    (read,) = benches.parse(record, "x")
    assert (read.rows[0].dims, read.rows[0].shape) == (sizes, "c64h9u2")
    assert "<svg" in curves.speeds(read, "f32")
    for row in record["results"]:
        del row["dims"], row["shape"]
    (older,) = benches.parse(record, "x")
    assert (older.rows[0].dims, older.rows[0].shape) == (sizes, "64x9x2x0")


def test_a_geometric_mean_is_of_positive_numbers():
    assert geomean([0.5, 2.0, 8.0]) == pytest.approx(2.0)
    assert math.isnan(geomean([]))
    for wrong in (0.0, -1.0):
        with pytest.raises(ValueError, match=r"math domain error|positive"):
            geomean([1.0, wrong])
