"""A tuning kit, made, run where there is no tensorop, and brought back: all of it in the emulator."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from elftools.elf.elffile import ELFFile

from tensorop.cli.main import cli
from tensorop.commands import opened
from tensorop.errors import JobError, UsageError
from tensorop.kits import export, plan, processor, result, retune, steps
from tensorop.kits import product as kit_products
from tensorop.kits.export import ExportedKit
from tensorop.kits.processor import ProcessorProduct
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Verdict
from tensorop.package.card import read_card
from tensorop.provision import qemu
from tensorop.target import KitRequest
from tensorop.verify import controls
from tests.support import products

SHAPES = ((16, 16, 16), (33, 40, 21))
SOME = ("honest", "half_of_k", "writes_past_end", "gap_written", "skips_alternately", "samples_operands")
Row = dict[str, Any]


def emulator(vlen: int = 256) -> str:
    return f"{qemu.qemu('riscv64')} -cpu rv64,v=true,vext_spec=v1.0,vlen={vlen},elen=64"


def run_kit(folder: Path, out: str, run: str | None = None) -> subprocess.CompletedProcess[str]:
    given = {
        "PATH": os.environ["PATH"],
        "TENSOROP_KIT_OUT": out,
        "TENSOROP_KIT_BOARD": "a test's board",
        "TENSOROP_KIT_RUN": emulator() if run is None else run,
    }
    return subprocess.run([folder / "run-kit"], env=given, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return products.install("rvv", tmp_path_factory.mktemp("kit") / "gemm", ("f32",))


@pytest.fixture(scope="module")
def whole(product: Path) -> ProcessorProduct:
    return processor.read(opened.open_product(product))


@pytest.fixture(scope="module")
def made(whole: ProcessorProduct, product: Path) -> ExportedKit:
    with pytest.MonkeyPatch.context() as patch:
        known = controls.controls
        patch.setattr(controls, "controls", lambda of: tuple(c for c in known(of) if c.name in SOME))
        patch.setattr(steps, "ROUNDS", 3)
        return export.export(whole, product.with_name("kit"), KitRequest(SHAPES, 2))


@pytest.fixture(scope="module")
def measured(made: ExportedKit) -> Path:
    done = run_kit(made.folder, "result.jsonl")
    assert done.returncode == 0, done.stderr
    return made.folder / "result.jsonl"


@pytest.fixture
def own(product: Path, tmp_path: Path) -> Path:
    return shutil.copytree(product, tmp_path / "gemm", symlinks=True)


def opened_at(folder: Path) -> ProcessorProduct:
    return processor.read(opened.open_product(folder))


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def written(path: Path, rows: list[Row]) -> Path:
    """Rows as a kit writes them, whatever they say."""
    lines = []
    for row in rows:
        body = json.dumps({k: v for k, v in row.items() if k != "sum"}, separators=(",", ":"))[:-1]
        lines.append(f'{body},"sum":"{result._sum(body.encode()):016x}"}}\n')
    path.write_text("".join(lines))
    return path


def test_what_a_kit_holds(made: ExportedKit):
    assert {path.name for path in made.folder.iterdir()} >= {
        "kit", "plan.bin", "manifest.json", "run-kit", "README", "SHA256SUMS",
    }  # fmt: skip
    assert made.packed.is_file()
    assert made.steps == {"control": len(SOME), "verify": 3, "time": 4}
    with (made.folder / "kit").open("rb") as stream:
        assert "PT_INTERP" not in {segment["p_type"] for segment in ELFFile(stream).iter_segments()}


def test_what_a_kit_measures(measured: Path):
    head, *rest = rows_of(measured)
    assert head["machine"]["vlen"] == 256
    assert head["machine"]["board"] == "a test's board"
    steps = [row for row in rest if "step" in row]
    ended = {row["of"]["control"]: row["outcome"] for row in steps if row["kind"] == "control"}
    assert ended == {
        "honest": "ok",
        "half_of_k": "wrong-result",
        "writes_past_end": "guard-page",
        "gap_written": "wrong-result",
        "skips_alternately": "wrong-result",
        "samples_operands": "wrong-result",
    }
    assert all(row["outcome"] == "ok" for row in steps if row["kind"] == "verify")
    for row in (row for row in steps if row["kind"] == "time"):
        assert len(row["ns"]) == len(row["of"]["variants"]) == 2
        assert all(ns > 0 for rounds in row["ns"] for ns in rounds)
    assert rest[-1]["end"] == head["steps"] == len(steps)


def test_import_chooses_anew(own: Path, measured: Path, tmp_path: Path):
    rows = rows_of(measured)
    for row in rows:
        if row.get("kind") == "time":
            row["ns"] = [[100.0], [1000.0 + row["step"]]]  # variant 0 everywhere
    manifest, named = own / "share/tensorop/manifest.json", {"plugin_folders": {"tuners/mine": "my own"}}
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | named))
    done = retune.retune(opened_at(own), result.read(written(tmp_path / "r.jsonl", rows), opened_at(own)))
    assert done.source.startswith("measured on a test's board, under the emulator qemu-riscv64 by kit, ")
    assert done.verdicts
    assert all(verdict.ok for verdict in done.verdicts)
    card = read_card(opened.open_product(own).library)
    assert card["dtypes"]["f32"]["tree"] == {"variant": 0}
    assert [kit["board"] for kit in card["facts"]["measured"]] == ["a test's board"]
    assert card["facts"]["seed"] == products.FACTS["seed"]
    assert json.loads(manifest.read_text()).items() >= named.items()
    assert "by kit" in (own / "share/tensorop/src/dispatch_f32.c").read_text()
    # what was imported is known to the next kit, which is one of the same product
    again = opened_at(own)
    assert again.digest == opened_at(measured.parents[1] / "gemm").digest
    assert len(kit_products.measured(again.operator, again.winners[0], kit_products.kept(own))) == 4
    assert len(result.read(measured, again).kept.rows) == 4
    probes = steps.timed_problems(again, again.winners[0], SHAPES, 8)
    assert len(probes) == len(SHAPES) + 8
    first = steps.timed_problems(opened_at(measured.parents[1] / "gemm"), again.winners[0], SHAPES, 8)
    assert {probe.problem.label for probe in probes[2:]}.isdisjoint(probe.problem.label for probe in first[2:])


def test_the_commands_say_it_in_json(own: Path, made: ExportedKit, measured: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(export, "export", lambda held, out, _: replace(made, folder=out))
    done = CliRunner().invoke(cli, ["export", str(own), "--shapes", "8x8x8", "--format", "json"])
    assert json.loads(done.stdout)["folder"] == str(own.with_name("gemm-kit"))
    verdict = Verdict(Outcome(Kind.OK), 256, 5, "0:0", dtype="f32")
    regret = {"before": None, "after": 0.1}
    lines = [processor._in_words("f32", regret)]
    found = retune.Imported(own, "measured there", 4, 0, {"regret": {"f32": regret}}, lines, (verdict,))
    monkeypatch.setattr(retune, "retune", lambda *_, **__: found)
    done = CliRunner().invoke(cli, ["import", str(own), str(measured), "--format", "json"])
    told = json.loads(done.stdout)
    assert told["regret"] == {"f32": {"before": None, "after": 0.1}}
    assert told["unmeasured"] == 0
    done = CliRunner().invoke(cli, ["import", str(own), str(measured)])
    assert "dispatch loss on held-out shapes 10.0% (before this import unknown)" in done.stdout
    assert "5 calls of the new library verified on this machine, seed 0:0\n" in done.stdout


def test_a_killed_kit_goes_on(made: ExportedKit):
    given = {
        "PATH": os.environ["PATH"],
        "TENSOROP_KIT_OUT": "killed.jsonl",
        "TENSOROP_KIT_RUN": emulator(),
        "TENSOROP_KIT_BOARD": "a test's board",
    }
    with subprocess.Popen(
        [made.folder / "run-kit"], env=given, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        assert child.stderr
        while not child.stderr.readline().startswith("3 of"):
            pass
        os.killpg(child.pid, signal.SIGKILL)
    path = made.folder / "killed.jsonl"
    before = path.read_text().splitlines()
    assert 3 <= len(before) < 13  # the head and two rows: a step is said before its row is there
    with path.open("a") as file:
        file.write('{"step":9,"kind":"tim')
    done = run_kit(made.folder, path.name)
    assert done.returncode == 0, done.stderr
    rows = rows_of(path)
    assert path.read_text().splitlines()[: len(before)] == before
    assert [row["step"] for row in rows if "step" in row] == list(range(sum(made.steps.values())))
    assert sum("again" in row for row in rows) == 1
    assert "has all its rows" in run_kit(made.folder, path.name).stderr


def test_a_kit_on_another_machine(made: ExportedKit, tmp_path: Path):
    done = run_kit(made.folder, str(tmp_path / "r"), run="")
    if os.uname().machine != "riscv64":
        assert done.returncode == 2
        assert "this kit is for rvv (riscv64), this machine is" in done.stderr
    data = bytearray((made.folder / "plan.bin").read_bytes())
    data[24:28] = (512).to_bytes(4, "little")
    (tmp_path / "plan.bin").write_bytes(data)
    words = [*emulator().split(), str(made.folder / "kit"), str(tmp_path / "plan.bin"), str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "made for rvv with vectors of 512 bits or more; this core has 256" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_control_that_passes_stops_a_kit(made: ExportedKit, tmp_path: Path):
    data = bytearray((made.folder / "plan.bin").read_bytes())
    steps_at = int.from_bytes(data[32:40], "little")
    expects = steps_at + plan._STEP.size - 680 - 64
    assert data[expects : expects + 3] == b"ok\0"
    data[expects : expects + 64] = b"wrong-result".ljust(64, b"\0")
    (tmp_path / "plan.bin").write_bytes(data)
    words = [*emulator().split(), str(made.folder / "kit"), str(tmp_path / "plan.bin"), str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "the control above must end as wrong-result; nothing is measured" in done.stderr
    assert not any("step" in row for row in rows_of(tmp_path / "out"))


def test_a_damaged_kit(made: ExportedKit, tmp_path: Path):
    folder = shutil.copytree(made.folder, tmp_path / "kit")
    with (folder / "plan.bin").open("r+b") as file:
        file.seek(1 << 16)
        file.write(b"x")
    done = run_kit(folder, "r.jsonl")
    assert done.returncode == 2
    assert "a file of this kit is damaged" in done.stderr


def _cut(rows: list[Row]) -> None:
    del rows[-3:]


def _other_product(rows: list[Row]) -> None:
    rows[0]["product"] = "0" * 64


def _other_schema(rows: list[Row]) -> None:
    rows[0]["schema"] = 7


def _other_machine(rows: list[Row]) -> None:
    rows[0]["machine"]["arch"] = "aarch64"


def _two_machines(rows: list[Row]) -> None:
    rows.insert(3, {"again": 2, "machine": {**rows[0]["machine"], "board": "another"}})


def _wrong_there(rows: list[Row]) -> None:
    row = next(row for row in rows if row.get("kind") == "verify")
    row |= {"outcome": "wrong-result", "message": "element 3", "case": "1x1x1"}


def _no_figures(rows: list[Row]) -> None:
    for row in rows:
        row.pop("ns", None)


def _too_few(rows: list[Row]) -> None:
    next(row for row in rows if row.get("kind") == "time")["ns"].pop()


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (_cut, JobError, r"is cut off after row \d+ of \d+"),
        (_other_product, UsageError, "belongs to another product"),
        (_other_schema, UsageError, "has schema 7, expected 1"),
        (_other_machine, UsageError, "was measured on aarch64; platform rvv needs riscv64"),
        (_two_machines, UsageError, "contains results from several machines"),
        (_wrong_there, JobError, "the library failed verification on a test's board"),
        (_no_figures, UsageError, r"line \d+: missing key 'ns'"),
        (_too_few, UsageError, r"is damaged: row \d+ has figures of 1 variants; expected figures of 2"),
    ],
)
def test_files_that_are_refused(
    whole: ProcessorProduct,
    measured: Path,
    tmp_path: Path,
    change: Callable[[list[Row]], None],
    error: type[Exception],
    said: str,
):
    rows = rows_of(measured)
    change(rows)
    with pytest.raises(error, match=said) as caught:
        result.read(written(tmp_path / "r.jsonl", rows), whole)
    assert caught.value.hint  # type: ignore[attr-defined]


def test_bytes_that_are_refused(whole: ProcessorProduct, measured: Path, tmp_path: Path):
    text, path = measured.read_bytes(), tmp_path / "r.jsonl"
    for data, error, said in (
        (text[:-40], JobError, "is cut off in line"),
        (text.replace(b'"ns":[[', b'"ns":[[1', 1), UsageError, "is not as a kit writes it"),
        (b"", UsageError, "has no whole line"),
        (b"\xff\n", UsageError, "is not the result of a kit"),
        (b"{}\n", UsageError, "line 1 is not as a kit writes it"),
    ):
        path.write_bytes(data)
        with pytest.raises(error, match=said):
            result.read(path, whole)


def test_a_refused_import_changes_nothing(own: Path, measured: Path, tmp_path: Path):
    before = {path: path.stat().st_mtime_ns for path in own.rglob("*")}
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(measured.read_bytes()[:-40])
    with pytest.raises(JobError, match="is cut off") as caught:
        cli.main(["import", str(own), str(cut)], standalone_mode=False)
    assert caught.value.hint
    assert "run ./run-kit there again" in caught.value.hint
    assert {path: path.stat().st_mtime_ns for path in own.rglob("*")} == before


def test_products_that_have_no_kit(own: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="does not exist"):
        opened_at(tmp_path / "none")
    (tmp_path / "taken").mkdir()
    with pytest.raises(UsageError, match="exists and is not a kit"):
        export.export(opened_at(own), tmp_path / "taken", KitRequest())
    for name in ("manifest.json", "result.jsonl"):
        (tmp_path / "taken" / name).touch()
    with pytest.raises(UsageError, match=r"contains result\.jsonl, which does not belong to a kit"):
        export.export(opened_at(own), tmp_path / "taken", KitRequest())
    (own / "lib/libtensorop_gemm.a").unlink()
    with pytest.raises(UsageError, match="is missing, and the kit needs it"):
        opened_at(own)
    manifest = own / "share/tensorop/manifest.json"
    told = json.loads(manifest.read_text())
    told["operators"]["gemm"]["dtypes"]["f32"]["variants"][0]["digest"] = "0" * 16
    manifest.write_text(json.dumps(told))
    with pytest.raises(UsageError, match="is missing: it is neither shipped"):
        opened_at(own)
