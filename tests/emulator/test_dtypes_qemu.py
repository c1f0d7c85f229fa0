"""A whole job for dtypes whose operands packing widens, on an emulated target; and kernels that are wrong there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tensorop.model.trial import Kind
from tests.support import plugins, templates
from tests.support.commands import tensorop

DTYPES = ("i8", "bf16")


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dtypes")
    own = plugins.small_blocks(folder / "own", "rvv", "vlens: [128]\n")  # test_job_qemu.py searches at several
    words = ("gemm", *own, "--dtype", ",".join(DTYPES), "--shapes", "33x29x65,64x64x64", "--trials", "6", "--seed", "5")
    made = tensorop(*words, "--out", "out", "--format", "json", cwd=folder)
    assert made.status == 0, made.stderr
    return folder / "out"


@pytest.mark.extended
def test_the_whole_grid_passes_at_every_vlen(product: Path) -> None:
    told = json.loads((product / "share/tensorop/manifest.json").read_text())["results"]["verification"]
    assert {(v["dtype"], v["vlen"]) for v in told} == {(d, vlen) for d in DTYPES for vlen in (128, 256, 512, 1024)}
    assert {v["outcome"] for v in told} == {"ok"}


@pytest.mark.extended
def test_baselines_without_the_dtype_are_named_and_have_no_ratio(product: Path) -> None:
    compared = json.loads((product / "share/tensorop/bench.json").read_text())
    assert {row["dtype"] for row in compared["results"]} == set(DTYPES)
    assert all(row["ours"] > 0 and row["ratio"] == {} for row in compared["results"])
    assert {f"openblas {dtype}" for dtype in DTYPES} <= set(compared["absent"])
    assert compared["geomean"] == {}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a += {{ ku }} * lda;", ""),
        (
            '{{ mac("c%d_%d" % (i, j), "a%d" % i, "b%d" % j, vl(i)) }}',
            '{{ mac("c%d_%d" % (i, j), "a%d" % i, "b0", vl(i)) }}',
        ),
    ],
)
@pytest.mark.parametrize("dtype", [*DTYPES, "f16"])
def test_a_wrong_template_is_refused(dtype: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = templates.templates["outer"]
    assert old in right.text
    monkeypatch.setitem(templates.templates, "outer", replace(right, text=right.text.replace(old, new)))
    found = templates.verdicts("rvv", "outer", dtype, {**templates.OUTER, "lmul": 1, "mr_vectors": 1, "nr": 4})
    assert found[-1].outcome.kind in (Kind.WRONG, Kind.GUARD)
