"""bench and verify on this machine, on a small product and on libraries that are wrong."""

import json
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from packaging.version import Version

from tensorop.backends import reach
from tensorop.cli import library_commands
from tensorop.commands import bench, contest, doctor, libraries, verify
from tensorop.commands.contest import Contest
from tensorop.commands.libraries import LibraryUnderTest
from tensorop.errors import JobError, UsageError
from tensorop.model.architecture import host_arch
from tensorop.model.verdict import Seed
from tensorop.provision import baseline
from tensorop.render import adapting
from tensorop.report import threads
from tensorop.runners import session
from tensorop.runners.native import Native
from tensorop.runners.protocol import TargetLibrary
from tensorop.runners.session import Guest
from tensorop.space import problems
from tensorop.specs import benches, platforms
from tensorop.specs import products as product_specs
from tensorop.verify import grid
from tensorop.verify.subject import Subject
from tests.support import products, shared_objects
from tests.support.operators import gemm

pytestmark = [
    pytest.mark.clock,
    pytest.mark.skipif(host_arch() != "x86_64", reason="the product is for x86-64"),
]
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


def naive(folder, end="k", before=""):
    source, library = folder / "naive.c", folder / "naive.so"
    source.write_text(
        before + NAIVE.replace("q < END", "q < end").replace("    for", f"    int64_t end = {end};\n    for", 1)
    )
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return library


def test_a_product_against_openblas(product):
    rows = []
    found = bench.bench(
        *products.reached(product, "native"), bench.BenchRequest(("f32", "f64"), SHAPES, final=False), rows.append
    )
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


def test_short_calls_are_rid_of_what_an_empty_one_takes(product):
    shapes = ((4, 4, 4), (100, 100, 100))
    short, long = bench.bench(*products.reached(product), bench.BenchRequest(shapes=shapes, final=False)).rows
    assert set(short.empty_ns) == {"ours", "openblas"}
    assert all(0 < ns < 2 * 4**3 / short.ours + 1000 for ns in short.empty_ns.values())
    assert short.to_json()["empty_ns"] == short.empty_ns
    assert long.empty_ns == {}
    assert "empty_ns" not in long.to_json()


def test_the_path_to_the_kernel_is_counted_in_instructions(product, tmp_path):
    target, operator = reach(platforms.load("generic"), "native"), gemm()
    program = adapting.program(target.platform, operator).path

    def counted(library, shape=(4, 4, 4), threads=1):
        ours = libraries.ours(operator, library, threads)
        running = Contest(operator, target, program, ours, (), threads, False)
        return contest.row(running, problems.of(operator, "f32", shape)).path_instructions

    below = product / "lib/libtensorop_gemm.so"
    assert 50 < counted(below) < 1000
    assert counted(below) == counted(below)
    assert counted(below, (100, 100, 100)) is None  # it would take long
    assert counted(below, threads=2) is None
    plain = counted(naive(tmp_path))
    for wait, more in (("", 0), (".rept 100; nop; .endr", 100)):  # before the first access
        assert counted(naive(tmp_path, f'({{ __asm__ volatile("{wait}"); k; }})')) == plain + more


def test_ours_is_called_as_its_peers_are(product, tmp_path):
    def called(library, dtype="f32"):
        found = libraries.ours(gemm(), library, 1).library(Native(), dtype)
        return found.api, found.path

    over, below = product / "lib/libtensorop_cblas.so", product / "lib/libtensorop_gemm.so"
    assert called(below) == ("cblas", str(over))
    assert called(below.resolve()) == ("cblas", str(over))
    assert called(below, "i8") == ("tensorop", str(below))  # BLAS has no name for it
    # The standard names beside it are another library's.
    (tmp_path / "libtensorop_cblas.so").write_bytes(over.read_bytes())
    assert called(naive(tmp_path)) == ("tensorop", str(tmp_path / "naive.so"))
    # What is timed is what is judged.
    copy = tmp_path / shared_objects.soname(below)
    copy.write_bytes(below.read_bytes())
    build = ["cc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-xc", "-", "-xnone", copy, "-Wl,-rpath,$ORIGIN"]
    (tmp_path / "libtensorop_cblas.so").unlink()
    wrong = [*build, "-o", tmp_path / "libtensorop_cblas.so"]
    names = product_specs.load(gemm()).libraries["tensorop_cblas"].names["f32"]
    text = " ".join(f"void {name}(void) {{}}" for name in names)
    subprocess.run(wrong, input=text, text=True, check=True)
    with pytest.raises(JobError, match=r"computes a wrong result|no longer than one that does nothing"):
        bench.bench(*products.reached(copy), bench.BenchRequest(shapes=SHAPES[:1], final=False))


