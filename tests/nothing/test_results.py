"""Pages, plots and README's rows are those of the records in benchmarks/results/; a broken record changes nothing."""

import html
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import drawn, plots, records, render
from benchmarks.plots import Bar, Plot
from tensorop.errors import UsageError
from tensorop.model.bench import AtVlen, BaselineInfo, Bench, Ratio, Row
from tensorop.space import problems
from tests.support.operators import gemm

ROOT = Path(__file__).parents[2]
RESULTS = "docs/results"
MODEL = {"name": "a-model", "version": 4, "calibrated": False, "interval": True}
ABOUT = {
    "schema": 1,
    "page": "gemm-rvv",
    "title": render.FIRST_SUITE,
    "payload": "bench",
    "commands": ["tensorop gemm --platform rvv", "tensorop bench build/gemm-rvv --format json"],
    "machine": {"cpu": "a processor", "cores": 2},
    "versions": {"tensorop": "0.1.0"},
    "date": "2026-11-26",
    "commit": "0123456789ab",
}


def numbers(svg):
    """What a plot says of itself, without the bytes of its drawing."""
    return html.unescape(re.search(r"<desc>(.*?)</desc>", svg, re.DOTALL)[1])


def test_what_is_committed_is_what_the_records_say():
    made = render.render(ROOT)
    for path, text in made.pages.items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path}: run `make results`"
    for path, plot in made.plots.items():
        assert numbers((ROOT / path).read_text(encoding="utf-8")) == plot.description, f"{path}: run `make results`"
    assert not render.stale(ROOT, made)


def row(side, **ratios):
    """Ratios at VLENs as v128=1.5; None: the baseline is wrong there."""
    found = {
        int(vlen[1:]): AtVlen(4.0, {} if x is None else {"openblas": Ratio(x, 0.9 * x, 1.1 * x, {"no cache": 0.5 * x})})
        for vlen, x in ratios.items()
    }
    return Row("gemm", "f32", {"m": side, "n": side, "k": side}, "row", 4.0, {}, 0.1, by_vlen=found)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("checkout")
    cores = {128: {"f32": "A"}, 512: {"f32": "B"}}
    info = {"openblas": BaselineInfo("0.3.34", "so", ("VLEN 512: none of this width",), cores)}
    rows = (row(16, v128=3.0, v512=0.9), row(100, v128=2.0, v512=None))
    absent = {"openblas 100x100x100 f32 VLEN 512": "wrong-result: C[0,0] is 1"}
    bench = Bench("rvv", 1, "flop/modelled-cycle", MODEL, info, absent, rows, {})
    record(tmp_path, "gemm-rvv-quick", {**ABOUT, "data": bench.to_json()})
    output = {
        **ABOUT,
        "payload": "output",
        "title": "make gemm",
        "data": {"lines": ["one", "w" * 200, "x" * 200, "two"]},
    }
    record(tmp_path, "make-gemm", output)
    marks = "<!-- results plot -->\n<!-- end -->\na\n<!-- results -->\nold\n<!-- end -->\nb\n"
    marks += "<!-- make gemm -->\n<!-- end -->\n"
    (tmp_path / "README.md").write_text(marks)
    render.write(tmp_path)
    return tmp_path


@pytest.fixture
def checkout(whole, tmp_path):
    """One with a single record, its pages and a README with marks."""
    return Path(shutil.copytree(whole, tmp_path / "checkout"))


def record(root, name, about):
    path = root / "benchmarks" / "results" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(about))
    return path


