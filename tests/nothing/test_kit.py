"""What a kit brings into a product with a choice for each VLEN, and how its parts are read."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tensorop import paths
from tensorop.dispatch.tree import decide
from tensorop.errors import JobError, TensoropError
from tensorop.kits import plan, processor, result
from tensorop.kits import product as kit_products
from tensorop.kits.rows import KeptKit, kept
from tensorop.model.judging import admitted
from tensorop.model.number import NUMBERS
from tensorop.space import problems
from tensorop.specs import platforms
from tests.support import products
from tests.support.operators import gemm

MACHINE = {"arch": "riscv64", "board": "b", "vlen": 256, "emulator": ""}


def kit(vlen: int, best: int, dtype: str = "f32", variants: int = 2) -> KeptKit:
    """A kit that found one of two variants best everywhere."""
    sizes = ((40, 40, 40), (64, 50, 30), (100, 20, 70), (200, 100, 50), (33, 400, 20), (80, 80, 300))
    ns = [1000.0 if number == best else 3000.0 for number in range(variants)]
    rows = [
        {"dtype": dtype, "dims": dict(zip("mnk", of, strict=True)), "options": {"layout": "row"}, "ns": ns}
        for of in sizes
    ]
    told = {"kit": "0" * 64, "date": "2026-01-01T00:00:00Z", "machine": {**MACHINE, "vlen": vlen}, "rows": rows}
    return kept(told, "a kit", False)


@pytest.mark.parametrize(("vlen", "changed"), [(128, 0), (256, 1), (512, 2), (1024, 2)])
def test_a_board_changes_the_choice_for_its_own_vlen(vlen: int, changed: int):
    given = products.by_vlen(products.winners(("f32",))[0])
    product = SimpleNamespace(operator=gemm(), platform=platforms.load("rvv"))
    best, operator = 1 - changed // 2, gemm()
    brought = kit(vlen, best)
    found = processor._chosen(product, given, [brought], vlen)  # type: ignore[arg-type]
    for row in kit_products.measured(operator, given, [brought]):
        assert decide(found.trees[changed].root, problems.features(operator, row.problem)) == best
    assert [tree.vlen for tree in found.trees] == [128, 256, 512]
    for number in {0, 1, 2} - {changed}:
        assert found.trees[number] == given.trees[number]
    assert found.variants == given.variants


def test_what_a_kit_says_of_other_dtypes_changes_nothing():
    (given,) = products.winners(("f32",))
    product = SimpleNamespace(operator=gemm(), platform=platforms.load("rvv"))
    assert processor._chosen(product, given, [kit(256, 0, "f64")], 256) is given  # type: ignore[arg-type]


def test_the_last_kit_counts():
    (given,) = products.winners(("f32",))
    rows = kit_products.measured(gemm(), given, [kit(256, 0), kit(256, 1)])
    assert len(rows) == 6
    assert all(row.costs == (3000.0, 1000.0) for row in rows)
    assert kit_products.measured(gemm(), given, [kit(256, 0, variants=3)]) == []


def test_boards_are_told_apart():
    board_of, machine = processor.ProcessorProduct.board_of, kit(256, 0).machine
    assert board_of(machine) == board_of(kit(256, 1).machine)
    assert board_of(machine) != board_of(kit(128, 0).machine)


def test_a_damaged_memory_of_kits(tmp_path):
    assert kit_products.kept(tmp_path) == []
    path = tmp_path / kit_products.KEPT
    path.parent.mkdir(parents=True)
    for text in ("{", "[]", '{"schema": 9, "kits": []}'):
        path.write_text(text)
        with pytest.raises(JobError, match="is damaged"):
            kit_products.kept(tmp_path)


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_limits_are_in_the_outputs_format_and_no_wider(name: str):
    number = NUMBERS[name]
    wider = np.float64 if name == "f32" else np.longdouble
    want = np.array([1.0, -1.0, 0.1, np.inf, -np.inf, np.nan], wider) / wider(3)
    bound = np.array([0.0, 1e-3, 0.2, 0.0, 0.0, 0.0])
    low, high = admitted(number, want, bound)
    assert low.dtype == high.dtype == number.storage
    assert (low[:3] >= (want - bound)[:3]).all()
    assert (high[:3] <= (want + bound)[:3]).all()
    assert low[0] > high[0]  # a third, exactly, is none of this format
    assert low[3] == high[3] == np.inf
    assert low[4] == high[4] == -np.inf
    assert np.isnan(low[5])
    assert np.isnan(high[5])


def test_gemm_has_its_outputs_where_they_are_stored():
    reference = gemm().reference
    problem = reference.problem("f32", {"m": 2, "n": 3, "k": 1}, {"layout": "row", "ldc_pad": 2})
    values = np.arange(6.0).reshape(2, 3)
    stored = reference.stored(problem, "C", values, np.full(8, -1, np.float32))
    assert stored.tolist() == [0, 1, 2, -1, -1, 3, 4, 5]


def test_poison_stays_poison():
    reference = gemm().reference
    problem = reference.problem("f32", {"m": 2, "n": 3, "k": 4}, {"layout": "row"})
    call = reference.call(problem, np.random.default_rng(1))
    filled = plan.filled(reference, "f32", call, 7)
    assert np.isnan(filled.buffers[2].data).all()
    assert np.array_equal(filled.buffers[1].data, plan.drawn(NUMBERS["f32"], 8, 12))
    assert (np.abs(filled.buffers[0].data) <= 1).all()
    assert replace(filled, buffers=()) == replace(call, buffers=())


def line(text: str) -> bytes:
    """As a kit writes it."""
    return f'{text},"sum":"{result._sum(text.encode()):016x}"}}\n'.encode()


def test_a_result_that_was_mailed_or_came_through_windows(tmp_path: Path) -> None:
    machine = '{"arch":"x86_64","board":"","vlen":0,"emulator":""}'
    head = f'{{"schema":1,"kit":"{"0" * 64}","product":"{"0" * 64}","platform":"generic","steps":1,"machine":{machine}'
    row = '{"step":0,"kind":"control","outcome":"ok","date":"2026-01-01T00:00:00Z"'
    file, whole = tmp_path / "result.jsonl", line(head) + line(row) + line('{"end":1')
    file.write_bytes(whole)
    there = result.lines(file)
    assert [next(iter(row)) for row in there] == ["schema", "step", "end"]
    crlf = whole.replace(b"\n", b"\r\n")
    for sent in (crlf, whole + b"\n", crlf + b"\r\n \r\n", b"\xef\xbb\xbf" + crlf, whole.rstrip()):
        file.write_bytes(sent)
        assert result.lines(file) == there
    for damaged, said in (
        (whole[:-9], "is cut off in line 3"),
        (whole.decode().encode("utf-16"), "it is UTF-16 text; save it as UTF-8"),
        (whole.replace(b'"step":0', b'"step":1'), "line 2 is not as a kit writes it"),
        (whole.replace(b"\n", b"\n\n"), "line 2 is not as a kit writes it"),
        (b"\n\r\n", "it has no whole line"),
    ):
        file.write_bytes(damaged)
        with pytest.raises(TensoropError, match=said):
            result.lines(file)


KITS = [paths.native_dir() / "kit", paths.native_dir() / "device" / "kit"]
OF_GEMM = paths.builtin_dir("templates") / "gemm" / "device" / "kit"


@pytest.mark.parametrize("folder", KITS)
def test_a_kit_reads_no_variable_but_its_own(folder: Path) -> None:
    """Build systems set OUT, RUN and CPU for themselves."""
    of_gemm = OF_GEMM.iterdir() if folder.parent.name == "device" else ()
    files = [*folder.iterdir(), KITS[0] / "run-kit.sh", *of_gemm]
    text = "\n".join(file.read_text() for file in files if file.name != "README")
    read = set(re.findall(r'getenv\("(\w+)"\)|\$\{(\w+):-', text))
    listed = re.findall(r"^    (TENSOROP_KIT_[A-Z]+)=", (folder / "README").read_text(), re.MULTILINE)
    assert {c or shell for c, shell in read} == set(listed)


@pytest.mark.parametrize("own", KITS)
def test_a_kit_names_the_file_it_wrote(tmp_path: Path, own: Path) -> None:
    """A program that writes something in the place of a kit's: the script is tried."""
    folder = tmp_path / "a kit's"
    folder.mkdir()
    of = SimpleNamespace(platform=SimpleNamespace(name="my board"))
    text = kit_products.KitProduct.script(of, own, platform.machine(), "plan")
    for name, body in (("run-kit", text), ("kit", b'#!/bin/sh\necho "measured $1" > "$2"\n')):
        (folder / name).write_bytes(body)
        (folder / name).chmod(0o755)
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256((folder / 'kit').read_bytes()).hexdigest()}  kit\n")
    there = {**os.environ, "OUT": "of-make", "RUN": "false", "CDPATH": "/"}
    for out in ("", "its own.jsonl", str(tmp_path / "some'where \\else.jsonl"), str(tmp_path / "plain.jsonl")):
        given = there | ({"TENSOROP_KIT_OUT": out} if out else {})
        said = subprocess.run([folder / "run-kit"], env=given, capture_output=True, text=True, check=True).stdout
        whole, _, command = said.rstrip("\n").partition(" is complete; copy it back and run: ")
        assert Path(whole).read_text() == "measured plan\n"
        assert Path(whole) == folder / (out or "result.jsonl")
        assert shlex.split(command) == ["tensorop", "import", "DIR", Path(whole).name]