def test_what_cannot_be_had_is_named(product):
    for against, name in ((("openblas", "cublas"), "cublas"), (("cudnn",), "cudnn")):
        with pytest.raises(JobError, match=f"cannot compare with {name}: .* does not exist for x86_64"):
            bench.bench(*products.reached(product), bench.BenchRequest(None, SHAPES[:1], against, final=False))


def test_what_a_baseline_has_no_function_for_is_named(tmp_path):
    of = products.install("generic", tmp_path / "gemm", ("i8",))
    found = bench.bench(*products.reached(of), bench.BenchRequest(None, SHAPES[:1], ("openblas",), final=False))
    assert "libscipy_openblas.so has no cblas function for i8" in found.absent["openblas i8"]
    assert found.absent["openblas i8"].startswith("the library cannot be loaded on the target: libscipy_openblas.so")
    assert found.absent["FMA peak i8"] == "native/peak.c is of f32 and f64 alone"


def test_what_the_library_does_not_hold_is_said_before_any_work(product, tmp_path):
    ended = CliRunner().invoke(library_commands.bench, [str(product), "--dtype", "i8,f16"])
    assert isinstance(ended.exception, UsageError)
    assert "libtensorop_gemm.so supports f32; got --dtype i8, f16" in str(ended.exception)
    words = [str(product), "--shapes", "16x16x16", "--fast", "--runner", "native", "--format", "json"]
    told = json.loads(CliRunner().invoke(library_commands.bench, [*words, "--dtype", "f32"]).stdout)
    rows = told["results"]
    for results, said in (([], "got none"), ([{**rows[0], "op": "conv2d"}], "got conv2d")):
        (tmp_path / "old.json").write_text(json.dumps({**told, "results": results}))
        ended = CliRunner().invoke(library_commands.bench, [*words, "--compare", str(tmp_path / "old.json")])
        assert f"old.json: key 'results': expected results of gemm, {said}" in str(ended.exception)


def test_fail_below(product):
    group = click.Group()
    group.add_command(library_commands.bench)
    words = ["bench", str(product), "--shapes", "16x16x16", "--fast", "--runner", "native", "--format", "json"]
    low = CliRunner().invoke(group, [*words, "--fail-below", "0.000001"])
    assert low.exit_code == 0, low.output
    assert json.loads(low.stdout)["results"][0]["m"] == 16
    high = CliRunner().invoke(group, [*words, "--fail-below", "1000000"])
    assert high.exit_code == 1
    assert "below 1e+06: 16x16x16 f32" in high.stderr
    shown = CliRunner().invoke(group, words[:-2])
    assert "measured one layout of 0 (row), 1 (row,tb=1), 2 (row,ta=1); choose another with --layout N" in shown.stdout


@pytest.mark.extended
def test_several_numbers_of_threads(product):
    words = [str(product), "--shapes", "16x16x16,96x96x96", "--fast", "--format", "json"]
    one = json.loads(CliRunner().invoke(library_commands.bench, [*words, "--threads", "2"]).stdout)
    assert one["threads"] == 2
    assert "by_threads" not in one
    assert not (product / threads.KEPT).exists()
    ended = CliRunner().invoke(library_commands.bench, [*words, "--threads", "1,2"])
    assert ended.exit_code == 0, ended.output
    found = json.loads(ended.stdout)
    assert found["threads"] == 1  # what it is of one number it is of the first
    assert set(one) - set(found) == set()
    assert {count: each["threads"] for count, each in found["by_threads"].items()} == {"1": 1, "2": 2}
    assert found["results"] == found["by_threads"]["1"]["results"]
    rows = [row for each in found["by_threads"].values() for row in each["results"]]
    assert len(rows) == 4
    assert all(row["verdict"] == {"ours": "ok", "openblas": "ok"} for row in rows)
    assert "OPENBLAS_NUM_THREADS=2" in found["by_threads"]["2"]["baselines"]["openblas"]["config"]
    assert json.loads((product / threads.KEPT).read_text()) == found
    assert str(product / threads.KEPT) in ended.stderr
    means = threads.mean_gains(benches.read(product / threads.KEPT), "f32")
    assert means[1] == 1
    assert 0.1 < means[2] < 4
    below = CliRunner().invoke(library_commands.bench, [*words, "--threads", "1,2", "--fail-below", "1000000"])
    assert below.stderr.count("below 1e+06: 96x96x96") == 2


