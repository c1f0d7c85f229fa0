"""bench under QEMU: modelled cycles of a small RVV product and of OpenBLAS, at three VLENs."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from tensorop.backends import reach
from tensorop.cli import library_commands
from tensorop.commands import bench, doctor
from tensorop.errors import JobError
from tensorop.model.bench import geomean
from tensorop.specs import platforms
from tests.support import products
from tests.support.operators import gemm

SHAPES = ((16, 16, 16), (9, 33, 20))


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    return products.install("rvv", tmp_path_factory.mktemp("product") / "gemm", ("f32",))


@pytest.fixture(scope="module")
def found(product):
    return bench.bench(*products.reached(product), bench.BenchRequest(shapes=SHAPES, threads=2))


def test_modelled_rows_say_what_they_are(found):
    assert found.unit == "flop/modelled-cycle"
    assert found.model is not None
    assert {"name", "version", "calibrated"} <= set(found.model)
    assert found.threads == 1
    assert "one core" in found.absent["2 threads"]
    assert "riscv64_zvl128b at vlen 128" in found.baselines["openblas"].config.lower()
    json.dumps(found.to_json(), allow_nan=False)


def test_threads_of_a_model_are_refused(product):
    ended = CliRunner().invoke(library_commands.bench, [str(product), "--threads", "1,2"])
    assert "--threads has no effect for 'rvv': a board model has one core" in str(ended.exception)


def test_each_vlen_is_given_and_the_row_is_their_mean(found):
    assert [tuple(row.dims.values()) for row in found.rows] == list(SHAPES)
    for row in found.rows:
        assert list(row.by_vlen) == [128, 256, 512]
        ratio = row.ratios["openblas"]
        assert ratio.value == pytest.approx(geomean(at.ratios["openblas"].value for at in row.by_vlen.values()))
        assert row.ours == pytest.approx(geomean(at.ours for at in row.by_vlen.values()))
        assert ratio.low < ratio.high  # the model has assumed constants, and ratios bend with them
        assert ratio.low <= ratio.value <= ratio.high
        for at in row.by_vlen.values():
            assert at.ratios["openblas"].low <= at.ratios["openblas"].value <= at.ratios["openblas"].high


def test_counters_are_per_1000_flops(found):
    for row in found.rows:
        assert row.by_vlen
        for at in row.by_vlen.values():
            for counters in (at.counters, at.baseline_counters["openblas"]):
                assert 20 < counters["instructions"] < 20_000
                assert counters["cycles"] > 0
                assert counters["misses.l1"] >= counters["misses.l2"] >= 0


def test_short_calls_are_rid_of_what_an_empty_one_takes(found):
    for row in found.rows:
        for at in row.by_vlen.values():
            assert set(at.empty_cycles) == {"ours", "openblas"}
            assert all(0 < cycles < 300 for cycles in at.empty_cycles.values())
            assert at.to_json()["empty_cycles"] == at.empty_cycles


def test_the_path_to_the_kernel_is_counted_in_instructions(found):
    for row in found.rows:
        for at in row.by_vlen.values():
            assert 50 < at.path_instructions < 1000
            assert at.to_json()["path_instructions"] == at.path_instructions


def test_the_same_again(product, found):
    again = bench.bench(*products.reached(product), bench.BenchRequest(shapes=SHAPES[:1]))
    assert again.rows[0].to_json() == found.rows[0].to_json()


@pytest.mark.extended
def test_one_row_is_compared_with_the_cheaper_of_openblas_functions(product):
    opened, target = products.reached(product)
    given = bench.BenchRequest(["f32"], ((1, 64, 96),), final=False)
    (row,) = bench.compare(opened.operator, target, opened.library, given).rows
    (alone,) = bench.compare(replace(opened.operator, routines={}), target, opened.library, given).rows
    assert list(row.by_vlen) == [128, 256, 512]
    for vlen, at in row.by_vlen.items():
        assert at.verdicts == {"ours": "ok", "openblas": "ok"}
        fewer = at.ratios["openblas"].value < alone.by_vlen[vlen].ratios["openblas"].value
        assert at.called == {"openblas": "gemv" if fewer else "gemm"}
    assert row.called == {"openblas": ", ".join(dict.fromkeys(at.called["openblas"] for at in row.by_vlen.values()))}
    assert "gemv" in row.called["openblas"]
    assert alone.called == {}


@pytest.mark.extended
def test_the_best_of_two_baselines_is_the_cheaper_at_each_vlen(product):
    given = bench.BenchRequest(["f32"], SHAPES[:1], ("openblas", "openblas@0.3.29"), final=False)
    (row,) = bench.bench(*products.reached(product), given).rows
    for at in row.by_vlen.values():
        both = {name: at.ratios[name].value for name in ("openblas", "openblas@0.3.29") if name in at.ratios}
        assert at.ratios["best"].value == min(both.values())
        assert both[at.called["best"]] == min(both.values())
    assert row.ratios["best"].value == pytest.approx(geomean(at.ratios["best"].value for at in row.by_vlen.values()))


def test_a_baseline_this_architecture_lacks(product):
    given = bench.BenchRequest(None, SHAPES[:1], ("openblas", "mkl"), final=False)
    with pytest.raises(
        JobError, match="cannot compare with mkl: the baseline mkl does not exist for riscv64"
    ) as caught:
        bench.bench(*products.reached(product), given)
    assert "openblas" in str(caught.value.hint)


def test_the_doctor_counts_on_the_target():
    health = doctor.doctor("rvv")
    if any(p.status == "missing" and not p.optional for p in health.pieces):
        pytest.skip("something a job needs is not here")
    counted = [step for step in health.steps if step.name.startswith("count")]
    assert len(counted) == 3
    assert all(step.ok for step in health.steps), health.steps


WRONG_CORE = """schema: 1
name: wrong-core
parent: rvv
description: told to use OpenBLAS's ZVL256B kernels on vectors of 512 bits
vlens: [256, 512]
baselines:
  openblas:
    - {environment: {OPENBLAS_CORETYPE: RISCV64_ZVL128B}}
    - {vlen_min: 512, environment: {OPENBLAS_CORETYPE: RISCV64_ZVL256B}, remark: wide}
