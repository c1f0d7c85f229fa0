"""What `explain` shows of a recorded run, and what it says of bad input."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tensorop.commands import explain, opened
from tensorop.errors import UsageError
from tensorop.model.winner import trees_of
from tensorop.report import choices
from tensorop.space import problems
from tensorop.store import journal
from tests.nothing.test_library_commands import RISCV, X86_64, invoke, library

RECORDED = Path(__file__).parents[1] / "data" / "run"


@pytest.fixture
def card():
    """The card of the recorded run's library, with the digests of its templates as they are now."""
    manifest = json.loads((RECORDED / "share/tensorop/manifest.json").read_text())
    digests = {template.name: digest for digest, template in journal.read(RECORDED).templates.items()}
    own = manifest["operators"]["gemm"]
    for variant in own["dtypes"]["f32"]["variants"]:
        variant["digest"] = digests[variant["template"]]
    return {"platform": manifest["platform"], **own}


@pytest.fixture
def product(tmp_path, card):
    """The recorded run, with a library that has nothing but its card."""
    shutil.copytree(RECORDED / "share", tmp_path / "share")
    library(tmp_path / "lib/libtensorop_gemm.so", RISCV, **card)
    return tmp_path


def explained(folder, *shape, **asked):
    found = opened.open_product(folder)
    return explain.explain(found, problems.of(found.operator, "f32", shape), **asked)


def test_the_rule_is_the_way_through_the_tree(product, card):
    answer = explained(product, 32, 70, 64)
    assert answer.features == {"m": 70, "n": 32, "k": 64, "a_in_place": 1, "b_in_place": 1}  # as it is computed
    assert answer.path == ["m = 70 > 45", "size = 143360 <= 5190186", "n = 32 <= 80"]
    assert (answer.variant, answer.rule) == (1, "the decision tree")
    (tree,), found = trees_of(card["dtypes"]["f32"]), opened.open_product(product)
    for shape in ((1, 1, 1), (700, 600, 500), (3000, 100, 900), (64, 64, 64)):
        of_shape = problems.of(found.operator, "f32", shape)
        chosen = choices.variant_of(found.operator, of_shape, tree, card["dtypes"]["f32"])
        assert explained(product, *shape).variant == chosen


def test_costs_are_those_of_the_journal(product):
    """Measured where the search measured them; predictions agree with these, and are there for any shape."""
    ended = json.loads(next(
        line for line in reversed((product / "share/tensorop/journal.jsonl").read_text().splitlines())
        if '"finished"' in line and "64x64x64 f32 layout=row" in line
    ))  # fmt: skip
    assert ended["score"]["per_problem"]["64x64x64 f32 layout=row"]
    answer = explained(product, 64, 64, 64)
    assert answer.lacking == ""
    assert answer.unit == "modelled-cycles"
    for one in answer.variants:
        assert one.by == "measured"
        assert one.predicted == pytest.approx(one.measured, rel=0.2)
        assert one.slower == pytest.approx(one.measured / answer.variants[answer.variant].measured - 1)
    others = [one for one in answer.variants if one.number != answer.variant]
    assert answer.next_best == min(others, key=lambda one: one.measured).number
    answer = explained(product, 65, 64, 64)
    assert all(one.predicted and one.measured is None and one.by == "predicted" for one in answer.variants)
    others = [one for one in answer.variants if one.number != answer.variant]
    assert answer.next_best == min(others, key=lambda one: one.predicted).number


def test_what_is_printed(product):
    ended = invoke("explain", product, "64x64x64")
    assert ended.exit_code == 0, ended.output
    assert "64x64x64 f32 layout=row: variant 1, outer\n" in ended.stdout
    assert "rule: the decision tree\n  m = 64 > 45\n" in ended.stdout
    assert re.search(r"next best: variant 0, slower by [0-9.]+% \(measured\)\n", ended.stdout)
    assert "its blocking is from the search\n" in ended.stdout
    assert "costs are in modelled cycles x instructions^0.1" in ended.stdout
    assert "not measured" not in ended.stdout
    assert "not measured" in invoke("explain", product, "65x64x64").stdout
    record = json.loads(invoke("explain", product, "65x64x64", "--layout", "1", "--format", "json").stdout)
    assert record["problem"] == "65x64x64 f32 layout=row tb=1"
    assert record["features"]["a_in_place"] == 0
    assert len(record["variants"]) == 4


def test_several_trees_and_the_rule_of_the_smallest(product, card):
    of_dtype = card["dtypes"]["f32"]
    tree = {"tree": of_dtype.pop("tree"), "regret": of_dtype.pop("regret")}
    of_dtype["by_vlen"] = {"128": tree, "256": {"tree": {"variant": 2}, "regret": 0.0}}
    of_dtype["direct"] = {"variant": 0, "most_flops": 1024}
    card["facts"]["measured"] = [{"board": "one"}]
    library(product / "lib/libtensorop_gemm.so", RISCV, **card)
    assert (explained(product, 64, 64, 64).vlen, explained(product, 64, 64, 64).variant) == (128, 1)
    answer = explained(product, 64, 64, 64, vlen=256)
    assert (answer.vlen, answer.variant, answer.path) == (256, 2, [])
    assert answer.variants[0].predicted != explained(product, 64, 64, 64).variants[0].predicted
    answer = explained(product, 8, 8, 8)
    assert (answer.variant, answer.path) == (0, [])
    assert answer.rule.startswith("direct serves all problems of at most 1024 flops; this one has 1024")
    assert "a tuning kit" in answer.rule
    with pytest.raises(UsageError, match="has trees for vectors of 128, 256 bits; got --vlen 64"):
        explained(product, 8, 8, 8, vlen=64)


