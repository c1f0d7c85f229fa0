"""A kit of a product for a device, from export to import, on this machine's processor."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tensorop import pipeline
from tensorop.cli.main import cli
from tensorop.commands import opened
from tensorop.cuda import attached, kit, product
from tensorop.cuda import compile as building
from tensorop.cuda.compile import Built
from tensorop.cuda.job_kernels import NOT_MEASURED
from tensorop.device_target import TimedProblem
from tensorop.errors import JobError, UsageError
from tensorop.events import Done, Phase
from tensorop.kits import commands, device, export, here, result, retune
from tensorop.kits import product as kit_products
from tensorop.kits.rows import DeviceTiming, KeptOnDevice
from tensorop.model.device import device_problem
from tensorop.model.job import Job
from tensorop.package import publish
from tensorop.provision import nvcc
from tensorop.specs import platforms
from tensorop.target import KitRequest
from tensorop.toolchain.shared_library import facts
from tests.support import shared_objects
from tests.support.classes import extended
from tests.support.commands import journal
from tests.support.device_calls import __file__ as calls_file
from tests.support.device_products import CALL, GEMM, driver, made, without_nvcc

SHAPES = ((64, 48, 40), (33, 50, 65))
Exported = tuple[Path, Path]  # of a product, of a driver and a kit


def _retuned(of: device.DeviceProduct, path: Path) -> retune.Imported:
    return retune.retune(of, result.read(path, of))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A product and, beside a driver, its kit."""
    root, folder = tmp_path_factory.mktemp("product") / "gemm", tmp_path_factory.mktemp("device")
    content, _ = made(platforms.load("cuda-sm90"), most=3)
    publish.publish(publish.stage(product.product(content), root), root)
    driver(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kit, "SETTINGS", "32768 20000 1 0 3 60 24")
        patch.setattr(kit, "verified", lambda _: "64x48x40x1 33x17x50x2")
        patch.setattr(building, "build", lambda *_: Built(b"kit\0", 0))
        patch.setattr(nvcc, "nvcc", lambda: None)
        export.export(device.read(opened.open_product(root)), folder / "kit", KitRequest(SHAPES))
    return root, folder


def run(folder: Path, out: Path, **said: str) -> subprocess.CompletedProcess[str]:
    own = {"LD_LIBRARY_PATH": str(folder), "TENSOROP_KIT_CUBLASLT": "/none", "TENSOROP_KIT_OUT": str(out)}
    there = {**os.environ, **own, **said}
    return subprocess.run(["./run-kit"], cwd=folder / "kit", env=there, capture_output=True, text=True)


@pytest.fixture(scope="module")
def measured(exported: Exported) -> Path:
    out = exported[1] / "result.jsonl"
    done = run(exported[1], out)
    assert done.returncode == 0, done.stderr
    return out


def rows(path: Path) -> list[dict[str, Any]]:
    return [row for row in result.lines(path) if "step" in row]


def files(root: Path) -> dict[str, bytes]:
    """All but the lock."""
    every = (path.relative_to(root) for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path): (root / path).read_bytes() for path in every if path.parts[0] != "work"}


def signed(value: dict[str, Any]) -> str:
    """A line as a kit writes it."""
    body = json.dumps({name: of for name, of in value.items() if name != "sum"}, separators=(",", ":"))[:-1]
    return f'{body},"sum":"{result._sum(body.encode()):016x}"}}\n'


@pytest.mark.extended
def test_the_program_needs_little_and_an_old_glibc(exported: Exported) -> None:
    program = exported[1] / "kit" / "kit"
    assert set(facts(program).needed) <= {"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"}
    assert shared_objects.glibc(program) <= (2, 28)


