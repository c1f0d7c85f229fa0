"""`--shapes @FILE`: what a file may say, what a damaged one brings, and what its weights do."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tensorop import tuning
from tensorop.backends import reach
from tensorop.cli import tables
from tensorop.errors import UsageError
from tensorop.model.bench import Ratio
from tensorop.model.listed import MOST
from tensorop.model.point import Point
from tensorop.model.trial import Samples
from tensorop.space import problems
from tensorop.space.listing import Weights
from tensorop.specs import benches, operators, platforms
from tensorop.trial import race, selection
from tests.nothing.test_bench_record import bench, row
from tests.support.commands import events, tensorop
from tests.support.operators import gemm

LIST = "# my shapes\n512x512x512 30\n1x300x200  # once a step\n\n64x64x64 9\n"
RECORD = """# a record
sgemm layout=row transa=N transb=T m=64 n=32 k=16 calls=5 seconds=3
sgemm layout=col transa=N transb=T m=32 n=64 k=16 calls=2 seconds=1e-3
sgemm layout=col transa=T transb=N m=32 n=64 k=16 calls=2 seconds=1
dgemm layout=row transa=C transb=T m=8 n=8 k=8 calls=1 seconds=2
dgemm layout=row transa=N transb=N m=0 n=8 k=8 calls=1 seconds=1
dsyrk layout=row uplo=U trans=N n=8 k=8 calls=9 seconds=3
"""


def listed(tmp_path: Path, text: str, operator: str = "gemm", more: str = ""):
    (tmp_path / "calls.txt").write_text(text)
    return tuning.listed(operators.load(operator), f"@{tmp_path / 'calls.txt'}{more}")


def test_a_list_has_shapes_with_weights(tmp_path: Path) -> None:
    found = listed(tmp_path, LIST)
    assert [(one.shape, one.weight) for one in found.calls] == [
        ((512, 512, 512), 0.75),
        ((64, 64, 64), 0.225),
        ((1, 300, 200), 0.025),
    ]
    assert (found.dtypes, found.named, found.remarks) == (("",), (), ())
    mixed = listed(tmp_path, LIST, more=",tiny,64x64x64")
    assert set(found.shapes) | set(gemm().suites["tiny"]) == set(mixed.shapes)
    assert mixed.ways((64, 64, 64), "f32") == mixed.ways((2, 2, 2), "f32") == (None,)


@pytest.mark.parametrize("operator", ["gemm", "conv2d", "attention"])
def test_each_operator_takes_a_list_of_its_suite(tmp_path: Path, operator: str) -> None:
    found = operators.load(operator)
    suite = found.suites[found.usual]
    text = "".join(f"{found.shapes.text(shape)} {place}\n" for place, shape in enumerate(suite, 1))
    assert set(listed(tmp_path, text, operator).shapes) == set(suite)


def test_a_record_has_element_types_and_layouts(tmp_path: Path) -> None:
    found = listed(tmp_path, RECORD)
    tb, both = Point.of(layout="row", tb=1), Point.of(layout="row", ta=1, tb=1)
    # a column-major call is the row-major one that it equals
    assert [(one.shape, one.dtype, one.options, pytest.approx(one.weight)) for one in found.calls] == [
        ((64, 32, 16), "f32", tb, 4 / 6.001),
        ((8, 8, 8), "f64", both, 2 / 6.001),
        ((64, 32, 16), "f32", Point.of(layout="row", ta=1), 0.001 / 6.001),
    ]
    assert found.remarks == (
        f"{tmp_path / 'calls.txt'}: 2 lines of other routines are skipped, with 40.0% of its time",
    )
    assert found.ways((8, 8, 8), "f32") == ()
    assert problems.asked(gemm(), "f64", found.shapes, found) == (
        gemm().reference.problem("f64", {"m": 8, "n": 8, "k": 8}, {"layout": "row", "ta": 1, "tb": 1}),
    )


def test_a_record_decides_the_element_types_of_a_job(tmp_path: Path) -> None:
    (tmp_path / "calls.txt").write_text(RECORD.split("dgemm")[0])
    job = tuning.job("gemm", {"platform": "rvv", "shapes": f"@{tmp_path / 'calls.txt'}"})
    assert (job.dtypes, job.shapes) == (("f32",), ((64, 32, 16),))
    with pytest.raises(UsageError, match="have calls of f32; got --dtype f64"):
        tuning.job("gemm", {"platform": "rvv", "shapes": f"@{tmp_path / 'calls.txt'}", "dtypes": "f64"})
    job = tuning.job("gemm", {"platform": "rvv", "shapes": f"@{tmp_path / 'calls.txt'},8x8x8", "dtypes": "f64"})
    assert job.shapes_of("f64") == ((8, 8, 8),)


def test_the_heaviest_calls_count(tmp_path: Path) -> None:
    text = "".join(f"{side}x8x8 {side}\n" for side in range(1, 2 * MOST + 1))
    found = listed(tmp_path, text)
    assert found.shapes == tuple((side, 8, 8) for side in range(2 * MOST, MOST, -1))
    assert found.time("f32") == pytest.approx(1)


GEMM = "sgemm layout=row transa=N transb=N m=4 n=4"
DAMAGED = {
    "": "calls.txt, line 1: expected a line for each shape, such as `64x64x64` or `64x64x64 2.5`",
    "# nothing\n\n": "calls.txt, line 2: expected a line for each shape, .* no line but comments",
    "dsyrk n=8 calls=1 seconds=1\n": "line 1: expected .*; it has 1 lines of other routines",
    "64x64x64\n64x64\n": "line 2: expected a shape as mxnxk, got '64x64'",
    "64x64x0": "line 1: '64x64x0': k is 0",
    "64x64x64 -1": "line 1: expected a positive number as a weight, got '-1'",
    "64x64x64 nan": "expected a positive number as a weight, got 'nan'",
    "64x64x64 1 2": "expected a shape and at most one weight, got '64x64x64 1 2'",
    "sgemm layout=row transa=N m=4 n=4 k=4 calls=1 seconds=1": "expected the fields of sgemm, got 'sgemm layout=row",
    f"{GEMM} k=x calls=1 seconds=1": "expected the fields of sgemm, got .*k=x",
    f"{GEMM} k=4 calls=1": "expected seconds=NUMBER, got",
    f"{GEMM} k=4 calls=1 sec": r"expected ROUTINE NAME=VALUE \.\.\. calls=N seconds=S",
    f"{GEMM} k=4 calls=1 seconds=x": "expected a positive number as seconds=, got 'x'",
    "\udcff\udcfe": "calls.txt: ",
}


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_file_is_refused_with_file_and_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "calls.txt").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError, match=DAMAGED[text]):
        tuning.shapes(gemm(), f"quick,@{tmp_path / 'calls.txt'}")


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("quick,@", "--shapes: expected the name of a file behind '@', got nothing"),
        ("@nowhere.txt", "nowhere.txt: cannot be read: No such file"),
        ("@.", r"\.: cannot be read: it is a folder"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(named: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        tuning.shapes(gemm(), named)


def test_weights_count_inside_a_class(tmp_path: Path) -> None:
    """A candidate that is faster where the time is has the lower cost, and is selected."""
    work = {"a": 1.0, "b": 1.0}
    often, seldom = ({n: Samples("s", c, c, c) for n, c in (("a", x), ("b", y))} for x, y in ((1.0, 3.0), (2.0, 1.0)))
    plain, weighed = (race.Course(work, dict.fromkeys(work, "one"), weights=w) for w in ({}, {"a": 1.8, "b": 0.2}))
    assert plain.score(seldom) < plain.score(often)
    assert weighed.score(often) < weighed.score(seldom)
    assert weighed.score(often) == pytest.approx(1e3 * math.exp(0.1 * math.log(3)))
    assert [*race.Course.of({"x": 1.0, "y": 10.0, "z": 100.0}, {}, {"z": 9.0}).work] == ["z", "x", "y"]
    costs = {"often": {("a", 0): 1.0, ("b", 0): 3.0}, "seldom": {("a", 0): 2.0, ("b", 0): 1.0}}
    assert selection.choose(costs, {("a", 0): 1.8, ("b", 0): 0.2}, least=1, most=1) == ["often"]
    assert selection.choose(costs, least=1, most=1) == ["seldom"]


def test_a_stand_in_has_the_weight_of_its_shape(tmp_path: Path) -> None:
    found = listed(tmp_path, "4096x4096x4096 3\n60x60x60 1\n", more=",32x32x32")
    budgets = replace(reach(platforms.load("rvv"), "null").budgets, problem_flops=1e6)
    weigh = Weights(gemm(), "f32", found, budgets)
    small = problems.proxy(gemm(), "f32", (4096, 4096, 4096), budgets)
    assert weigh(problems.of(gemm(), "f32", small)) == weigh(problems.of(gemm(), "f32", (4096, 4096, 4096))) == 1.5
    assert weigh(problems.of(gemm(), "f32", (60, 60, 60), 1)) == 0.5
    assert weigh(problems.of(gemm(), "f32", (32, 32, 32))) == 1


def test_a_job_searches_the_recorded_calls(tmp_path: Path) -> None:
    (tmp_path / "calls.txt").write_text(RECORD)
    words = ("gemm", "--runner", "null", "--platform", "rvv", "--trials", "12", "--out", "out")
    words = (*words, "--shapes", "@calls.txt")
    ended = tensorop(*words, cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    assert "2 lines of other routines are skipped" in ended.stdout + ended.stderr
    measured = {label for one in events(tmp_path / "out", "finished") for label in one["score"]["per_problem"]}
    assert {"64x32x16 f32 layout=row tb=1", "8x8x8 f64 layout=row ta=1 tb=1"} <= measured
    assert not {"64x32x16 f32 layout=row", "8x8x8 f32 layout=row"} & measured
    (tmp_path / "calls.txt").write_text(RECORD.replace("seconds=3", "seconds=4"))
    again = tensorop(*words, cwd=tmp_path)
    assert again.status == 2
    assert "calls" in again.stderr


def test_a_comparison_shows_what_part_of_the_time_is_saved() -> None:
    rows = row(16, "f32", 2.0, time_share=0.6), row(32, "f32", 0.5, time_share=0.1), row(64, "f32", 4.0)
    found = bench(*rows)
    assert found.saved() == {"openblas": pytest.approx(1 - (0.3 + 0.2) / 0.7)}
    (line,) = (line for line in tables.bench_notes(found) if "saved" in line)
    assert line == "time in --shapes: 28.6% saved compared with openblas (70.0% of it measured)"
    (again,) = benches.parse(json.loads(json.dumps(found.to_json())), "here")
    assert again.saved() == found.saved()
    assert not bench(replace(rows[2], ratios={"openblas": Ratio(1.0, 1.0, 1.0)})).saved()