def tree(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_page_has_its_header_and_every_ratio(checkout):
    text = (checkout / "docs/results/gemm-rvv.md").read_text()
    for cell in ("| machine | a processor, 2 cores |", "| date | 2026-11-26 |", "| commit | `0123456789ab` |"):
        assert cell in text
    assert "| baseline | openblas 0.3.34 (core A at VLEN 128, B at VLEN 512) |" in text
    assert "    tensorop bench build/gemm-rvv --format json\n" in text
    narrow, wide = text.split("### Suite quick at VLEN 512")
    assert "| 16x16x16 | 4 | 3.00 (2.70 to 3.30) |" in narrow
    assert "| best fit of the model | **2.45** | 2.00 (100x100x100) |" in narrow
    assert "| if no cache | **1.22** | 1.00 (100x100x100) |" in narrow
    assert "| 100x100x100 | 4 | absent |" in wide
    assert "| low ends of the ranges | **0.81** | 0.81 (16x16x16) |" in wide
    assert "- openblas, VLEN 512: none of this width" in wide
    assert "- absent: openblas 100x100x100 f32 VLEN 512: wrong-result: C[0,0] is 1" in wide


def vectors(called):
    """A comparison of one row and one square; by_vlen of the row at one VLEN."""
    ratios = {"openblas": Ratio(4.0, 3.0, 5.0)}
    rows = (
        Row("gemm", "f32", {"m": 1, "n": 64, "k": 64}, "row", 2.0, ratios, 0.1, called=called),
        Row("gemm", "f32", {"m": 64, "n": 64, "k": 64}, "row", 2.0, ratios, 0.1),
    )
    return Bench("avx512", 1, "GFLOP/s", None, {"openblas": BaselineInfo("1", "so")}, {}, rows, {})


def test_a_record_without_the_baselines_other_function_is_marked_until_it_is_measured_again(tmp_path):
    about = {**ABOUT, "page": "gemm-avx512"}
    (tmp_path / "README.md").write_text("<!-- results -->\n<!-- end -->\n")
    record(tmp_path, "gemm-avx512-quick", {**about, "data": vectors({}).to_json()})
    page, index = (Path(f"docs/results/{name}.md") for name in ("gemm-avx512", "index"))
    made = render.render(tmp_path).pages
    assert "| 1x64x64 | 2 | 4.00 (3.00 to 5.00) against gemm |\n| 64x64x64 | 2 | 4.00 (3.00 to 5.00) |" in made[page]
    assert "- against gemm: the baseline's gemv is not measured there yet, and may be faster" in made[page]
    assert "| 2 (1 against gemm) |" in made[index]
    assert ", 1 thread; 1x64x64 against gemm |" in made[Path("README.md")]
    record(tmp_path, "gemm-avx512-quick", {**about, "data": vectors({"openblas": "gemv"}).to_json()})
    made = render.render(tmp_path).pages
    assert not any("against gemm" in text for text in made.values())
    assert "| 1x64x64 | 2 | 4.00 (3.00 to 5.00) (gemv) |" in made[page]


def test_a_judged_library_has_a_row_for_each_finding(tmp_path):
    finding = {"fault": "wrong result", "calls": 3, "shared": ["k >= 7"], "smallest": "fortran n=9 k=7"}
    finding |= {"detail": "c[1] is 2, expected 3", "program": "int main(void) {}"}
    judged = {"function": "dsyrk", "calls": 50, "error_over_bound": 0.2, "findings": [finding]}
    data = {"library": "~/libx.so", "arch": "x86_64", "interfaces": ["*_"], "seed": 4, "seconds": 2.5, "ok": False}
    data |= {"remarks": ["a remark"], "functions": [judged, {**judged, "function": "ddot", "findings": []}]}
    about = {**ABOUT, "page": "judged", "payload": "judgement", "title": "libx 1", "data": data}
    record(tmp_path, "judged-x", about)
    (text,) = (text for path, text in render.render(tmp_path).pages.items() if path.name == "judged.md")
    assert "| calls | 100, in 2 s |" in text
    row = "| `dsyrk` | wrong result | 3 of 50 | k >= 7 | `fortran n=9 k=7` | c[1] is 2, expected 3 | not run |"
    assert row in text
    assert "- a remark" in text
    finding["confirmed"] = "exit status 1"
    record(tmp_path, "judged-x", about)
    page = render.render(tmp_path).pages[Path(f"{RESULTS}/judged.md")]
    assert row.replace("not run", "exit status 1") in page


def test_the_best_of_several_baselines_is_beside_the_first(tmp_path):
    ratios = {"openblas": Ratio(2.0, 1.9, 2.1), "mkl": Ratio(0.8, 0.7, 0.85), "best": Ratio(0.75, 0.7, 0.85)}
    ahead = {"openblas": Ratio(1.5, 1.4, 1.6), "mkl": Ratio(3.0, 3.0, 3.0), "best": Ratio(1.5, 1.3, 1.6)}
    of_sides = (((1, 64, 64), ratios, "mkl"), ((512, 512, 512), ahead, "openblas"))
    rows = [
        Row("gemm", "f32", dict(zip("mnk", sides, strict=True)), "row", 2.0, of, 0.1, called={"best": name})
        for sides, of, name in of_sides
    ]
    info = {name: BaselineInfo("1", "so") for name in ("openblas", "mkl")}
    bench = Bench("avx512", 1, "GFLOP/s", None, info, {}, tuple(rows), {})
    (tmp_path / "README.md").write_text("<!-- results -->\n<!-- end -->\n<!-- results plot -->\n<!-- end -->\n")
    record(tmp_path, "gemm-avx512-quick", {**ABOUT, "page": "gemm-avx512", "data": bench.to_json()})
    made = render.render(tmp_path)
    page, index, readme = (
        made.pages[Path(of)] for of in (f"{RESULTS}/gemm-avx512.md", f"{RESULTS}/index.md", "README.md")
    )
    assert "| median | **1.73** | 1.50 (512x512x512) | **1.06** | 0.75 (1x64x64) |" in page
    assert "| column | 1 | **0.75** | 0.75 (1x64x64) | 1 |\n| middle | 1 | **1.50** | 1.50 (512x512x512) | 0 |" in page
    assert "| openblas | **1.73** | 1.50 (512x512x512) | 1 of 2 |\n| mkl | **1.55** | 0.80 (1x64x64) | 1 of 2 |" in page
    assert "| 1x64x64 | 2 | 2.00 (1.90 to 2.10) against gemm | 0.75 (0.70 to 0.85) (mkl) |" in page
    assert "- best: the fastest right baseline of each shape, in brackets; its ratio is from other rounds" in page
    assert "| measured | openblas 1 | 2 (1 against gemm) | **1.73** |" in index
    assert "| measured | best of openblas, mkl | 2 | **1.06** | 0.75 (1x64x64) |" in index
    assert "| **1.06** | 0.75 (1x64x64 f32) | measured: clock of a processor, 1 thread; against the best of o" in readme
    assert "Speedup of gemm over OpenBLAS: avx512 1.73 measured" in readme
    assert [bar.value for bar in made.plots[Path("docs/images/overview.svg")].bars] == [pytest.approx(3**0.5)]


def test_unseen_shapes_without_the_baselines_other_function_are_marked():
    shape = {"dtype": "f32", "vlen": 256, "madds": 4096.0, "ratio": 2.0, "regret": None}
    shapes = [{**shape, "problem": f"{m}x64x64 f32 layout=row", **more} for m, more in CALLED]
    data = {"platform": "p", "unit": "u", "baseline": "b", "seeds": [1], "limit": None, "left_out": 0, "shapes": shapes}
    about = records.Measurement.model_validate({**ABOUT, "payload": "unseen", "data": data})
    one = records.Measured("gemm-p-unseen", about, records.Unseen.model_validate(data))
    assert "\n- Of these, 1 are against gemm: the baseline's gemv is not measured there yet" in render.section(one).text
    assert [line.alone for line in render.lines([one])] == [{"1x64x64 f32 layout=row": "against gemm"}]


CALLED = ((1, {}), (1, {"called": "gemv"}), (2, {}))


def test_a_dtype_that_is_indicative_is_called_so():
    model = {**MODEL, "indicative": {"f64": "its intervals are wide"}}
    ratios = {"openblas": Ratio(1.5, 1.4, 1.6)}
    sizes = {"m": 8, "n": 8, "k": 8}
    rows = tuple(
        Row("gemm", d, sizes, "row", 2.0, ratios, 0.1, path_instructions=path)
        for d, path in (("f32", 321), ("f64", None))
    )
    bench = Bench("c908", 1, "flop/modelled-cycle", model, {"openblas": BaselineInfo("1", "so")}, {}, rows, {})
    table = render.shapes_table(bench, 0)
    assert "| shape | f32, flop/modelled-cycle | f32 / openblas | f32, path | f64 (indicative), " in table
    assert "| 8x8x8 | 2 | 1.50 (1.40 to 1.60) | 321 | 2 | 1.50 (1.40 to 1.60) |  |" in table
    assert [*render.remarks(bench)] == [render.PATH, "f64 is indicative only: its intervals are wide"]


def test_the_readme_shows_the_vlen_that_is_the_least(checkout):
    text = (checkout / "README.md").read_text()
    row = "| [rvv, VLEN 512](docs/results/gemm-rvv.md) | **0.90** | 0.90 (16x16x16 f32) | simulated: modelled cycles"
    assert f"{row}, 1 thread |" in text
    assert "\n![Speedup of gemm over OpenBLAS: rvv, VLEN 512 0.90 simulated](docs/images/overview.svg)\n" in text
    assert "old" not in text
    assert text.endswith("b\n<!-- make gemm -->\n    one\n    ...\n    two\n<!-- end -->\n")


def test_every_bar_says_how_it_was_made(checkout):
    text = numbers((checkout / "docs/images/overview.svg").read_text())
    assert "rvv, VLEN 128, f32: 2.45, simulated [2.00, 3.00]" in text
    assert "rvv, VLEN 512, f32 *: 0.90, simulated [0.90]" in text  # limited by a remark
    assert "* VLEN 512: none of this width" in text
    drawn = plots.draw(Plot("t", "GFLOP/s", [Bar("x", 1, 1, 2, "measured")], ratio=False, interval="range")).decode()
    assert "<!--  1.00 measured -->" in drawn
    assert "<!-- GFLOP/s -->" in drawn


def test_a_number_that_was_changed_by_hand_is_found(checkout):
    page = checkout / "docs/results/gemm-rvv.md"
    before = page.read_text()
    page.write_text(before.replace("3.00 (2.70", "3.10 (2.70"))
    assert render.render(checkout).pages[Path("docs/results/gemm-rvv.md")] == before != page.read_text()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda text: text[:200], r"expected JSON: .*line 1 column"),
        (lambda text: "[]", "expected an object of JSON, got list"),
        (lambda text: text.replace('"schema": 1', '"schema": 2'), "key 'schema': expected 1, got 2"),
        (lambda text: text.replace('"date": "2026-11-26"', '"date": "today"'), "key 'date': expected text of the form"),
        (lambda text: text.replace('"ours": 4.0', '"ours": "4"'), r"data: key 'results.*ours'"),
        (lambda text: text.replace('"payload": "bench"', '"payload": "unseen"'), "data: missing key 'baseline'"),
        (lambda text: text.replace('"page": "gemm-rvv"', '"page": "gemm-rvw"'), "key 'page': expected one of"),
    ],
)
def test_a_broken_record_names_file_and_place_and_changes_nothing(checkout, capsys, monkeypatch, change, place):
    path = checkout / "benchmarks/results/gemm-rvv-quick.json"
    path.write_text(change(path.read_text()))
    before = tree(checkout)
    monkeypatch.setattr(records, "ROOT", checkout)
    assert render.main() == 1
    printed = capsys.readouterr().err
    assert "gemm-rvv-quick.json" in printed
    assert re.search(place, printed)
    assert tree(checkout) == before