def test_faulty_kernels_are_refused_all_variants_verified_and_timed(exported: Exported, measured: Path) -> None:
    told = rows(measured)
    assert {row["outcome"] for row in told} == {"ok"}
    by_kind = {kind: [row for row in told if row["kind"] == kind] for kind in ("control", "verify", "time")}
    reasons = {row["of"]["control"]: row.get("message") for row in by_kind["control"]}
    assert reasons.pop("oracle") is reasons.pop("plain") is None
    assert len(reasons) == 16
    assert reasons["writes-past-edge"] == "wrote outside a buffer"
    assert reasons["changes-an-input"] == "changed an input"
    assert reasons["wrong-in-some-calls"].startswith("in 24 calls without a pause, ")
    assert reasons["runs-on-legacy-stream"] == reasons["wrong-on-second-stream"]
    assert all(reasons.values())
    assert [row["of"]["variant"] for row in by_kind["verify"]] == list(range(-1, 24))
    assert all(row["cases"] >= 2 for row in by_kind["verify"])
    assert len(by_kind["time"]) == 4 * len(SHAPES)
    for row in by_kind["time"]:
        us = {arm["variant"]: arm["us"] for arm in row["arms"]}
        assert row["chosen"] in us
        assert all(min(of) > 0 for of in us.values())


def test_a_run_that_was_stopped_goes_on(exported: Exported, measured: Path, tmp_path: Path) -> None:
    whole = measured.read_text().splitlines(keepends=True)
    cut = tmp_path / "result.jsonl"
    cut.write_text("".join(whole[:-3]) + whole[-3][:40])
    done = run(exported[1], cut)
    assert done.returncode == 0, done.stderr
    told = result.lines(cut)
    assert [row["step"] for row in rows(cut)] == list(range(len(rows(measured))))
    assert sum("machine" in row for row in told) == 2
    assert rows(cut)[:-2] == rows(measured)[:-2]  # the others were measured again


@pytest.mark.parametrize(
    ("fault", "status", "said", "steps"),
    [
        ("FAKE_BLIND", 2, "the judge does not work", 1),
        extended("FAKE_WRONG", 1, "the library computes wrong results", 19),
    ],
)
def test_a_broken_judge_and_a_wrong_library_end_it(
    exported: Exported, tmp_path: Path, fault: str, status: int, said: str, steps: int
) -> None:
    out = tmp_path / "result.jsonl"
    done = run(exported[1], out, **{fault: "1"})
    assert done.returncode == status
    assert said in done.stderr
    assert len(rows(out)) == steps
    before = files(exported[0])
    with pytest.raises(
        JobError, match="is cut off" if fault == "FAKE_BLIND" else "the library failed verification on pretended"
    ):
        _retuned(device.read(opened.open_product(exported[0])), out)
    assert files(exported[0]) == before


def test_a_kernel_that_faults_ends_its_own_process_alone(exported: Exported, measured: Path, tmp_path: Path) -> None:
    verified = [line for line in measured.read_text().splitlines(keepends=True) if '"kind":"time"' not in line]
    out = tmp_path / "result.jsonl"
    out.write_text("".join(verified[:-1]))  # without its end
    assert run(exported[1], out, FAKE_CRASH="1").returncode == 0
    timed = [row for row in rows(out) if row["kind"] == "time"]
    assert {row["outcome"] for row in timed} == {"crash"}
    assert [row["of"] for row in timed] == [row["of"] for row in rows(measured) if row["kind"] == "time"]
    with pytest.raises(JobError, match="nothing could be measured there"):
        _retuned(device.read(opened.open_product(exported[0])), out)


def test_products_that_have_no_kit(exported: Exported, tmp_path: Path) -> None:
    root = shutil.copytree(exported[0], tmp_path / "gemm", symlinks=True)
    (tmp_path / "taken").mkdir()
    with pytest.raises(UsageError, match="exists and is not a kit"):
        export.export(device.read(opened.open_product(root)), tmp_path / "taken", KitRequest())
    (root / "share/tensorop/src/kernels.bin").write_bytes(b"")
    with pytest.raises(UsageError, match="does not say what a kit needs: ValueError: its kernels are not those"):
        export.export(device.read(opened.open_product(root)), tmp_path / "kit", KitRequest())
    (root / "share/tensorop/manifest.json").write_text("{")
    with pytest.raises(UsageError, match=r"manifest\.json does not say what a kit needs: JSONDecodeError"):
        device.read(opened.open_product(root))


