"""An operator that lies only in a user's folder, with four dims and two attributes, from its wish to its product."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tensorop import api, tuning
from tensorop.errors import UsageError
from tensorop.provision.targets import host_arch
from tensorop.specs import operators
from tests.support.commands import ROOT, events, tensorop

OWN = ROOT / "examples" / "operator"
SHAPES = "b2c3h100t5p2,b1c4h64t7u2,b1c1h9t3u3p1"


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    words = ("conv1d", "--plugins", OWN, "--platform", "native", "--shapes", SHAPES, "--dtype", "f32", "--trials", "4")
    ended = tensorop(*words, "--out", "made", cwd=folder)
    assert ended.status == 0, ended.stderr
    assert "4 faulty kernels refused, 1 honest ones passed" in ended.stderr
    return folder / "made"


def test_its_problems_go_by_name_through_the_journal(product: Path) -> None:
    (run,) = events(product, "run")
    assert run["facts"]["shapes"] == SHAPES.split(",")
    scores = [
        event["score"]["per_problem"] for event in events(product, "finished") if event["outcome"]["kind"] == "ok"
    ]
    assert {label for score in scores for label in score} >= {f"{s} f32 layout=bch" for s in SHAPES.split(",")}
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


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (1, 2), (2, 1), (3, 0)])
def test_python_calls_it(product: Path, stride: int, padding: int) -> None:
    library = api.load(product, (OWN,))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3, 41)).astype(np.float32), rng.standard_normal((3, 5)).astype(np.float32)
    wide = np.pad(x, ((0, 0), (0, 0), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, 5, axis=2)[:, :, ::stride]
    got = library.conv1d(x, w, stride=stride, padding=padding)
    np.testing.assert_allclose(got, np.einsum("bcit,ct->bci", windows, w), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="argument 4"):
        library.conv1d(x, w, padding=5)


def test_it_is_for_this_machine(product: Path) -> None:
    manifest = json.loads((product / "share" / "tensorop" / "manifest.json").read_text())
    assert manifest["platform"]["arch"] == host_arch()
    assert list(manifest["operators"]) == ["conv1d"]


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ("b1c1h2t9", "the t taps are no longer than x"),
        ("b1c1h9t3u0", "the stride u is 1 or more"),
        ("b1c1h0t3", "h is 0; sides to tune for"),
        ("b1c1h9", "is not a shape of conv1d"),
        ("9x9", "neither a suite nor a shape"),
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