def test_rows_of_a_kit_are_checked(tmp_path):
    data = {"file": "benchmarks/cuda/rows.jsonl", "product": "p", "dtype": "bf16"}
    path = record(tmp_path, "cuda", {**ABOUT, "page": "cuda", "payload": "kit", "data": data})
    rows = tmp_path / data["file"]
    rows.parent.mkdir()
    sides = {"product": "p", "dtype": "bf16", "m": 8, "n": 4, "k": 2, "a_along_m": 0, "b_along_k": 1, "chosen": 3}
    line = json.dumps({**sides, "variants_us": {"3": 2.0}, "cublaslt_us": {"0": 4.0, "5": 3.0}})
    rows.write_text(line + "\n")
    (only,) = records.read(path, tmp_path).gpu
    assert (only.shape, only.layout, only.us, only.ratio, only.first) == ("8x4x2", "TN", 2.0, 1.5, 2.0)
    assert records.KitProblem(**json.loads(line), more="bias").timed().shape == "8x4x2, bias"
    for broken, place in ((line[:50], r"rows.jsonl:1: expected JSON"), (line.replace('"3"', '"4"'), "key 'chosen'")):
        rows.write_text(broken + "\n")
        with pytest.raises(UsageError, match=place):
            records.read(path, tmp_path)