def blas(folder, **changed):
    """A BLAS whose functions are slow or wrong (tests/support/blas.c)."""
    library, macros = folder / "blas.so", {"EXTRA_GEMM": 0, "OFF_GEMM": 0, "EXTRA_GEMV": 0, "OFF_GEMV": 0, **changed}
    source = Path(__file__).parents[1] / "support" / "blas.c"
    defined = [f"-D{name}={value}" for name, value in macros.items()]
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", *defined, str(source), "-o", str(library)], check=True)
    return library


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("changed", "called", "absent"),
    [
        ({"EXTRA_GEMM": 20}, "gemv", {}),
        ({"EXTRA_GEMV": 20}, "gemm", {}),
        ({"EXTRA_GEMM": 20, "OFF_GEMV": 1}, "gemm", {"peer (gemv) 1x64x96 f32 layout=row": "wrong-result"}),
        ({"EXTRA_GEMV": 20, "OFF_GEMM": 1}, "gemv", {"peer (gemm) 1x64x96 f32 layout=row": "wrong-result"}),
        ({"NO_GEMV": 1}, "gemm", {"peer (gemv) f32": "has no gemv function for f32"}),
        (
            {"OFF_GEMM": 1, "OFF_GEMV": 1},
            None,
            {f"peer ({n}) 1x64x96 f32 layout=row": "wrong" for n in ("gemm", "gemv")},
        ),
    ],
)
def test_a_baseline_is_the_fastest_right_function_of_its_library(tmp_path, changed, called, absent):
    target, operator = reach(platforms.load("generic"), "native"), gemm()
    peer = LibraryUnderTest("peer", blas(tmp_path, **changed), "cblas")
    program = adapting.program(target.platform, operator).path
    running = Contest(operator, target, program, libraries.ours(operator, naive(tmp_path), 1), (peer,), 1, False)
    running.open("f32")
    row = contest.row(running, problems.of(operator, "f32", (1, 64, 96)))
    assert row.called == ({"peer": called} if called else {})
    assert set(row.ratios) == ({"peer"} if called else set())
    assert (row.verdicts["peer"] == "ok") is (called is not None)
    assert running.absent.keys() == absent.keys()
    assert all(why in running.absent[what] for what, why in absent.items())
    assert row.to_json().get("called", {}) == row.called
    square = contest.row(running, problems.of(operator, "f32", (16, 16, 16)))
    assert square.called == {}  # one function alone computes it


def test_the_best_is_the_fastest_right_baseline_of_each_shape(tmp_path):
    target, operator = reach(platforms.load("generic"), "native"), gemm()
    wrong, slow, fast = {"OFF_GEMM": 1}, {"EXTRA_GEMM": 20}, {"EXTRA_GEMM": 4, "EXTRA_GEMV": 20}
    peers = []
    for name, changed in (("wrong", wrong), ("slow", slow), ("fast", fast)):
        (tmp_path / name).mkdir()
        peers.append(LibraryUnderTest(name, blas(tmp_path / name, **changed), "cblas"))
    ours = libraries.ours(operator, naive(tmp_path), 1)
    program = adapting.program(target.platform, operator).path

    def compared(*peers, shape):
        running = Contest(operator, target, program, ours, peers, 1, False)
        running.open("f32")
        return contest.row(running, problems.of(operator, "f32", shape))

    square, line = (compared(*peers, shape=shape) for shape in ((24, 24, 24), (1, 64, 96)))
    assert (set(square.ratios), square.called) == ({"slow", "fast", "best"}, {"best": "fast"})
    assert square.verdicts["wrong"] != "ok"
    assert "best" not in square.verdicts
    assert square.ratios["best"] != square.ratios["fast"]  # other rounds than those that decided
    assert line.called == {"wrong": "gemv", "slow": "gemv", "fast": "gemm", "best": line.called["best"]}
    assert line.called["best"] != "fast"
    ahead = compared(peers[0], peers[2], shape=(1, 64, 96))  # by its gemv, which alone is right
    assert ahead.called["best"] == "wrong"
    assert set(compared(*peers[:1], shape=(24, 24, 24)).ratios) == set()
    assert set(compared(*peers[1:2], shape=(24, 24, 24)).ratios) == {"slow"}  # one alone is no choice