def test_a_library_of_others_is_read_before_it_becomes_a_kit(exported: Exported, tmp_path: Path) -> None:
    root = shutil.copytree(exported[0], tmp_path / "gemm", symlinks=True)
    (whole,) = (path for path in (root / "lib").glob("libtensorop_gemm_*.so.*.*") if not path.is_symlink())
    flags = struct.pack("<QQ", 0x1E, 8)  # DT_FLAGS: BIND_NOW
    assert flags in whole.read_bytes()
    whole.write_bytes(whole.read_bytes().replace(flags, struct.pack("<QQ", 0x6FFFFEFC, 1)))  # DT_AUDIT
    with pytest.raises(JobError, match="is refused: its DT_AUDIT makes the loader load another library"):
        export.export(device.read(opened.open_product(root)), tmp_path / "kit", KitRequest())
    assert not (tmp_path / "kit").exists()


def test_where_no_device_is_nothing_is_written(exported: Exported, tmp_path: Path) -> None:
    out = tmp_path / "result.jsonl"
    done = run(exported[1], out, FAKE_NO_DEVICE="1")
    assert done.returncode == 2
    assert "the driver finds no device" in done.stderr
    assert out.read_text() == ""
    done = run(exported[1], out, FAKE_CAPABILITY="80")
    assert "the kernels are for another GPU architecture" in done.stderr


def _other(lines: list[dict[str, Any]], what: str) -> str:
    head = lines[0]
    if what == "product":
        head["product"] = "0" * 64
    elif what == "capability":
        head["machine"]["capability"] = 80
    elif what == "time":
        next(row for row in lines if row.get("kind") == "time")["arms"][0]["us"] = [0.0]
    elif what == "variant":
        next(row for row in lines if row.get("kind") == "time")["arms"][0]["variant"] = 3000
    elif what == "dtype":
        next(row for row in lines if row.get("kind") == "time")["of"]["dtype"] = "f8"
    elif what == "size":
        next(row for row in lines if row.get("kind") == "time")["of"]["dims"]["m"] = 0
    elif what == "capability text":
        head["machine"]["capability"] = "90"
    elif what == "end":
        lines = lines[:-4]
    text = "".join(map(signed, lines))
    return text[:-30] if what == "half" else text.replace("bf16", "bf17") if what == "changed" else text


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("product", "belongs to another product"),
        ("capability", r"was measured on pretended 0 \(compute capability 80\), cuda-sm90 needs 90 to 90"),
        ("time", "expected more than 1e-06"),
        ("variant", r"has variants \[3000, .*; expected different ones"),
        ("dtype", "has the problem .*; expected sizes above 0 of bf16"),
        ("size", "has the problem .*; expected sizes above 0 of bf16"),
        ("capability text", "line 1, machine: key 'capability': expected an integer"),
        ("end", r"is cut off after row \d+ of \d+"),
        ("half", "is cut off in line"),
        ("changed", "is not as a kit writes it"),
    ],
)
def test_a_file_that_does_not_fit_leaves_the_product(
    exported: Exported, measured: Path, tmp_path: Path, what: str, said: str
) -> None:
    given, before = tmp_path / "result.jsonl", files(exported[0])
    given.write_text(_other(result.lines(measured), what))
    with pytest.raises((UsageError, JobError), match=said):
        _retuned(device.read(opened.open_product(exported[0])), given)
    assert files(exported[0]) == before