def test_rows_beside_peers_are_checked_and_shown_by_kind(tmp_path):
    data = {"file": "benchmarks/cuda/rows.jsonl", "ours": "made"}
    path = record(tmp_path, "attention-cuda", {**ABOUT, "page": "attention-cuda", "payload": "peers", "data": data})
    rows = tmp_path / data["file"]
    rows.parent.mkdir()
    sizes = {"kind": "k", "b": 1, "h": 2, "g": 1, "s": 3, "t": 4, "d": 192, "v": 128, "causal": True}
    arms = {"made": {"us": 4.0}, "made, pages": {"us": 5.0}, "p": {"us": 3.0}, "q": {"us": 8.0}, "r": {"refused": "no"}}
    line = json.dumps({**sizes, "arms": arms})
    ragged = json.dumps({**sizes, "kind": "ragged", "b": 2, "lengths": [3, 4], "arms": arms})
    rows.write_text('{"gpu": "G"}\n' + line + "\n" + ragged + "\n")
    one = records.read(path, tmp_path)
    only, other = one.peers
    assert other.shape == "b2h2g1s3t4d192v128, 7 rows"
    assert (only.shape, only.us, only.best, only.pages) == ("b1h2g1s3t4d192v128", 4.0, 0.75, 0.8)
    text = render.section(one).text
    assert "| k, causal | 1 | **0.75** | 0.75 | b1h2g1s3t4d192v128 |" in text
    assert "| k, causal | b1h2g1s3t4d192v128 | 4 | 0.75 | 2.00 | **0.75** | 0.80 |" in text
    for broken, place in (
        (line[:50], r"rows.jsonl:1: expected JSON"),
        (line.replace('"made"', '"mad"'), "expected times"),
    ):
        rows.write_text(broken + "\n")
        with pytest.raises(UsageError, match=place):
            records.read(path, tmp_path)