def test_every_form_of_a_product_with_a_vector_is_called_rightly(tmp_path):
    """All transposes and layouts with leading dimensions, alpha and beta, of one row, one column and both."""
    operator, seed = gemm(), Seed.draw()
    reference = operator.reference
    every = reference.full_grid("f32", reference.CONTROL_TILE, {"mc": 32, "kc": 64, "nc": 48}, seed.stream(0))
    cases = [one for one in every if operator.routines["gemv"].serves(one.problem.sizes) and one.problem.sizes["k"]]
    forms = Counter(
        (one.problem.options["layout"], one.problem.options["ta"], one.problem.options["tb"], n == 1)
        for one in cases
        if max(n := one.problem.sizes["n"], one.problem.sizes["m"]) > 1
    )
    assert len(forms) == 16, forms
    program = adapting.program(platforms.load("generic"), operator).path

    def judged(**changed):
        library = TargetLibrary(str(blas(tmp_path, **changed)), "gemv", "f32")
        return grid.check(reference, Subject(Native(), program, Guest(libraries=(library,))), cases, 0, seed)

    right = judged()
    assert right.ok, right.outcome
    assert right.cases == len(cases)
    assert not judged(OFF_GEMV=1).ok


def test_a_library_outside_of_a_product(tmp_path):
    target = reach(platforms.load("generic"), "native")
    given = bench.BenchRequest(["f32"], SHAPES[:1], final=False)
    found = bench.compare(gemm(), target, naive(tmp_path), given)
    assert found.rows[0].ratios["openblas"].value > 0
    assert found.rows[0].verdicts == {"ours": "ok", "openblas": "ok"}
    with pytest.raises(JobError, match="computes a wrong result"):
        bench.compare(gemm(), target, naive(tmp_path, "k - 1"), given)


def test_a_library_that_is_wrong_with_two_threads_alone_has_no_figure_there(tmp_path):
    target = reach(platforms.load("generic"), "native")
    given = bench.BenchRequest(["f32"], SHAPES[:1], final=False)
    with_two = """(getenv("TENSOROP_NUM_THREADS")[0] == '2' ? k - 1 : k)"""
    library = naive(tmp_path, with_two, "#include <stdlib.h>\n")
    assert bench.compare(gemm(), target, library, given).rows[0].verdicts["ours"] == "ok"
    with pytest.raises(JobError, match="computes a wrong result"):
        bench.compare(gemm(), target, library, replace(given, threads=2))


LOOKS = """
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
static atomic_long until;
static long ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
static void *worker(void *unused) {
    for (;;)
        if (ms() > until)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, 0);
    return unused;
}
static int look(void) {
    static pthread_t thread;
    if (!thread)
        pthread_create(&thread, 0, worker, 0);
    until = ms() + 60;
    return 0;
}
"""