@pytest.mark.extended
def test_an_import_changes_the_choice_and_nothing_else(exported: Exported, measured: Path, tmp_path: Path) -> None:
    root = shutil.copytree(exported[0], tmp_path / "gemm", symlinks=True)
    manifest, named = root / "share/tensorop/manifest.json", {"plugin_folders": {"templates/gemm": "my own"}}
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | named))
    of = device.read(opened.open_product(root))
    done = _retuned(of, measured)
    assert json.loads(manifest.read_text()).items() >= named.items()
    assert done.rows == 4 * len(SHAPES)
    assert "measured on pretended 0 by kit" in done.source
    assert set(done.record["choice"]) == {"bf16"}
    again = device.read(opened.open_product(root))
    assert again.digest == of.digest
    assert [kit.machine.device for kit in kit_products.kept(root, device=True)] == ["pretended 0"]
    content = again.target._content(again.predicted)  # type: ignore[attr-defined]
    timed = [row for row in rows(measured) if row["kind"] == "time"]
    found = kit.corrections(content, [again.timed(KeptOnDevice.model_validate(row)) for row in timed], "there")
    others = [
        TimedProblem(device_problem(CALL, "gemm", "", sizes, key), {})
        for key in CALL.keys
        for sizes in ((96, 64, 32), (40, 33, 80))
    ]
    asked = [*found.rows, *others]
    told = _chosen(exported[1], root, asked)
    for place, row in enumerate(asked):
        for dtype in ("bf16", "f16"):
            number = told[place][dtype]
            if row.us:  # the fastest of those that were timed; f16 goes by bf16's figures
                own = {n: us for n, us in row.us.items() if content.variants[n].dtype == dtype}
                assert own[number] == min(own.values())
            else:
                costs = found.costs(replace(row.problem, dtype=dtype))
                assert costs[number] == min(costs.values())
                problem = GEMM.reference.problem(dtype, row.problem.sizes, _flags(row))
                explained = here.explain(again.opened, problem)
                assert costs[explained.variant] == costs[number]
                assert "corrected by 8 measured problems" in explained.rule


def _flags(row: TimedProblem) -> dict[str, int | str]:
    return {**CALL.flags(CALL.key(row.problem.options), GEMM.reference.flags, GEMM.layouts[0])}


CHOSEN = """
import ctypes, json, sys
sys.path.insert(0, sys.argv[2])
from tests.support.device_calls import Problem
lib, handle = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
assert lib.tensorop_gemm_create(ctypes.byref(handle), 0) == 0
at, most, found = ctypes.c_void_p(1 << 40), ctypes.c_size_t(1 << 60), []
for a, b, m, n, k in json.loads(sys.argv[3]):
    lines = (m if a else k, k if b else n, n)
    each = [Problem(f16, 101, 111 + a, 111 + b, 1, 0, m, n, k, *lines, 1) for f16 in (0, 1)]
    numbers = [lib.tensorop_gemm_chosen_variant(handle, ctypes.byref(p), at, at, at, most) for p in each]
    found.append(dict(zip(("bf16", "f16"), numbers, strict=True)))
print(json.dumps(found))
"""


