"""What the commands that look at a library say of bad input."""

import json
import struct

import click
import pytest
from click.testing import CliRunner

from tensorop.cli import library_commands, tables
from tensorop.commands import opened
from tensorop.errors import UsageError
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Verdict
from tensorop.package import card

X86_64, RISCV = 62, 243


def elf(machine):
    """The header of an ELF file with nothing in it."""
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    return identity + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 0, 0, 0, 64, 0, 0, 64, 0, 0)


def library(path, machine=X86_64, **facts):
    given = {
        "schema": card.CARD_SCHEMA,
        "operator": "gemm",
        "platform": {"name": "generic"},
        "dtypes": {"f32": {}},
        **facts,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(elf(machine) + card.MARKER.encode("latin-1") + card.text(given).encode() + b"\0")
    return path


def invoke(*words):
    group = click.Group()
    for command in library_commands.COMMANDS:
        group.add_command(command)
    return CliRunner().invoke(group, [str(word) for word in words])


def test_a_folder_and_its_library_open_the_same(tmp_path):
    file = library(tmp_path / "lib/libtensorop_gemm.so")
    library(tmp_path / "lib/libtensorop_cblas.so")
    (tmp_path / "share/tensorop").mkdir(parents=True)
    (tmp_path / "share/tensorop/manifest.json").write_text('{"schema": 2}')
    by_folder, by_file = opened.open_product(tmp_path), opened.open_product(file)
    assert by_folder.library == by_file.library == file
    assert by_folder.root == by_file.root == tmp_path
    assert by_folder.dtypes == ("f32",)
    assert by_folder.platform.name == "generic"


@pytest.mark.parametrize("command", ["bench", "verify", "inspect"])
def test_a_folder_without_a_product(tmp_path, command):
    error = invoke(command, tmp_path).exception
    assert isinstance(error, UsageError)
    assert "contains no product" in error.message
    assert "build one with" in (error.hint or "")
    (tmp_path / "share/tensorop").mkdir(parents=True)
    (tmp_path / "share/tensorop/journal.jsonl").touch()
    assert "command again to resume" in str(invoke(command, tmp_path).exception)
    assert "does not exist" in str(invoke(command, tmp_path / "none").exception)


def test_a_folder_beside_a_product_names_the_product(tmp_path):
    library(tmp_path / "out/lib/libtensorop_gemm.so")
    (tmp_path / "out/include/tensorop").mkdir(parents=True)
    for part in ("lib", "include", "include/tensorop", ".."):
        error = invoke("bench", tmp_path / "out" / part).exception
        assert isinstance(error, UsageError)
        assert error.hint == f"pass {tmp_path / 'out'}" or part == ".."
        assert str(tmp_path) in str(error.hint)


def test_a_library_that_is_none_or_anothers(tmp_path):
    plain = tmp_path / "plain.so"
    plain.write_bytes(elf(X86_64))
    with pytest.raises(UsageError, match="no provenance card"):
        opened.open_product(plain)
    with pytest.raises(UsageError, match="for riscv64, but its provenance card names platform generic"):
        opened.open_product(library(tmp_path / "a.so", RISCV))
    with pytest.raises(UsageError, match="unknown platform 'genric'"):
        opened.open_product(library(tmp_path / "b.so", platform="genric"))
    with pytest.raises(UsageError, match="lacks"):
        opened.open_product(library(tmp_path / "c.so", dtypes=3))


def test_a_library_for_another_architecture_is_not_run_natively(tmp_path):
    file = library(tmp_path / "lib.so", RISCV, platform="rvv")
    error = invoke("bench", file, "--runner", "native").exception
    assert isinstance(error, UsageError)
    assert "riscv64" in error.message


def test_unknown_names(tmp_path):
    file = library(tmp_path / "lib.so")
    assert "unknown baseline 'openblas2'" in str(invoke("bench", file, "--against", "openblas2").exception)
    assert "--against names no baseline; got ','" in str(invoke("bench", file, "--against", ",").exception)
    assert "unknown suite of gemm 'quik'" in str(invoke("bench", file, "--shapes", "quik").exception)
    assert "not a shape of gemm" in str(invoke("bench", file, "--shapes", "64x64").exception)
    assert "unknown dtype" in str(invoke("bench", file, "--dtype", "f8").exception)
    assert "supports f32; got --dtype f64" in str(invoke("verify", file, "--dtype", "f64").exception)
    assert "expected an integer or N:SECRET" in str(invoke("verify", file, "--seed", "7x").exception)
    assert "unknown platform" in str(invoke("doctor", "--platform", "rvw").exception)


@pytest.mark.parametrize("given", ["0", "1,x", "1,", "2000", "-1"])
def test_numbers_of_threads_are_checked(tmp_path, given):
    ended = invoke("bench", tmp_path, "--threads", given)
    assert ended.exit_code == 2
    assert "from 1 to 1024, such as 1,2,4" in ended.output


def test_an_older_result_is_of_one_number_of_threads(tmp_path):
    ended = invoke("bench", tmp_path, "--threads", "1,2", "--compare", tmp_path / "old.json")
    assert "--compare supports one thread count; got --threads 1,2" in str(ended.exception)


def test_inspect_shows_the_card(tmp_path):
    variants = [
        {"template": "outer", "author": "offline", "point": {"mr_vectors": 2, "nr": 4}},
        {"template": "b", "author": "llm", "point": {}},
    ]
    tree = {"feature": "k", "threshold": 8, "low": {"variant": 0}, "high": {"variant": 1}}
    file = library(tmp_path / "lib.so", dtypes={"f32": {"variants": variants, "tree": tree, "regret": 0.0125}})
    found = invoke("inspect", file)
    assert "f32: 2 variants, dispatch loss on held-out shapes 1.25%" in found.output
    assert "0: outer (offline) mr_vectors=2 nr=4" in found.output
    assert "tree of 4 lines: --trees prints it" in found.output
    assert "k <= 8:" not in found.output
    assert "k <= 8:" in invoke("inspect", file, "--trees").output
    assert json.loads(invoke("inspect", file, "--format", "json").stdout)["operator"] == "gemm"


def test_verdicts_in_a_line():
    good = Verdict(Outcome(Kind.OK), 256, 812, "0:ff", (0.02, 0.41, 0.0, 0.07, 0.0), 1, "f32")
    assert (
        tables.verdict_line(good)
        == "f32 VLEN 256, 1 thread: 812 calls passed, largest error 41% of its bound, median of calls 7%, seed 0:ff"
    )
    assert (good.to_json()["worst"], good.to_json()["median"]) == (0.41, 0.07)
    bad = Verdict(Outcome(Kind.WRONG, "verify", "C[0,1] is off"), 0, 3, "0:ff", (0.1, float("inf")), 2, "f64")
    assert tables.verdict_line(bad) == "f64, 2 threads: FAILED (wrong-result): C[0,1] is off"
    assert bad.to_json()["worst"] is None
    exact = Verdict(Outcome(Kind.OK), 0, 9, "0:ff", (0.0, 0.0), 1, "i8")
    assert "largest error 0% of its bound, median of calls 0%" in tables.verdict_line(exact)
    none = Verdict(Outcome(Kind.OK), 0, 0, "0:ff", (), 2, "f64")
    assert tables.verdict_line(none).startswith("f64, 2 threads: not verified: the operator defines no calls for it")
