"""`judge --blas`: it finds the fault of each faulty library and shows it by a C program; a right library passes."""

from __future__ import annotations

import html
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tensorop.blas import binding, grid, judging, program, routines
from tensorop.blas.call import BlasCase
from tensorop.blas.findings import BlasJudgement
from tensorop.blas.ruling import BlasFault
from tensorop.cli.judge_command import judge as command
from tensorop.model.architecture import host_arch
from tensorop.runners.native import Native
from tensorop.toolchain import tool
from tests.support.commands import ROOT, refused

SOURCE = ROOT / "tests/support/faulty_blas.c"
# Fault of faulty_blas.c -> the only faulty function, and the kind of its finding.
FAULTS: dict[str, tuple[str, ...]] = {
    "SYRK_OTHER_HALF": ("dsyrk", "wrote memory"),
    "SYRK_OTHER_NAN": ("dsyrk", "wrote memory"),
    "TRSM_ABOVE_DIAGONAL": ("dtrsm", "NaN"),
    "GEMV_NEGATIVE_STEP": ("dgemv", "wrong result", "NaN or infinity of an operand"),
    "SYMM_BOTH_HALVES": ("dsymm", "NaN"),
    "GEMM_THREADED_LAST_COLUMN": ("dgemm", "wrong result", "NaN"),
    "GEMM_DEEP_K": ("dgemm", "wrong result"),
    "GEMM_SECOND_CALL": ("dgemm", "wrong result"),
    "GEMM_READS_C": ("dgemm", "NaN"),
    "TRMM_UNIT_DIAGONAL": ("dtrmm", "NaN"),
    "GEMM_WRONG_NUMBER": ("dgemm", "wrong argument reported"),
    "AXPY_PAST_END": ("daxpy", "accessed memory outside"),
    "GEMV_CRASH": ("dgemv", "crash"),
    "DOT_LAST_ELEMENT": ("ddot", "wrong result"),
    "GEMM_CHANGES_A": ("dgemm", "accessed memory outside"),
    "SYMM_RIGHT_ALPHA": ("dsymm", "wrong result"),
    "SYMM_FIRST_CALL_RIGHT": ("dsymm", "wrong result"),
    "SCAL_GAPS": ("dscal", "wrote memory"),
    "GEMM_UNCHECKED": ("dgemm", "operands changed"),
    "GER_ROWS_ABOVE_4096": ("dger", "wrong result"),
    "DOT_NAN_IS_ZERO": ("ddot", "NaN or infinity of an operand"),
    "TRMM_SHARED_SCRATCH": ("dtrmm", "wrong result", "NaN"),
    "GEMM_NO_DEPTH": ("dgemm", "NaN"),
    "GEMM_SAME_INPUTS": ("dgemm", "wrong result", "accessed memory outside"),
    "GEMM_TILE_EDGE": ("dgemm", "wrong result"),
    "GER_HUNDREDTH_CALL": ("dger", "wrong result"),
    "GEMV_ONE_ROW": ("dgemv", "wrong result"),
    "SYMM_ALPHA_ZERO": ("dsymm", "NaN"),
    "TRSM_ONE_COLUMN": ("dtrsm", "NaN"),
    "TRSM_ALPHA_ZERO": ("dtrsm", "NaN"),
    "GEMM_AFTER_FORK": ("dgemm", "did not return after fork"),
    "GEMMTR_OTHER_HALF": ("dgemmtr", "wrote memory", "wrong result", "NaN"),
    "GEMMTR_DIAGONAL_BLOCK": ("dgemmtr", "wrote memory"),
    "SYR2K_ONE_PRODUCT": ("dsyr2k", "wrong result", "NaN or infinity of an operand"),
    "SYR2K_UNCHECKED_TRIANGLE": ("dsyr2k", "operands changed"),
    "TRSM_EDGE_OF_BLOCK": ("dtrsm", "wrong result"),
    "TRMM_RIGHT_HALF": ("dtrmm", "wrong result", "NaN"),
    "DOT_INFINITY_IS_LARGE": ("ddot", "NaN or infinity of an operand"),
    "SYRK_INDEFINITE": ("dsyrk", "wrong result"),
    "ROTMG_SECOND_SCALE": ("drotmg", "wrong result"),
    "DOTC_LAST_ELEMENT": ("zdotc", "wrong result"),
    "DOTC_ALIGNED_LOADS": ("zdotc", "crash"),
}
BASIC = ("SYRK_OTHER_HALF", "SYMM_BOTH_HALVES", "DOT_LAST_ELEMENT")