def _chosen(folder: Path, root: Path, asked: list[TimedProblem]) -> list[dict[str, int]]:
    problems = json.dumps([[*row.problem.options.values(), *row.problem.sizes.values()][:5] for row in asked])
    library = next((root / "lib").glob("*.so"))
    words = [sys.executable, "-c", CHOSEN, str(library), str(Path(calls_file).parents[2]), problems]
    done = subprocess.run(words, env={**os.environ, "LD_LIBRARY_PATH": str(folder)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_the_command_says_what_came_of_it(exported: Exported, measured: Path, tmp_path: Path) -> None:
    root, given = shutil.copytree(exported[0], tmp_path / "gemm", symlinks=True), tmp_path / "result.jsonl"
    lines = result.lines(measured)
    lines[0]["machine"]["board"] = "mine */ #error"  # it is named in comments of C
    given.write_text("".join(map(signed, lines)))
    done = CliRunner().invoke(cli, ["import", str(root), str(given)])
    assert done.exit_code == 0, done.output
    assert "8 shapes, 0 of them without a time" in done.output
    assert "bf16: dispatch loss on held-out shapes " in done.output
    card = CliRunner().invoke(cli, ["inspect", str(next((root / "lib").glob("*.so")))])
    assert "measured on mine */ #error by kit" in card.output


def _there(exported: Exported, patch: pytest.MonkeyPatch, **said: str) -> list[str]:
    """This machine has the device. Returns the texts of the kernels that are built, as they come."""
    patch.setattr(kit, "SETTINGS", "32768 20000 1 0 3 60 24")
    patch.setattr(kit, "verified", lambda _: "64x48x40x1")
    patch.setattr(export, "PROBES", 0)
    patch.setattr(attached, "attached", lambda _: "a GPU")
    there = {"LD_LIBRARY_PATH": str(exported[1]), "TENSOROP_KIT_CUBLASLT": "/none"}
    there |= {"TENSOROP_KIT_OUT": "/none/of-the-user", **said}
    for name, value in there.items():
        patch.setenv(name, value)
    return without_nvcc(patch)


def _notes(root: Path, name: str) -> list[Any]:
    return [record["data"] for record in journal(root) if record.get("name") == name]


def _job(root: Path, **more: Any) -> Job:
    return Job("gemm", "cuda-sm90", ("bf16",), SHAPES[:1], "", trials=8, out=root, **more)


def test_with_the_device_in_the_machine_a_job_measures_publishes_once_and_does_neither_again(
    exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built, published = _there(exported, monkeypatch), []
    put = publish.publish
    monkeypatch.setattr(publish, "publish", lambda *given, **more: published.append(put(*given, **more)))
    root = tmp_path / "gemm"
    *told, done = pipeline.run(_job(root))
    assert any("bf16: dispatch loss on held-out shapes" in str(event) for event in told)
    assert isinstance(done, Done)
    assert "measured on" in done.notes[0]
    assert (len(built), len(published)) == (8, 1)
    assert kit_products.kept(root, device=True)
    (rows_,) = (root / "work").glob("kit-*.jsonl")
    whole = rows_.read_text()
    assert "".join(line for data in _notes(root, "kit") for line in data["lines"]) == whole
    # as if the job had been killed while its kit ran
    cut = whole.splitlines(keepends=True)[:-3]
    rows_.write_text("".join(cut))
    *told, done = pipeline.run(_job(root))
    assert any(isinstance(one, Phase) and one.detail.startswith("0 to build, 2 at a time; 8 are in") for one in told)
    assert [record["event"] for record in journal(root)].count("finished") == 8
    assert rows_.read_text().startswith("".join(cut))
    assert [row["step"] for row in rows(rows_)] == list(range(whole.count('"step"')))
    assert len(published) == 2
    assert [verdict["cases"] > 0 for verdict in _notes(root, "verification")[0]] == [True]


def test_a_device_that_refuses_leaves_the_product_as_made_and_a_wrong_library_is_not_installed(
    exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _there(exported, monkeypatch, FAKE_NO_DEVICE="1")
    *told, done = pipeline.run(_job(tmp_path / "gemm"))
    assert any("the product stays as the model chose" in str(event) for event in told)
    assert isinstance(done, Done)
    assert done.notes == (NOT_MEASURED,)
    assert not kit_products.kept(tmp_path / "gemm")
    before = files(tmp_path / "gemm" / "lib")
    monkeypatch.delenv("FAKE_NO_DEVICE")
    monkeypatch.setenv("FAKE_WRONG", "1")
    (rows_,) = (tmp_path / "gemm" / "work").glob("kit-*.jsonl")
    rows_.write_text("results of another day\n")
    with pytest.raises(JobError, match=r"the library failed on a GPU and was not installed: "):
        list(pipeline.run(_job(tmp_path / "gemm", fresh=True)))
    assert files(tmp_path / "gemm" / "lib") == before
    assert [record["event"] for record in journal(tmp_path / "gemm")].count("finished") == 8
    assert "resumed" not in [record["event"] for record in journal(tmp_path / "gemm")]


def test_verify_and_bench_are_the_kits_where_the_device_is(exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(*words: str, status: int = 0) -> str:
        done = CliRunner().invoke(cli, [words[0], str(exported[0]), *words[1:]])
        assert done.exit_code == status, done.output
        return done.output + str(done.exception or "")

    assert "this machine has no GPU for platform 'cuda-sm90'" in told("verify", status=1)
    _there(exported, monkeypatch)
    before = files(exported[0])
    judged = json.loads(told("verify", "--format", "json"))
    assert judged["ok"]
    assert [one["variant"] for one in judged["verdicts"]] == list(range(-1, 24))
    assert sum(bool(one["refused"]) for one in judged["controls"]) == 16
    words = "--shapes", "33x50x65", "--layout", "1"
    rows = json.loads(told("bench", *words, "--format", "json"))
    figures = [(row["shape"], row["dtype"], row["layout"]) for row in rows["results"]]
    assert figures == [("33x50x65", dtype, "row tb=1") for dtype in ("bf16", "f16")]
    assert all(row["ours"] > 0 and row["verdict"] == {"ours": "ok"} for row in rows["results"])
    assert "no libcublasLt.so here; TENSOROP_KIT_CUBLASLT=FILE names one" in rows["absent"]["cublaslt"]
    for words in (("bench", "--against", "openblas"), ("bench", "--fast"), ("bench", "--runner", "native"),
                  ("bench", "--threads", "1"), ("bench", "--offline"), ("verify", "--jobs", "4"),
                  ("export", "--jobs", "4")):  # fmt: skip
        assert f"{words[1]} has no effect on a" in told(*words, status=1)
    assert files(exported[0]) == before


def test_a_library_that_is_wrong_here_is_said(
    exported: Exported, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _there(exported, monkeypatch, FAKE_WRONG="1")
    told = here.verify(opened.open_product(exported[0]))
    assert not told["ok"]
    commands.show_verified(told)
    assert "the library FAILED (wrong-result)" in capsys.readouterr().out


def test_a_row_to_ratios_by_rounds(exported: Exported) -> None:
    of = {"dtype": "f16", "options": {"a_along_m": 1, "b_along_k": 0}, "dims": {"m": 100, "n": 10, "k": 5, "batch": 1}}
    arms = [{"variant": 3, "us": [1.0, 2.0, 4.0]}, {"variant": 1, "us": [0.5] * 3}]
    arms += [{"cublaslt": 0, "us": [3.0, 6.0, 12.0]}, {"cublaslt": 4, "us": [2.0, 2.0, 2.0], "refused": "too far"}]
    timing = {"step": 0, "kind": "time", "outcome": "ok", "date": "2026-01-01T00:00:00Z", "of": of, "arms": arms}
    row = here._row(opened.open_product(exported[0]), DeviceTiming.model_validate({**timing, "chosen": 3}))
    assert row is not None
    assert (row.ours, row.layout) == (pytest.approx(5000e-3), "row ta=1")
    assert "cublaslt" not in row.ratios  # its fastest answer is wrong
    assert (row.ratios["cublaslt-top1"].low, row.ratios["cublaslt-top1"].high) == (3.0, 3.0)
    assert row.verdicts == {"ours": "ok", "cublaslt": "too far", "cublaslt-top1": "ok"}
    assert row.called == {"best": "cublaslt-top1"}  # the only right one
    arms[3] = {"cublaslt": 4, "us": [2.0, 1.0, 20.0]}  # it is the best in the rounds that decide, the first two
    row = here._row(opened.open_product(exported[0]), DeviceTiming.model_validate({**timing, "chosen": 3}))
    assert row is not None
    assert (row.called, row.ratios["best"].value) == ({"best": "cublaslt"}, 5.0)
    assert here._row(opened.open_product(exported[0]), DeviceTiming.model_validate({**timing, "chosen": 7})) is None


def test_a_kit_of_both_types_and_two_layouts(exported: Exported, tmp_path: Path) -> None:
    of = device.read(opened.open_product(exported[0]))
    content = of.target._content(of.predicted)  # type: ignore[attr-defined]
    plan = [step.split() for step in kit.steps(content, KitRequest(SHAPES, 0, ("bf16", "f16"), ("NN", "TN")))]
    timed = [words[1:4] for words in plan if words[0] == "time"]
    assert timed == [[dtype, "0", b] for b in "01" for _ in SHAPES for dtype in ("bf16", "f16")]
    with pytest.raises(UsageError, match="--layouts NX does not exist"):
        list(kit.steps(content, KitRequest(SHAPES, 0, (), ("NX",))))
    with pytest.raises(UsageError, match="--dtype f32: the library supports bf16, f16"):
        list(kit.steps(content, KitRequest(SHAPES, 0, ("f32",))))


@pytest.mark.parametrize(
    ("said", "name"), [({}, True), ({"FAKE_NO_DEVICE": "1"}, False), ({"FAKE_CAPABILITY": "80"}, False)]
)
def test_a_device_is_found_where_it_fits(exported: Exported, said: dict[str, str], name: bool) -> None:
    asked = "from tensorop.cuda.attached import attached; print(attached({'least': 90, 'most': 90}))"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(exported[1]), **said}
    done = subprocess.run([sys.executable, "-c", asked], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.strip() != "None") is name
