"""Results of kits that somebody forged, with the sums that belong to them: file, line and what was expected, and no
more than that."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorop.commands import opened
from tensorop.errors import JobError, UsageError
from tensorop.kits import processor, result, retune
from tensorop.kits import product as kit_products
from tensorop.kits.processor import ProcessorProduct
from tensorop.kits.rows import kept
from tests.support import products
from tests.support.commands import ROOT

Lines = list[dict[str, Any]]
DATE = "2026-11-25T10:00:00Z"
MEMORY = 600 << 20  # bytes beyond what the command takes when it is loaded
EVIL = "*/ __attribute__((constructor)) static void evil(void) { *(volatile int *)8 = 1; } /*"


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return products.install("generic", tmp_path_factory.mktemp("good") / "gemm", ("f32",))


@pytest.fixture(scope="module")
def whole(product: Path) -> ProcessorProduct:
    return processor.read(opened.open_product(product))


@pytest.fixture(scope="module")
def honest(whole: ProcessorProduct) -> Lines:
    """What a kit of this product writes."""
    arch = whole.opened.platform.arch
    machine = {"arch": arch, "board": "K1", "kernel": "6", "governor": "", "emulator": "", "vlen": 0, "page": 4096}
    rows: Lines = [{"kind": "control", "of": {"control": "half_of_k"}, "outcome": "wrong-result", "message": "m"}]
    rows += [{"kind": "verify", "of": {"dtype": "f32", "variant": at}, "outcome": "ok"} for at in (-1, 0, 1)]
    for m, n, k in ((16, 16, 16), (40, 24, 8), (64, 64, 64)):
        of = {"dtype": "f32", "dims": {"m": m, "n": n, "k": k}, "options": {"layout": "row"}, "variants": [0, 1]}
        rows.append({"kind": "time", "of": of, "outcome": "ok", "ns": [[90.0, 100.0, 110.0], [200.0, 210.0, 190.0]]})
    rows = [{"step": at, **row, "date": DATE, "mhz": 0, "cases": 1} for at, row in enumerate(rows)]
    head = {"schema": 1, "kit": "1" * 64, "product": whole.digest, "platform": "generic", "steps": len(rows)}
    return [{**head, "date": DATE, "machine": machine}, *rows, {"end": len(rows), "date": DATE}]


def written(path: Path, lines: Lines) -> Path:
    out = []
    for line in lines:
        body = json.dumps(line, separators=(",", ":"))[:-1]
        out.append(f'{body},"sum":"{result._sum(body.encode()):016x}"}}\n')
    path.write_text("".join(out))
    return path


def time(lines: Lines) -> dict[str, Any]:
    return next(line for line in lines if line.get("kind") == "time")


Change = Callable[[Lines], object]
FORGED: dict[str, tuple[Change, str]] = {
    "a board that is a number": (lambda t: t[0]["machine"].update(board=3), "line 1, machine: key 'board'"),
    "a long board": (lambda t: t[0]["machine"].update(board="x" * 5000), "line 1, machine: key 'board'"),
    "no machine": (lambda t: t[0].pop("machine"), "line 1, machine: missing key 'board'"),
    "a machine that is a list": (lambda t: t[0].update(machine=[1]), "line 1, machine: missing key 'board'"),
    "a machine of a device": (lambda t: t[0].update(machine={"board": "b", "device": "d", "capability": 90}), "line"),
    "a vlen beyond all": (lambda t: t[0]["machine"].update(vlen=1 << 62), "line 1, machine: key 'vlen'"),
    "a vlen below 0": (lambda t: t[0]["machine"].update(vlen=-1), "line 1, machine: key 'vlen'"),
    "an emulator that is none": (lambda t: t[0]["machine"].update(emulator=None), "machine: key 'emulator'"),
    "an emulator of spaces": (lambda t: t[0]["machine"].update(emulator=" "), ""),
    "a kit that is no id": (lambda t: t[0].update(kit="../../x"), "line 1: key 'kit'"),
    "a product that is none": (lambda t: t[0].update(product=None), "line 1: key 'product'"),
    "no platform": (lambda t: t[0].pop("platform"), "line 1: missing key 'platform'"),
    "steps without end": (lambda t: t[0].update(steps=1 << 60), "line 1: key 'steps'"),
    "steps that are text": (lambda t: t[0].update(steps="7"), "line 1: key 'steps'"),
    "a date that is code": (lambda t: t[-2].update(date=EVIL), "line 8: key 'date'"),
    "no date": (lambda t: t[-2].pop("date"), "line 8: missing key 'date'"),
    "no kind": (lambda t: t[2].pop("kind"), "line 3: missing key 'kind'"),
    "a kind that nobody knows": (lambda t: t[2].update(kind="x"), "line 3: key 'kind'"),
    "no outcome": (lambda t: t[2].pop("outcome"), "line 3: missing key 'outcome'"),
    "an outcome that is a list": (lambda t: t[2].update(outcome=["ok"]), "line 3: key 'outcome'"),
    "what it is of that is none": (lambda t: time(t).update(of=None), "line 6: key 'of'"),
    "another dtype": (lambda t: time(t)["of"].update(dtype="f8"), "row 4 has dtype 'f8'; expected one of f32"),
    "a dtype that is a list": (lambda t: time(t)["of"].update(dtype=["f32"]), "line 6: key 'of.dtype'"),
    "sizes that no memory has": (lambda t: time(t)["of"]["dims"].update(m=1 << 40), "line 6: key 'of.dims.m'"),
    "a size below 0": (lambda t: time(t)["of"]["dims"].update(m=-5), "line 6: key 'of.dims.m'"),
    "a size with a point": (lambda t: time(t)["of"]["dims"].update(m=1.5), "line 6: key 'of.dims.m'"),
    "a size that is code": (lambda t: time(t)["of"]["dims"].update(m=EVIL), "line 6: key 'of.dims.m'"),
    "a dim too many": (
        lambda t: time(t)["of"]["dims"].update(q=3),
        "row 4 has the dims 'm, n, k, q'",
    ),
    "a dim too few": (lambda t: time(t)["of"]["dims"].pop("m"), "row 4 has the dims 'n, k'; expected m, n, k"),
    "no dims": (lambda t: time(t)["of"].pop("dims"), "line 6: missing key 'of.dims'"),
    "options of no layout": (lambda t: time(t)["of"].update(options={"layout": "z"}), "row 4 has the options"),
    "options that are code": (lambda t: time(t)["of"].update(options={"layout": EVIL}), "line 6: key 'of.options"),
    "a variant beyond": (
        lambda t: time(t)["of"].update(variants=[0, 2]),
        "row 4 has variants .*; expected",
    ),
    "a variant twice": (
        lambda t: time(t)["of"].update(variants=[1, 1]),
        "row 4 has variants .*; expected",
    ),
    "a variant below 0": (lambda t: time(t)["of"].update(variants=[0, -1]), "line 6: key 'of.variants"),
    "no variants": (lambda t: time(t)["of"].update(variants=[]), "line 6: key 'of.variants'"),
    "variants without end": (lambda t: time(t)["of"].update(variants=list(range(9000))), "line 6: key 'of.variants'"),
    "no figures": (lambda t: time(t).update(ns=[[], []]), "line 6: key 'ns"),
    "a figure of 0": (lambda t: time(t).update(ns=[[0.0], [1.0]]), "line 6: key 'ns"),
    "a figure below 0": (lambda t: time(t).update(ns=[[-1.0], [1.0]]), "line 6: key 'ns"),
    "a figure that is text": (lambda t: time(t).update(ns=[["1"], [1.0]]), "line 6: key 'ns"),
    "a figure that is null": (lambda t: time(t).update(ns=[[None], [1.0]]), "line 6: key 'ns"),
    "figures that are one": (lambda t: time(t).update(ns=1.0), "line 6: key 'ns'"),
    "rounds without end": (lambda t: time(t).update(ns=[[1.0] * 2000, [1.0]]), "line 6: key 'ns"),
    "figures of too few": (lambda t: time(t).update(ns=[[1.0]]), "row 4 has figures of 1 variants"),
    "mhz that are text": (lambda t: time(t).update(mhz="fast"), "line 6: key 'mhz'"),
    "a step that is text": (lambda t: t[1].update(step="0"), "line 2: key .step.: expected an integer"),
    "rows in another order": (lambda t: t.__setitem__(slice(1, 3), t[2:0:-1]), "its rows are not in order"),
    "no end": (lambda t: t.pop(), "is cut off"),
    "a time below all": (lambda t: time(t).update(ns=[[5e-324], [1.0]]), "line 6: key 'ns"),
    "half of a character": (lambda t: t[0]["machine"].update(board="\ud800"), "expected text without halves"),
    "another product of a long platform": (
        lambda t: t[0].update(product="f" * 64, platform="\x1b[2J" * 900),
        "another product",
    ),
    "a wrong result of many words": (
        lambda t: t[2].update(outcome="wrong-result", of={"x": "y" * 9999}, message="\x1b" * 4000, case="\n" * 4000),
        "the library failed verification on K1",
    ),
    "a control that passed": (
        lambda t: t[1].update(outcome="ok"),
        "row 0: control 'half_of_k' ended as ok, expected w",
    ),
    "a control of another": (lambda t: t[1].update(of={"control": "\x1b"}), r"row 0: control '.x1b' ended"),
    "no control's name": (lambda t: t[1].update(of=[1]), "line 2: key 'of'"),
    "a variant that was not verified": (
        lambda t: t[3]["of"].update(variant=7),
        "has no verification of variant 0 of f32",
    ),
    "a message that is a list": (lambda t: t[1].update(message=[1]), "line 2: key 'message'"),
    "nothing but a head": (lambda t: t.__delitem__(slice(1, None)), "damaged|cut off"),
    "another schema": (lambda t: t[0].update(schema=[1]), r"has schema \[1\], expected 1"),
    "a schema that equals one": (lambda t: t[0].update(schema=True), "has schema True, expected 1"),
    "another machine that is none": (lambda t: t.insert(2, {"again": 1, "machine": 3}), "line 3, machine"),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_result_is_refused(name: str, whole: ProcessorProduct, honest: Lines, tmp_path: Path) -> None:
    lines = copy.deepcopy(honest)
    change, said = FORGED[name]
    change(lines)
    path = written(tmp_path / "r.jsonl", lines)
    if not said:
        assert whole.where(result.read(path, whole).kept.machine)
        return
    with pytest.raises((UsageError, JobError), match=said) as caught:
        result.read(path, whole)
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert len(caught.value.message) < 700
    assert "Error:" not in caught.value.message


def test_an_honest_result_is_read(whole: ProcessorProduct, honest: Lines, tmp_path: Path) -> None:
    assert len(result.read(written(tmp_path / "r.jsonl", honest), whole).kept.rows) == 3


def test_large_ones_take_bounded_memory_and_time(product: Path, honest: Lines, tmp_path: Path) -> None:
    """Lines that become many times as much in memory."""
    first = {"step": 0, "date": DATE, "kind": "control", "of": {}, "outcome": "ok"}
    long = [copy.deepcopy(honest[5]) for _ in range(1500)]
    for at, row in enumerate(long, 1):
        row["step"] = at
        row["ns"] = [[1.5] * 1000, [1.25] * 1000]
    many = [{**honest[0], "steps": len(long) + 1}, first, *long, {"end": len(long) + 1}]
    wide = [honest[0], {**first, "more": [{}] * 4_000_000}]
    asked = [
        ["import", str(product), str(written(tmp_path / "many.jsonl", many))],
        ["import", str(product), str(written(tmp_path / "wide.jsonl", wide))],
    ]
    argv = [sys.executable, "-m", "tests.support.badfiles", str(MEMORY)]
    done = subprocess.run(argv, input=json.dumps(asked), capture_output=True, text=True, cwd=ROOT)
    ended = json.loads(done.stderr.splitlines()[-1])
    assert all(said.startswith("error: ") for said in ended), ended


def test_what_is_chosen_by_is_bounded(whole: ProcessorProduct) -> None:
    """Arrays grow with the square of the problems, and kits come on top of kits."""
    row = {"dtype": "f32", "options": {"layout": "row"}, "ns": [1.0, 2.0]}
    machine = {"arch": "x86_64", "board": "b", "vlen": 0, "emulator": ""}
    kits = [
        kept(
            {
                "kit": "0" * 64,
                "date": DATE,
                "machine": machine,
                "rows": [{**row, "dims": {"m": m, "n": n + 1, "k": 8}} for n in range(100)],
            },
            "kits",
            False,
        )
        for m in range(1, 42)
    ]
    assert len(kit_products.measured(whole.operator, whole.winners[0], kits[:40])) == 4000
    with pytest.raises(JobError, match="kits measured 4100 shapes of f32 on one board; at most 4096"):
        kit_products.measured(whole.operator, whole.winners[0], kits)


def test_what_is_run_once_more_is_small(whole: ProcessorProduct, honest: Lines, tmp_path: Path) -> None:
    lines = copy.deepcopy(honest)
    time(lines)["of"]["dims"] = {"m": (1 << 31) - 1, "n": (1 << 31) - 1, "k": 0}  # no flops, and operands beyond memory
    found = result.read(written(tmp_path / "r.jsonl", lines), whole)
    assert len(list(processor._problems(whole, found))) == 2


def test_a_board_is_named_and_does_not_become_code(product: Path, honest: Lines, tmp_path: Path) -> None:
    own = shutil.copytree(product, tmp_path / "gemm", symlinks=True)
    lines = copy.deepcopy(honest)
    lines[0]["machine"]["board"] = EVIL
    held = processor.read(opened.open_product(own))
    done = retune.retune(held, result.read(written(tmp_path / "r.jsonl", lines), held))
    assert EVIL in done.source
    text = (own / "share/tensorop/src/dispatch_f32.c").read_text()
    assert "? __attribute__((constructor)) static void evil(void) " in text  # in a comment
    opened.open_product(own).require_fit()


def test_a_deep_tree_of_a_manifest(product: Path, tmp_path: Path) -> None:
    own = shutil.copytree(product, tmp_path / "gemm", symlinks=True)
    path = own / "share/tensorop/manifest.json"
    told = json.loads(path.read_text())
    told["operators"]["gemm"]["dtypes"]["f32"]["tree"] = "deep"
    deep = '{"feature": "m", "threshold": 1, "high": {"variant": 0}, "low": ' * 5000 + '{"variant": 0}' + "}" * 5000
    path.write_text(json.dumps(told).replace('"deep"', deep))
    with pytest.raises(UsageError, match=r"manifest.json does not say what a kit needs: ValueError: JSON that"):
        processor.read(opened.open_product(own))
