"""An operator that lies only in a user's folder, with four dims and two attributes, from its wish to its product."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from tensorop import api, tuning
from tensorop.commands import opened
from tensorop.errors import SpecError, UsageError
from tensorop.model.architecture import host_arch
from tensorop.specs import operators
from tests.support.commands import ROOT, events, refused, tensorop

OWN = ROOT / "examples" / "operator"
SHAPES = "b2c3h100t5p2,b1c4h64t7u2,b1c1h9t3u3p1"


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    words = ("conv1d", "--plugins", OWN, "--platform", "native", "--shapes", SHAPES, "--dtype", "f32", "--trials", "4")
    ended = tensorop(*words, "--out", "made", cwd=folder)
    assert ended.status == 0, ended.stderr
    assert "6 known-wrong kernels rejected, 1 correct accepted" in ended.stderr
    (folder / "stdout").write_text(ended.stdout)
    return folder / "made"


@pytest.mark.extended
def test_its_problems_go_by_name_through_the_journal(product: Path) -> None:
    (run,) = events(product, "run")
    assert run["facts"]["shapes"] == SHAPES.split(",")
    scores = [
        event["score"]["per_problem"] for event in events(product, "finished") if event["outcome"]["kind"] == "ok"
    ]
    assert {label for score in scores for label in score} >= {f"{s} f32 relu=0" for s in SHAPES.split(",")}
    probes = [note["data"]["rows"] for note in events(product, "note") if note["name"] == "dispatch"]
    assert {"b": 1, "c": 4, "h": 64, "t": 7, "u": 2, "p": 0} in [row["dims"] for rows in probes for row in rows]


def test_it_is_verified_and_compared(product: Path) -> None:
    verified = tensorop("verify", product, "--plugins", OWN, "--format", "json", cwd=ROOT)
    assert verified.status == 0, verified.stderr
    against = ("--against", "taps+openblas,loops", "--shapes", SHAPES, "--fast", "--format", "json")
    compared = tensorop("bench", product, "--plugins", OWN, *against, cwd=ROOT)
    assert compared.status == 0, compared.stderr
    rows = compared.json()["results"]
    assert [row["shape"] for row in rows] == SHAPES.split(",")
    assert rows[1]["dims"] == {"b": 1, "c": 4, "h": 64, "t": 7, "u": 2, "p": 0}
    assert compared.json()["baselines"].keys() == {"taps+openblas", "loops"}
    assert "the operator's own C, -std=gnu11 -O3" in compared.json()["baselines"]["loops"]["config"]
    assert all(row["ratio"][name] > 0 for row in rows for name in ("taps+openblas", "loops"))
    assert all(row["verdict"][name] == "ok" for row in rows for name in ("taps+openblas", "loops"))
    assert not any(row.get("empty_ns") for row in rows)  # what a baseline does around its library is its work
    old = product.parent / "old.json"
    old.write_text(compared.stdout)
    words = ("--fast", "--compare", old, "--threshold", "99%", "--format", "json")
    again = tensorop("bench", product, "--plugins", OWN, *words, cwd=ROOT)
    assert again.status == 0, again.stderr
    assert len(json.loads(again.stdout)["results"]) == len(rows)


def test_its_first_suite_is_meant_where_none_is_named(product: Path) -> None:
    words = ("--plugins", OWN, "--against", "loops", "--fast", "--format", "json")
    compared = tensorop("bench", product, *words, cwd=ROOT)
    assert compared.status == 0, compared.stderr
    operator = operators.load("conv1d", (OWN,))
    assert operator.usual == "speech"
    shapes = [operator.shapes.text(shape) for shape in operator.suites["speech"]]
    assert [row["shape"] for row in compared.json()["results"]] == shapes
    helped = tensorop("conv1d", "--plugins", OWN, "--help", cwd=ROOT)
    assert "[default: speech]" in " ".join(helped.stdout.split())


def test_its_report_shows_its_shapes(product: Path) -> None:
    assert tensorop("report", product, "--plugins", OWN, cwd=ROOT).status == 0
    page = (product / "share" / "tensorop" / "report.html").read_text()
    assert all(shape in page for shape in SHAPES.split(","))


COMMANDS = {
    "verify": (),
    "bench": ("--shapes", "b1c1h9t3", "--fast"),
    "export": ("--out", "kit"),
    "import": ("result.jsonl",),
}


def test_without_its_folder_the_folder_is_named(product: Path, tmp_path: Path) -> None:
    manifest = json.loads((product / "share/tensorop/manifest.json").read_text())
    assert manifest["plugin_folders"] == {"templates/conv1d": str(OWN)}
    told = f"unknown operator 'conv1d': this product was made with templates/conv1d of the plug-in folder '{OWN}'"
    for path in (product, product / "lib/libtensorop_conv1d.so"):
        for command, words in COMMANDS.items():
            message = refused(command, path, *words, cwd=tmp_path)
            assert told in message
            assert f"give --plugins {OWN}, from Python plugins=['{OWN}']" in message
        with pytest.raises(UsageError) as caught:
            api.load(path)
        assert (caught.value.message, f"--plugins {OWN}" in str(caught.value.hint)) == (told, True)
    assert told in refused("verify", product, "--plugins", tmp_path, cwd=tmp_path)  # another folder
    reported = tensorop("report", product, cwd=tmp_path)
    assert reported.status == 0
    assert told in reported.stderr
    assert tensorop("inspect", product, cwd=tmp_path).status == 0
    alone = shutil.copy(product / "lib/libtensorop_conv1d.so", tmp_path)  # no manifest says where it is from
    assert "where it is a plug-in, give its folder: --plugins DIR" in refused("verify", alone, cwd=tmp_path)


def test_folders_are_given_as_texts_or_paths(product: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT.parent)
    relative = f"{ROOT.name}/examples/operator"
    for plugins in (OWN, str(OWN), relative, [str(OWN)], (relative, tmp_path), [tmp_path, OWN]):
        assert api.load(product, plugins).dtypes == ("f32",)
    monkeypatch.setenv("TENSOROP_PLUGINS", f"{tmp_path}:{relative}")
    assert api.load(product).dtypes == ("f32",)
    with pytest.raises(UsageError, match="the plug-in folder nowhere does not exist"):
        api.load(product, "nowhere")


RUNS = "import pathlib\npathlib.Path({marker!r}).touch()\n"
FORGED = "\x1b]0;x\x07own'; touch {marker}; '\nerror: none\r\u202e"


def test_what_a_manifest_names_is_shown_and_never_run(
    product: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil, marker = tmp_path / "evil", tmp_path / "ran"
    shutil.copytree(OWN, evil)
    for path in ("reference.py", "binding.py"):
        (evil / "templates/conv1d" / path).write_text(RUNS.format(marker=str(marker)))
    for kind, name in (("tuners", "bayes.py"), ("backends", "native.py")):
        (evil / kind).mkdir()
        (evil / kind / name).write_text(RUNS.format(marker=str(marker)))
    out = evil / "out"
    shutil.copytree(product, out, symlinks=True)
    shutil.copytree(evil / "templates", out / "templates")
    path = out / "share/tensorop/manifest.json"
    whole = json.loads(path.read_text())
    monkeypatch.chdir(evil)

    def named(folder: object) -> None:
        names = dict.fromkeys(("templates/conv1d", "backends/native", "tuners/bayes", "\x1b/x", "x"), folder)
        path.write_text(json.dumps({**whole, "plugin_folders": names}))

    for folder in (str(evil), FORGED.format(marker=marker)):
        named(folder)
        for command, words in COMMANDS.items() if folder == str(evil) else [("verify", ())]:
            message = refused(command, "out", *words, cwd=evil)
            assert message.startswith("error: unknown operator 'conv1d': this product was made with ")
            assert [line for line in message.splitlines() if not line.isprintable()] == []
            assert len(message.splitlines()) == 2
        reported = tensorop("report", "out", cwd=evil)
        assert reported.status == 0
        assert [line for line in reported.stderr.splitlines() if not line.isprintable()] == []
        with pytest.raises(UsageError) as caught:
            api.load(out)
        assert all(c.isprintable() or c == "\n" for c in str(caught.value))
        command_line = str(caught.value.hint).split(", from Python")[0]
        assert len(shlex.split(command_line)) == len(("give", "--plugins", folder))
    for folder in (".", "", "x" * 5000, ["."], None):
        named(folder)
        for opens in (api.load, opened.open_product):
            with contextlib.suppress(UsageError):
                opens(out)
    names = {"templates/conv1d": "one", "templates/that-it-uses": "two", "templates/gemm": "three", "tuners/x": "four"}
    path.write_text(json.dumps({**whole, "plugin_folders": names}))
    with pytest.raises(UsageError, match="give --plugins one --plugins two, from Python"):
        opened.open_product(out)
    for told in ("x", ["x"], None, {"templates/conv1d": {}}):
        path.write_text(json.dumps({**whole, "plugin_folders": told}))
        with pytest.raises(UsageError, match="unknown operator"):
            opened.open_product(out)
    assert not marker.exists()
    with pytest.raises(SpecError):
        api.load(out, [evil])
    assert marker.exists()


def test_the_next_command_has_the_folder(product: Path, tmp_path: Path) -> None:
    said = " ".join((product.parent / "stdout").read_text().split())
    assert f"next: tensorop bench made --plugins {OWN} --shapes SHAPE measures any other shape" in said
    own = tmp_path / "own's folder"
    own.symlink_to(OWN)
    words = ("--out", "kit", "--probes", "0", "--shapes", "b1c1h64t3")
    ended = tensorop("export", product, "--plugins", tmp_path, "--plugins", own, *words, cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    (line,) = [line for line in ended.stdout.splitlines() if "here, and run " in line]
    given = shlex.split(line.partition("here, and run ")[2])
    plugins = ["--plugins", str(tmp_path), "--plugins", str(own)]
    assert given == ["tensorop", "import", str(product), "result.jsonl", *plugins]


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (1, 2), (2, 1), (3, 0)])
def test_python_calls_it(product: Path, stride: int, padding: int) -> None:
    library = api.load(product, (OWN,))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3, 41)).astype(np.float32), rng.standard_normal((3, 5)).astype(np.float32)
    wide = np.pad(x, ((0, 0), (0, 0), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, 5, axis=2)[:, :, ::stride]
    want = np.einsum("bcit,ct->bci", windows, w)
    y = np.empty(want.shape, np.float32)
    assert library.conv1d(x, w, u=stride, p=padding, y=y) is y
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-5)
    got = library.conv1d(x, w, u=stride, p=padding, alpha=-2, relu=True)
    np.testing.assert_allclose(got, np.maximum(-2 * want, 0), rtol=1e-4, atol=1e-5)


def test_it_is_for_this_machine(product: Path) -> None:
    manifest = json.loads((product / "share" / "tensorop" / "manifest.json").read_text())
    assert manifest["platform"]["arch"] == host_arch()
    assert list(manifest["operators"]) == ["conv1d"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ("b1c1h2t9", "the t taps are no longer than x"),
        ("b1c1h9t3u0", "the stride u is 1 or more"),
        ("b1c1h0t3", "h is 0; sides to tune for"),
        ("b1c1h9", "not a shape of conv1d"),
        ("9x9", "not a shape of conv1d"),
    ],
)
def test_what_is_no_shape_of_it(shape: str, told: str) -> None:
    ended = tensorop("conv1d", "--plugins", OWN, "--shapes", shape, cwd=ROOT)
    assert ended.status == 2
    assert told in ended.stderr


def test_shapes_from_python_go_by_name_too() -> None:
    with pytest.raises(UsageError, match=r"not a shape of conv1d: .*the t taps are no longer than x"):
        tuning.tune("conv1d", shapes=[{"b": 1, "c": 1, "h": 2, "t": 9}], plugins=(OWN,), runner="null")


def test_what_is_no_baseline_of_it(product: Path) -> None:
    words = ("bench", product, "--plugins", OWN, "--shapes", "b1c1h9t3", "--fast")
    unknown = tensorop(*words, "--against", "tap+openblas", cwd=ROOT)
    assert unknown.status == 2
    assert "unknown baseline 'tap+openblas'" in unknown.stderr
    assert "did you mean taps+openblas" in unknown.stderr
    lacking = tensorop(*words, "--against", "taps+openblas,openblas", "--format", "json", cwd=ROOT).json()
    assert "openblas f32" in lacking["absent"]
    assert lacking["baselines"].keys() == {"taps+openblas", "openblas"}