def library(tmp: Path, *words: str) -> Path:
    """faulty_blas.c with these macros."""
    path = tmp / "libfaulty.so"
    argv = tool.cc("-O1", "-shared", "-fPIC", *(f"-D{word}" for word in words), str(SOURCE), "-o", str(path))
    subprocess.run(argv, check=True, cwd=tmp)
    return path


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library without a fault."""
    return library(tmp_path_factory.mktemp("right"))


def judged(path: Path, names: str | None, seed: int = 0, budget_s: float = 1) -> BlasJudgement:
    functions = routines.chosen(names, routines.TYPES)
    of = judging.Judging(binding.find(path), functions, Native(), threads=2, budget_s=budget_s, seed=seed)
    return judging.judge(of, lambda text: None)


def _classes(name: str) -> object:
    return pytest.param(name, marks=() if name in BASIC else pytest.mark.extended)


@pytest.mark.parametrize("fault", [*map(_classes, FAULTS)])
def test_a_fault_is_found_and_a_program_shows_it(fault: str, tmp_path: Path) -> None:
    function, kind, *others = FAULTS[fault]
    path = library(tmp_path, f"FAULT={fault}")
    found = (
        judged(path, function, budget_s=10 if fault == "SYRK_INDEFINITE" else 1).findings
        or judged(path, function, budget_s=20).findings
    )
    assert {one.function for one in found} == {function}
    assert all(one.fault.value.startswith((kind, *others)) for one in found)
    assert ("has the eigenvalue -" in found[0].detail) == (fault == "SYRK_INDEFINITE")
    text = found[0].program
    assert len(text.splitlines()) <= program.MOST_LINES
    if fault == "TRMM_SHARED_SCRATCH":  # only several calls at once show it
        assert "beside 3 others at once" in found[0].smallest
        return
    (tmp_path / "call.c").write_text(text)
    subprocess.run(tool.cc("-w", "call.c", "-ldl", "-lm", "-o", "call"), check=True, cwd=tmp_path)
    shown = subprocess.run([tmp_path / "call", path], env={"OMP_NUM_THREADS": "2"}, check=False)
    assert shown.returncode != 0
    if kind != "wrong argument reported":
        right = subprocess.run([tmp_path / "call", library(tmp_path)], env={"OMP_NUM_THREADS": "2"}, check=False)
        assert right.returncode == 0


@pytest.mark.extended
@pytest.mark.parametrize(
    "fault", ["GEMM_SECOND_CALL", "GER_HUNDREDTH_CALL", "SYMM_FIRST_CALL_RIGHT", "DOT_LAST_ELEMENT"]
)
def test_a_fault_is_found_in_each_order_of_calls(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, function, in_order = library(tmp_path, f"FAULT={fault}"), FAULTS[fault][0], grid.cases
    for order in range(3):

        def shuffled(*of: Any, order: int = order) -> Iterator[BlasCase]:
            cases = [*in_order(*of)]
            return iter(random.Random(order).sample(cases, len(cases)))

        monkeypatch.setattr(grid, "cases", shuffled)
        names = ",".join(random.Random(order).sample([function, "dscal", "dtrmm"], 3))
        found = judged(path, names).findings or judged(path, names, budget_s=20).findings
        assert {one.function for one in found} == {function}


@pytest.mark.extended
def test_calls_that_do_not_return_are_few(tmp_path: Path) -> None:
    found = judged(library(tmp_path, "FAULT=GEMV_WAITS"), "dgemv,dscal", budget_s=60)
    (finding,) = found.findings
    assert (finding.function, finding.fault, finding.calls) == ("dgemv", BlasFault.HANG, 2)


@pytest.mark.parametrize("words", [(), pytest.param(("WIDE", "NAME(n)=own_##n##_64_"), marks=pytest.mark.extended)])
def test_a_right_library_passes(words: tuple[str, ...], tmp_path: Path) -> None:
    path = library(tmp_path, *words)
    names = "axpy,gemv,trsm" if not words else None
    found = judged(path, names)
    assert not found.findings
    assert {one.function for one in found.functions} >= {"daxpy", "dgemv", "dtrsm"}
    assert all(one.calls > 10 and one.ratio < 0.5 for one in found.functions)
    assert "dgemv" in found.differs["products of zero with NaN or infinity: multiplied"]


@pytest.mark.extended
def test_zeros_that_fill_a_half_may_meet_an_infinity(tmp_path: Path) -> None:
    found = judged(library(tmp_path, "FILLS_HALVES"), "dsymm")
    assert not found.findings
    assert found.differs["an infinity in a symmetric matrix's product: NaN"] == ("dsymm",)


@pytest.mark.extended
def test_complex_results_are_also_taken_from_a_first_argument(tmp_path: Path) -> None:
    found = judged(library(tmp_path, "BY_ARGUMENT"), "zdotc")
    assert not found.findings
    assert found.differs["complex results: through a first argument"] == ("zdotc",)
    assert judged(library(tmp_path, "BY_ARGUMENT", "FAULT=DOTC_LAST_ELEMENT"), "zdotc").findings


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(3))
def test_a_right_library_passes_for_each_seed(seed: int, tmp_path: Path) -> None:
    assert not judged(library(tmp_path), None, seed, 5).findings


def leaves(of: object) -> Iterator[str]:
    """All values of a JSON record, as texts."""
    if isinstance(of, (dict, list)):
        for one in of.values() if isinstance(of, dict) else of:
            yield from leaves(one)
    elif not isinstance(of, bool):
        yield str(of)


def test_the_command_prints_findings(tmp_path: Path) -> None:
    (folder := tmp_path / "<here>").mkdir()
    path = library(folder, "FAULT=SYMM_BOTH_HALVES")
    words = ["--blas", str(path), "--routines", "dsymm,dscal", "--budget", "1s", "--threads", "1"]
    ran = CliRunner().invoke(command, words)
    assert ran.exit_code == 1
    assert re.search(r"dsymm: NaN from what must not be read, in \d+ calls", ran.stdout)
    assert "int main(" in ran.stdout
    page = tmp_path / "judged.html"
    ran = CliRunner().invoke(command, [*words, "--budget", "0.01s", "--format", "json", "--html", str(page)])
    assert ran.exit_code == 1
    record = json.loads(ran.stdout)
    assert re.match("not all calls at corners .* give a longer one", record["remarks"][0])
    of = {one["function"]: one for one in record["functions"]}
    assert not of["dscal"]["findings"]
    assert of["dsymm"]["findings"][0]["fault"] == "NaN from what must not be read"
    text = page.read_text()
    assert "<here>" not in text
    assert "http:" not in text
    assert "https:" not in text
    assert not [value for value in leaves(record) if value not in html.unescape(text)]


EMPTY = "int nothing;"
DIES = "__attribute__((constructor)) static void die(void) { *(volatile int *)8 = 0; } void dscal_(void) {}"
NEEDS = "void absent(void); void dscal_(void) { absent(); }"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: No such file"),
        ("", "is not a shared library"),
        (EMPTY, "exports no name of a BLAS"),
        (DIES, "cannot be used"),
        (NEEDS, "cannot be used: .*absent"),
    ],
)
def test_other_files_are_refused_in_one_sentence(text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    if text:
        (tmp_path / "lib.c").write_text(text)
        subprocess.run(tool.cc("-shared", "-fPIC", "-w", "lib.c", "-o", str(path)), check=True, cwd=tmp_path)
    elif text is not None:
        path.write_text("no ELF")
    assert re.search(message, refused("judge", "--blas", path, "--budget", "1s", cwd=tmp_path))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--dtype", "f32"), "--dtype takes s, d, c and z with --blas; got f32"),
        (("--routines", "dsyrx"), "dsyrx"),
        (("--platform", "rvv"), "is for x86_64, and platform 'rvv' is riscv64"),
        (("--variable", "X"), "--variable takes NAME=VALUE; got X"),
        (("--budget", "0s"), "--budget must be above 0"),
        (("--operator", "gemm"), "--operator has no effect on --blas"),
        (("--html", "absent/judged.html"), "--html absent/judged.html cannot be written: No such file"),
    ],
)
def test_options_are_checked(words: tuple[str, ...], message: str, right: Path) -> None:
    if "rvv" in words and host_arch() != "x86_64":
        message = f"is for {host_arch()}"
    assert message in str(CliRunner().invoke(command, ["--blas", str(right), *words]).exception)


def test_a_file_name_says_that_integers_have_64_bits(right: Path, tmp_path: Path) -> None:
    wide = tmp_path / "libblas64.so"
    wide.write_bytes(right.read_bytes())
    assert [one.wide for one in (*binding.find(right).interfaces(), *binding.find(wide).interfaces())] == [False, True]


def test_without_a_jail_a_library_is_refused_unless_that_is_wanted(right: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.support.without_seccomp", sys.executable, "-m", "tensorop", "judge"]
    words += ["--blas", str(right), "--routines", "dscal", "--budget", "1s", "--threads", "1"]
    ended = [subprocess.run([*words, *more], cwd=ROOT, capture_output=True, text=True) for more in ((), ("--unsafe",))]
    assert [one.returncode for one in ended] == [2, 0]
    assert "add --unsafe" in ended[0].stderr