@pytest.mark.extended
def test_threads_that_go_on_looking_for_work_are_waited_for(tmp_path, monkeypatch):
    """OpenBLAS's do for up to a tenth of a second, on cores that the next entry's threads need."""
    rested = []
    reply = session._reply

    def watch(raw, *more):
        if raw.samples:  # of timed calls; a call whose instructions are counted has none
            rested.append(raw.rested / sum(len(rounds) + 1 for rounds in raw.samples))
        return reply(raw, *more)

    monkeypatch.setattr(session, "_reply", watch)
    target = reach(platforms.load("generic"), "native")
    given = bench.BenchRequest(["f32"], SHAPES[:1], final=False)
    alone = replace(gemm(), against=("cudnn",))  # which is absent here

    def wait(folder, *how, threads=2):
        rested.clear()
        folder.mkdir()
        bench.compare(alone, target, naive(folder, *how), replace(given, threads=threads))
        return sum(rested) / len(rested)

    assert wait(tmp_path / "one", threads=1) == 0
    calm = wait(tmp_path / "calm")
    assert calm > 0
    # beside other programs a thread that looks may not run for as long as one wait, so that this ends
    assert any(wait(tmp_path / f"looking{n}", "(look(), k)", LOOKS) > 1.5 * calm for n in range(5))


@pytest.mark.parametrize("against", [("openblas",), ()])
def test_a_library_that_is_right_in_its_first_call_alone_has_no_figure(tmp_path, against):
    target = reach(platforms.load("generic"), "native")
    first = naive(tmp_path, "(calls++ ? k - 1 : k)", "static int calls;\n")
    with pytest.raises(JobError, match="computes a wrong result"):
        bench.compare(gemm(), target, first, bench.BenchRequest(["f32"], SHAPES[:1], against, final=False))


def test_a_named_baseline_that_is_absent_ends_the_command_before_it_measures(product, monkeypatch):
    """Also where others are there: their table would be read as all that was asked for."""
    monkeypatch.setattr("tensorop.provision.baseline.TORCH", baseline.InstalledPackage("no-such-torch", Version("2.8")))
    for names in ("torch", "openblas,torch"):
        ended = CliRunner().invoke(library_commands.bench, [str(product), "--against", names, "--fast"])
        assert isinstance(ended.exception, JobError)
        assert ended.exception.exit_status == 1
        told = str(ended.exception)
        assert "cannot compare with torch: no-such-torch is not installed in the Python that runs tensorop" in told
        assert "pip install 'no-such-torch>=2.8'" in told
        assert " x openblas" not in ended.output


def test_the_whole_grid_of_a_product(product):
    seed = Seed.draw()
    verdicts = list(verify.verify(*products.reached(product, "native"), seed, threads=(2,)))
    assert all(verdict.ok for verdict in verdicts), verdicts
    assert [(v.dtype, v.threads) for v in verdicts] == [("f32", 1), ("f32", 2)]
    assert verdicts[0].cases > 500
    assert {v.seed for v in verdicts} == {str(seed)}


def test_the_doctor_compiles_and_runs():
    health = doctor.doctor("generic")
    assert [step.name for step in health.steps] == ["reach", "compile", "run"], health.steps
    assert all(step.ok for step in health.steps), health.steps
    assert health.steps[-1].detail == "sandboxed"
    json.dumps(health.to_json())


@pytest.mark.extended
def test_beside_an_older_result(product, tmp_path):
    """Speeds nobody has and everybody has, so that the machine of the day does not matter."""

    def compared(ours, *more):
        row = {"op": "gemm", "dtype": "f32", "m": 16, "n": 16, "k": 16, "layout": "row", "ours": ours, "spread": 0.1}
        old = {"platform": "generic", "threads": 1, "unit": "GFLOP/s", "model": None, "machine": {}, "results": [row]}
        (tmp_path / "old.json").write_text(json.dumps({**old, "absent": {}}))
        words = [str(product), "--compare", str(tmp_path / "old.json"), "--fast"]
        return CliRunner().invoke(library_commands.bench, [*words, *more])

    slower = compared(1e6, "--format", "json")
    assert slower.exit_code == 1
    assert json.loads(slower.stdout)["worse"] == 1
    faster = compared(1e-3)
    assert faster.exit_code == 0
    assert "1 improved, 0 same, 0 worse" in faster.stdout
    (tmp_path / "of.json").write_text((tmp_path / "old.json").read_text().replace('"generic"', '"rvv"'))
    refused = CliRunner().invoke(library_commands.bench, [str(product), "--compare", str(tmp_path / "of.json")])
    assert "expected generic, got rvv" in str(refused.exception)
    assert isinstance(compared(1.0, "--layout", "1").exception, UsageError)