def test_a_measurement_is_recorded_with_what_it_was_made_by(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    words = ["--page", "tuners", "--title", "make gemm", "--payload", "output", "--command", "echo first"]
    monkeypatch.setattr("sys.argv", ["records", "out", *words, "--command", "echo second; echo third"])
    assert records.main() == 0
    measured = records.read(tmp_path / "out.json")
    assert measured.data.lines == ["second", "third"]
    assert measured.about.commands == ["echo first", "echo second; echo third"]
    assert measured.about.machine.cores > 0
    assert "tensorop" in measured.about.versions
    monkeypatch.setattr("sys.argv", ["records", "out", "--command", "false"])
    before = (tmp_path / "out.json").read_bytes()
    assert records.main() == 1
    assert tree(tmp_path) == {tmp_path / "out.json": before}


def test_a_page_without_records_goes_away(checkout):
    (checkout / "docs/results/by-hand.md").write_text("# mine\n")
    shutil.copy(checkout / "docs/results/gemm-rvv.md", checkout / "docs/results/gemm-old.md")
    render.write(checkout)
    assert {path.name for path in (checkout / "docs/results").iterdir()} == {"by-hand.md", "gemm-rvv.md", "index.md"}


def test_drawn_shapes_are_of_each_class_and_in_no_suite(capsys, monkeypatch):
    operator = gemm()
    shapes = drawn.drawn(operator, 3, 23)
    found = [problems.of(operator, "f32", shape) for shape in shapes]
    number = dict(zip(operator.classes, (3, 3, 3, *[2] * 7), strict=True))
    assert Counter(problems.classes(operator, found).values()) == number
    assert not {*shapes} & {*operator.probes}.union(*operator.suites.values())
    assert drawn.drawn(operator, 3, 23) == shapes != drawn.drawn(operator, 4, 23)
    monkeypatch.setattr("sys.argv", ["drawn", "attention", "--seed", "1"])
    assert drawn.main() == 1
    assert "operator 'attention' has no `classes`" in capsys.readouterr().err
