"""What `tensorop.tune` takes, and what it refuses before it touches a folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorop
from tensorop import pipeline
from tensorop.errors import UsageError
from tensorop.model.job import Job
from tests.support import plugins
from tests.support.commands import ROOT, events
from tests.support.commands import tensorop as command


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs that `tune` asked for, none of which is carried out."""
    jobs: list[Job] = []

    def run(job: Job) -> Any:
        jobs.append(job)
        return iter(())

    monkeypatch.setattr(pipeline, "run", run)
    return jobs


@pytest.mark.parametrize(
    ("said", "wish"),
    [
        ("operator must be a name; got None", {"operator": None}),
        ("platform must be a name; got 3", {"platform": 3}),
        ("unknown dtype of gemm 'f33'", {"dtypes": "f32,f33"}),
        ("unknown dtype of gemm '<class 'numpy.float32'>'", {"dtypes": [np.float32]}),
        ("--dtype names no element type", {"dtypes": []}),
        (r"--shapes must name at least one shape or suite; got \[\]", {"shapes": []}),
        ("not a shape of gemm: 'int' object", {"shapes": 16}),
        ("unknown suite of gemm 'quik'\ndid you mean quick", {"shapes": "quik"}),
        ("not a shape of gemm: .*got '64x64'", {"shapes": "quick,64x64"}),
        ("jobs must be an integer from 1 to 256; got 0", {"jobs": 0}),
        ("jobs must be .*; got '2'", {"jobs": "2"}),
        ("threads must be .*; got 1025", {"threads": 1025}),
        ("batch must be .*; got 0", {"batch": 0}),
        ("trials must be .*; got 1.5", {"trials": 1.5}),
        ("trials must be .*; got 0", {"trials": 0}),
        ("seed must be .*; got None", {"seed": None}),
        ("seed: expected an integer or N:SECRET, got '3:'", {"seed": "3:"}),
        ("tuner must be .*; got None", {"tuner": None}),
        ("--budget must be a positive time; got nan seconds", {"budget": float("nan")}),
        (r"--budget must be a positive time; got \[2\] seconds", {"budget": [2]}),
        ("--budget must be a positive time; got 0 seconds", {"budget": 0}),
        ("--budget must be a positive time; got True seconds", {"budget": True}),
        ("the plug-in folder nowhere does not exist", {"plugins": "nowhere"}),
        ("plugins must be .*; got 5", {"plugins": 5}),
        ("dtypes must be .*; got 5", {"dtypes": 5}),
        ("out must be .*; got 5", {"out": 5}),
        ("runner must be .*; got 5", {"runner": 5}),
        ("c_dtype must be .*; got 5", {"c_dtype": 5}),
        ("offline must be True or False; got 'no'", {"offline": "no"}),
        ("fresh must be True or False; got None", {"fresh": None}),
        ("progress must be .*; got 5", {"progress": 5}),
    ],
)
def test_a_wish_that_cannot_be_is_named(asked: list[Job], said: str, wish: dict[str, Any]) -> None:
    words = {"operator": "gemm", "platform": "generic", **wish}
    with pytest.raises(UsageError, match=f"(?s){said}"):
        tensorop.tune(**words)
    assert not asked


def test_texts_are_those_of_the_command_line(asked: list[Job], tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="a run ends with Done"):  # since `run` is none
        tensorop.tune(
            "gemm",
            dtypes="f64, f32",
            shapes="64x64x64,tiny,64x64x64",
            plugins=str(tmp_path),
            budget=np.float64(3),
            seed="5:0ab",
        )
    (job,) = asked
    assert job.dtypes == ("f64", "f32")
    assert job.shapes[:2] == ((64, 64, 64), (2, 2, 2))
    assert len(set(job.shapes)) == len(job.shapes)
    assert (job.plugins, job.budget_s) == ((tmp_path,), 3)
    assert (job.seed, job.secret) == (5, 0xAB)


def test_a_suite_may_have_digits_in_its_name(asked: list[Job]) -> None:
    with pytest.raises(AssertionError, match="a run ends with Done"):
        tensorop.tune("conv2d", platform="generic", dtypes="f32")
    assert asked[0].suite == "resnet50"


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("held", "platform", "tuned"),
    [
        ("[f64]", "generic", ("f64",)),
        ("[f64, f32]", "generic", ("f32", "f64")),
        ("[bf16, f32]", "cuda-sm90", ("bf16",)),
        ("[bf16]", "generic", ("bf16",)),
        ("[f64]", "cuda-sm90", ()),
    ],
)
def test_by_default_dtypes_are_tuned_that_operator_and_platform_have(
    asked: list[Job], held: str, platform: str, tuned: tuple[str, ...], tmp_path: Path
) -> None:
    folder = plugins.write(tmp_path, ROOT) / "templates" / "axpy"
    text = (folder / "operator.yaml").read_text()
    (folder / "operator.yaml").write_text(text.replace("dtypes: [f32, f64]", f"dtypes: {held}"))
    with pytest.raises(
        AssertionError if tuned else UsageError, match="ends with Done" if tuned else "axpy supports f64"
    ):
        tensorop.tune("axpy", platform=platform, plugins=tmp_path)
    assert [job.dtypes for job in asked] == ([tuned] if tuned else [])
    words = ("axpy", "--plugins", tmp_path, "--platform", platform, "--runner", "null", "--shapes", "1000")
    ended = command(*words, "--trials", "2", "--out", "out", cwd=tmp_path)
    if platform.startswith("cuda"):
        assert ("axpy supports f64" in ended.stderr) is not bool(tuned)
    else:
        assert ended.status == 0, ended.stderr
        assert {trial["dtype"] for trial in events(tmp_path / "out", "started")} == set(tuned)


@pytest.mark.parametrize("place", [5, None, b"x", ["x"], "x\0y"])
def test_what_is_no_place_of_a_product(place: Any) -> None:
    with pytest.raises(UsageError, match="the path of a product must be"):
        tensorop.load(place)


@pytest.mark.parametrize("given", [5, None, [5]])
def test_what_is_no_plug_in_folder_of_a_product(given: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"plugins must be .*; got {re.escape(repr(given))}"):
        tensorop.load(tmp_path, plugins=given)


@pytest.mark.parametrize(
    ("wish", "option"),
    [
        ({"platform": "cuda-sm90", "tuner": "random"}, "tuner"),
        ({"platform": "cuda-sm90", "trials": 9, "warm_start": "none"}, "warm-start"),
        ({"platform": "cuda-sm90", "budget": "5m"}, "budget"),
        ({"platform": "rvv", "threads": 4}, "threads"),
        ({"platform": "generic", "unsafe": True}, "unsafe"),
        ({"platform": "generic", "dtypes": "f32", "c_dtype": "f32"}, "c-dtype f32"),
    ],
)
def test_a_wish_that_would_change_nothing_is_refused(wish: dict[str, Any], option: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"^--{option} has no effect"):
        tensorop.tune("gemm", out=tmp_path / "out", **wish)
    assert not list(tmp_path.iterdir())


def test_options_are_those_that_are_not_as_by_default() -> None:
    assert Job("gemm").chosen == {"operator"}
    assert Job("gemm", budget_s=None, trials=9, c_dtype=None).chosen == {"operator", "trials"}
    assert Job("gemm", budget_s=9.0, given=frozenset()).chosen == set()
