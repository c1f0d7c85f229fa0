"""bench and verify on this machine, on a small product and on libraries that are wrong."""

import json
import subprocess

import click
import pytest
from click.testing import CliRunner

from tensorop.cli import library_commands
from tensorop.commands import bench, doctor, verify
from tensorop.errors import JobError
from tensorop.model.verdict import Seed
from tensorop.provision import targets
from tensorop.specs import platforms
from tensorop.target import reach
from tests.support import products
from tests.support.operators import gemm

pytestmark = pytest.mark.skipif(targets.host_arch() != "x86_64", reason="the product is for x86-64")
SHAPES = ((16, 16, 16), (33, 40, 77))
# Row-major, no transposes: right but for what REPLACED says.
NAIVE = """#include <stdint.h>
int tensorop_gemm_f32_variant(int layout, int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
                              const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                              int64_t ldc, int variant) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float s = 0;
            for (int64_t q = 0; q < END; q++)
                s += a[i * lda + q] * b[q * ldb + j];
            c[i * ldc + j] = alpha * s;
        }
    return 0;
}
"""


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    return products.install("generic", tmp_path_factory.mktemp("product") / "gemm", ("f32",))


def naive(folder, end="k"):
    source, library = folder / "naive.c", folder / "naive.so"
    source.write_text(NAIVE)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", f"-DEND={end}", str(source), "-o", str(library)], check=True)
    return library


def test_a_product_against_openblas(product):
    rows = []
    found = bench.bench(product, shapes=SHAPES, dtypes=("f32", "f64"), runner="native", final=False, tell=rows.append)
    assert found.unit == "GFLOP/s"
    assert found.model is None
    assert [row.shape for row in found.rows] == ["16x16x16", "33x40x77"]
    assert tuple(rows) == found.rows
    for row in found.rows:
        ratio = row.ratios["openblas"]
        assert 0 < ratio.low <= ratio.value <= ratio.high
        assert row.ours > 0
        assert row.peak_share is not None
        assert 0 < row.peak_share < 1.5
    assert "core " in found.baselines["openblas"].config  # it says which kernels it chose
    assert "f64" in found.absent  # the library holds f32 alone
    assert found.machine["cpu"]
    json.dumps(found.to_json(), allow_nan=False)


def test_what_cannot_be_had_is_named(product):
    found = bench.bench(product, ("openblas", "cublas"), SHAPES[:1], runner="native", final=False)
    assert "cublas does not exist for x86_64" in found.absent["cublas"]
    assert set(found.rows[0].ratios) == {"openblas"}
    alone = bench.bench(product, ("cudnn",), SHAPES[:1], runner="native", final=False)
    assert alone.rows[0].ratios == {}
    assert alone.rows[0].ours > 0
    assert alone.geomean() == {}


def test_fail_below(product):
    group = click.Group()
    library_commands.add_to(group)
    words = ["bench", str(product), "--shapes", "16x16x16", "--fast", "--runner", "native", "--format", "json"]
    low = CliRunner().invoke(group, [*words, "--fail-below", "0.000001"])
    assert low.exit_code == 0, low.output
    assert json.loads(low.stdout)["results"][0]["m"] == 16
    high = CliRunner().invoke(group, [*words, "--fail-below", "1000000"])
    assert high.exit_code == 1
    assert "below 1e+06: 16x16x16 f32" in high.stderr


def test_a_library_outside_of_a_product(tmp_path):
    target = reach(platforms.load("generic"), "native")
    given = {"dtypes": ["f32"], "shapes": SHAPES[:1], "final": False}
    found = bench.compare(gemm(), target, naive(tmp_path), **given)
    assert found.rows[0].ratios["openblas"].value > 0
    with pytest.raises(JobError, match="is not timed, since it fails"):
        bench.compare(gemm(), target, naive(tmp_path, "k - 1"), **given)


def test_the_whole_grid_of_a_product(product):
    seed = Seed.draw()
    verdicts = list(verify.verify(product, runner="native", seed=seed, threads=(2,)))
    assert all(verdict.ok for verdict in verdicts), verdicts
    assert [(v.dtype, v.threads) for v in verdicts] == [("f32", 1), ("f32", 2)]
    assert verdicts[0].cases > 500
    assert {v.seed for v in verdicts} == {str(seed)}


def test_the_doctor_compiles_and_runs():
    health = doctor.doctor("generic")
    assert [step.name for step in health.steps] == ["reach", "compile", "run"], health.steps
    assert all(step.ok for step in health.steps), health.steps
    json.dumps(health.to_json())