def test_each_call_of_a_file_is_explained_the_heaviest_first(product, tmp_path):
    call = "sgemm layout=row transa=N transb={} m={} n=64 k=64 calls=1 seconds={}\n"
    (tmp_path / "calls.txt").write_text(call.format("N", 32, 1) + call.format("T", 64, 2))
    found = json.loads(invoke("explain", product, f"@{tmp_path / 'calls.txt'}", "--format", "json").stdout)
    assert [one["problem"] for one in found] == ["64x64x64 f32 layout=row tb=1", "32x64x64 f32 layout=row"]
    assert found[1]["variant"] == explained(product, 32, 64, 64).variant
    (tmp_path / "calls.txt").write_text(call.format("N", 32, 1).replace("sgemm", "dgemm"))
    error = invoke("explain", product, f"@{tmp_path / 'calls.txt'}").exception
    assert isinstance(error, UsageError)
    assert "calls.txt has calls of f64; got f32" in error.message


def test_an_only_variant(product, card):
    of_dtype = card["dtypes"]["f32"]
    library(
        product / "lib/libtensorop_gemm.so",
        RISCV,
        **card | {"dtypes": {"f32": of_dtype | {"variants": of_dtype["variants"][:1], "tree": {"variant": 0}}}},
    )
    answer = explained(product, 64, 64, 64)
    assert (answer.variant, answer.rule, answer.next_best) == (0, "it is the only variant", None)
    assert "next best: unknown" in invoke("explain", product, "64x64x64").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["64x64"], "not a shape of gemm: expected a shape as mxnxk, got '64x64'"),
        (["large"], "unknown suite of gemm 'large'"),
        (["0x1x1"], "m is 0"),
        (["quick"], "explain takes one shape and one element type; got quick and f32"),
        (["8x8x8", "--dtype", "f8"], "unknown dtype of gemm 'f8'"),
        (["8x8x8", "--dtype", "f64"], "supports f32; got --dtype f64"),
        (["8x8x8", "--layout", "3"], "--layout 3 does not exist: gemm has the layouts 0 to 2"),
        (["8x8x8", "--vlen", "64"], "has trees for vectors of 128, 256, 512 bits; got --vlen 64"),
    ],
)
def test_refusals(product, words, message):
    error = invoke("explain", product, *words).exception
    assert isinstance(error, UsageError)
    assert message in error.message
    assert error.hint


def test_threads_of_an_operator_that_does_not_cut_its_calls(tmp_path):
    of_dtype = {
        "variants": [{"template": "outer", "author": "offline", "point": {}}],
        "tree": {"variant": 0},
        "regret": None,
    }
    platform = {"name": "generic", "vlens": [64]}
    file = library(tmp_path / "lib.so", operator="conv2d", platform=platform, dtypes={"f32": of_dtype}, facts={})
    error = invoke("explain", file, "n1c8h9w9k8r3s3", "--threads", "2").exception
    assert isinstance(error, UsageError)
    assert "--threads has no effect for conv2d" in error.message


def test_less_than_one_thread(product):
    ended = invoke("explain", product, "8x8x8", "--threads", "0")
    assert (ended.exit_code, "0 is not in the range 1<=x<=1024" in ended.output) == (2, True)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "has no journal of a search"),
        (lambda path: path.write_text("x\n{}\n"), "is damaged in line 1"),
        (lambda path: path.write_text(path.read_text().replace('"runner":"qemu"', '"runner":"qemv"')), "'qemv'"),
        (lambda path: path.write_text("\n".join(path.read_text().splitlines()[:9]) + "\n"), "of another product"),
    ],
)
def test_without_a_readable_journal_the_rule_is_shown(product, damage, message):
    damage(product / "share/tensorop/journal.jsonl")
    ended = invoke("explain", product, "64x64x64")
    assert "variant 1, outer" in ended.stdout
    assert "m = 64 > 45" in ended.stdout
    assert "predicted" not in ended.stdout
    assert isinstance(ended.exception, UsageError)
    assert message in ended.exception.message
    assert "variant and rule are as in the library" in ended.exception.hint


def test_a_damaged_card(product, card):
    file = library(product / "lib/libtensorop_gemm.so", RISCV, **card | {"dtypes": {"f32": {"variants": [{}]}}})
    with pytest.raises(UsageError, match="is damaged: KeyError"):
        explained(product, 8, 8, 8)
    file.write_bytes(file.read_bytes().replace(b'"schema"', b'"schema', 1).replace(b'"operator"', b'"operator', 1))
    error = invoke("explain", product, "8x8x8").exception
    assert isinstance(error, UsageError)
    assert "card of" in error.message


def test_several_operators_and_gpus_are_refused(tmp_path, product):
    library(product / "lib/libtensorop_conv2d.so", RISCV, operator="conv2d", platform="rvv")
    error = invoke("explain", product, "8x8x8").exception
    assert isinstance(error, UsageError)
    assert "libtensorop_conv2d.so, libtensorop_gemm.so" in error.hint
    assert invoke("explain", product / "lib/libtensorop_gemm.so", "8x8x8").exit_code == 0
    for dtype in ("bf16", "f32_3xtf32"):  # a type of processors too, and one that only GPU libraries have
        gpu = library(tmp_path / "gpu/libtensorop_gemm.so", X86_64, platform="cuda-sm90", dtypes={dtype: {}})
        for words in ((), ("--dtype", dtype)):
            error = invoke("explain", gpu, "8x8x8", *words).exception
            assert isinstance(error, UsageError)
            assert "does not say what a kit needs" in error.message