"""


def test_a_baseline_that_is_wrong_at_a_vlen_has_no_ratio_there(product, tmp_path):
    """OpenBLAS 0.3.34's ZVL256B gives wrong results at VLEN 512 where tails are left, and right ones where none are."""
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "wrong-core.yaml").write_text(WRONG_CORE)
    target = reach(platforms.load("wrong-core", (tmp_path,)), None)
    library = next((product / "lib").glob("libtensorop_gemm.so"))
    shapes = ((32, 32, 32), (100, 100, 100))
    found = bench.compare(gemm(), target, library, bench.BenchRequest(["f32"], shapes, final=False))
    right, wrong = found.rows
    assert set(right.ratios) == set(right.by_vlen[512].ratios) == {"openblas"}
    assert right.verdicts == {"ours": "ok", "openblas": "ok"}
    assert set(wrong.by_vlen[256].ratios) == {"openblas"}
    assert wrong.by_vlen[512].ratios == wrong.ratios == {}
    assert wrong.verdicts["ours"] == "ok"
    assert "elements wrong" in wrong.by_vlen[512].verdicts["openblas"]
    (name,) = (name for name in found.absent if "VLEN 512" in name)
    assert name.startswith("openblas 100x100x100 f32")
    assert found.baselines["openblas"].remarks == ("VLEN 512: wide",)
    cores = found.baselines["openblas"].cores
    assert cores == {256: {"f32": "riscv64_zvl128b"}, 512: {"f32": "riscv64_zvl256b"}}
    again = bench.compare(gemm(), target, library, bench.BenchRequest(["f32"], shapes[1:], final=False))
    assert again.rows[0].to_json() == wrong.to_json()  # its verdict is remembered with its count
