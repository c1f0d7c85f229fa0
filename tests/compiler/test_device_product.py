"""The host side of a library for a device, without one: under a driver that computes what kernels would."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorop import pipeline
from tensorop.cuda import compile as building
from tensorop.cuda import library
from tensorop.cuda.choose import Layout
from tensorop.cuda.compile import Built
from tensorop.errors import Stopped
from tensorop.events import Building, Done, Phase
from tensorop.model.job import Job
from tensorop.model.trial import Kind, Outcome
from tensorop.model.winner import by_operator
from tensorop.process import children
from tensorop.process.stopping import StopRequest
from tensorop.provision import nvcc
from tensorop.provision.nvcc import Nvcc
from tensorop.provision.zig import zig_cc, zig_environment
from tensorop.specs import platforms
from tensorop.toolchain.shared_library import facts
from tests.support import shared_objects
from tests.support.classes import extended
from tests.support.commands import ROOT, events
from tests.support.device_products import GEMM, SUPPORT, TUNED, driver, made

OTHERS = [(8192, 8192, 512), (1, 2048, 4096), (64, 64, 8192), (300, 700, 900), (31, 33, 65), (2047, 2047, 2047)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[tuple[int, int], tuple[Layout, list[int]]]]:
    folder = tmp_path_factory.mktemp("device")
    platform = platforms.load("cuda-sm90")
    content, chosen = made(platform, wave=1)
    files = library.sources(GEMM, platform, content.variants, content.images, {"schema": 1})
    shared, archive = library.build(files, GEMM, platform)
    (folder / "lib.so").write_bytes(shared)
    (folder / "lib.a").write_bytes(archive)
    (folder / "include/tensorop").mkdir(parents=True)
    (folder / "include/tensorop/gemm_cuda.h").write_bytes(files["tensorop/gemm_cuda.h"])
    for name in ("driver.h", "library.c", "kernels.bin"):
        (folder / name).write_bytes(files[name])
    driver(folder)
    return folder, chosen


Calls = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def calls(built: tuple[Path, Any]) -> Calls:
    def call(cases: list[dict[str, Any]] = [], driver: bool = True, **said: str) -> dict[str, Any]:  # noqa: B006
        path = {"LD_LIBRARY_PATH": str(built[0])} if driver else {}
        done = subprocess.run(
            [sys.executable, str(SUPPORT / "device_calls.py"), str(built[0] / "lib.so"), json.dumps(cases)],
            env={**os.environ, **path, **said}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return {**json.loads(done.stdout), "stderr": done.stderr}

    return call


CASE = {
    "alpha": 1,
    "beta": 0,
    "batch": 1,
    "pad": 0,
    "shift": 0,
    "workspace": 1,
    "column": 0,
    "f16": 1,
    "ta": 0,
    "tb": 0,
}


def cases() -> list[dict[str, Any]]:
    found = []
    every = itertools.product([0, 1], [0, 1], [0, 1], [(64, 96, 128), (37, 50, 65), (1, 72, 200), (130, 8, 48)], [0, 1])
    for number, (column, ta, tb, (m, n, k), workspace) in enumerate(every):
        found.append({**CASE, "column": column, "ta": ta, "tb": tb, "m": m, "n": n, "k": k, "workspace": workspace})
        found[-1] |= {"pad": [0, 8, 3][number % 3], "shift": [0, 8, 1][number // 3 % 3], "f16": number % 2}
        found[-1] |= {"alpha": [1, 2, -1][number % 3], "beta": [0, 1, 2][number % 3], "batch": [1, 3][number // 2 % 2]}
    found += [{**CASE, "m": m, "n": n, "k": 4096} for m, n in ((1, 1088), (1088, 1))]  # an operand comes once
    found.append({**CASE, "m": 5, "n": 33, "k": 4097, "workspace": 1})  # padded copies
    found.append({**CASE, "m": 16, "n": 16, "k": 0, "beta": 2})
    found.append({**CASE, "m": 16, "n": 16, "k": 16, "alpha": 0, "beta": 2})
    found.append({**CASE, "m": 2, "n": 1, "k": 3, "batch": 65540})  # deeper than a grid
    found.append({**CASE, "m": 8, "n": 8, "k": 8, "batch": 600001})  # and than one of blocks that take several
    return [{**case, "seed": number} for number, case in enumerate(found)]


def test_calls_are_right_whatever_their_layout_alignment_and_workspace(calls: Calls) -> None:
    told = calls(cases())
    assert told["status"] == 0
    for case, result in zip(cases(), told["cases"], strict=True):
        assert result["status"] == 0, (case, told["stderr"])
        assert result["right"], (case, result)
        assert result["kept"], (case, result)
        assert result["inputs"], (case, result)
    templates = {str(result["chosen"]).split()[0] for result in told["cases"]}
    assert templates == {"wgmma", "mma", "small"}
    assert any(result["workspace"] for result in told["cases"])
    assert told["destroyed"] == 0


def test_the_judge_of_products_refuses_faulty_calls_and_nothing_else(built: tuple[Path, Any]) -> None:
    folder, program = built[0], built[0] / "judge"
    words = ["-target", platforms.load("cuda-sm90").compiler.shared_target, "-std=gnu11", "-O2", "-Wall", "-Werror"]
    words += ["-I", str(folder / "include"), str(ROOT / "benchmarks/cuda/product.c"), str(folder / "lib.a")]
    command = [*zig_cc(), *words, "-ldl", "-lpthread", "-lm", "-o", str(program)]
    subprocess.run(command, check=True, env={**os.environ, **zig_environment()})
    there = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    done = subprocess.run([program, "37x50x65", "1x72x20"], env=there, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.splitlines()
    assert told[0] == "control: none: right"
    assert sum(line.startswith("control: ") and not line.endswith(": right") for line in told) == 6
    assert told[-1] == "0 wrong of 64 calls"
    assert {line.split()[4][:2] for line in told if line.startswith("right: ")} == {"NN", "NT", "TN", "TT"}
    absent = subprocess.run([program], env={**there, "FAKE_NO_DEVICE": "1"}, capture_output=True, text=True)
    assert absent.returncode == 2
    assert absent.stderr


def test_sums_of_parts_of_k_are_added_up_and_need_a_workspace(calls: Calls, built: tuple[Path, Any]) -> None:
    each = [(key, layout.candidate(place)) for key, (layout, places) in built[1].items() for place in places]
    found = {one.numbers["swap"]: i for i, (_, one) in enumerate(each) if one.numbers.get("by_sums")}
    assert found.keys() == {0, 1}
    for i in found.values():
        (ta, tb), one = each[i]
        case = {**CASE, "ta": ta, "tb": tb, "m": 136, "n": 72, "k": 1000, "batch": 2, "beta": 2, "alpha": -1, "seed": i}
        told = calls(
            [case, {**case, "m": 37, "n": 50, "pad": 3}, {**case, "workspace": 0}], TENSOROP_VARIANT=str(2 * i + 1)
        )
        for result in told["cases"]:
            assert (result["status"], result["right"], result["kept"]) == (0, 1, 1), (one.label, result, told["stderr"])
        assert [result["chosen"] == one.label for result in told["cases"]] == [True, True, False], one.label


@pytest.mark.extended
def test_a_last_wave_of_tiles_is_divided_where_that_saves_time(calls: Calls, built: tuple[Path, Any]) -> None:
    """By a kernel with tiles of 128 x 16, on 132 multiprocessors."""
    each = [(key, layout.candidate(place)) for key, (layout, places) in built[1].items() for place in places]
    (*_, number) = [i for i, (key, one) in enumerate(each) if one.numbers.get("by_wave") and key == (0, 1)]
    assert (each[number][1].numbers["tile_m"], each[number][1].numbers["tile_n"]) == (128, 16)
    case = {**CASE, "tb": 1, "m": 8, "n": 88, "k": 1000, "batch": 23, "beta": 2, "alpha": -1, "seed": 1}
    one = {"n": 16, "batch": 133}
    cases = {  # whether K is divided
        "138 tiles": (case, 1),
        "rows of several tiles": ({**case, "m": 136, "n": 8, "batch": 67}, 1),
        "one more tile than places": ({**case, **one}, 1),
        "k is no multiple of the parts' steps": ({**case, **one, "k": 1736}, 1),
        "a small k": ({**case, **one, "k": 8}, 0),
        "whole waves": ({**case, **one, "batch": 132}, 0),
        "more than half a wave": ({**case, **one, "batch": 200}, 0),
        "less than a wave": ({**case, **one, "batch": 8}, 0),
        "no workspace": ({**case, "workspace": 0}, 1),
    }
    found = calls([given for given, _ in cases.values()], TENSOROP_VARIANT=str(2 * number + 1))
    for (name, (_, divided)), result in zip(cases.items(), found["cases"], strict=True):
        assert (result["status"], result["right"], result["kept"]) == (0, 1, 1), (name, result, found["stderr"])
        assert result["chosen"] == each[number][1].label, name
        assert (result["workspace"] > 0) == bool(divided), name


ALONE = """
import ctypes, sys
sys.path.insert(0, sys.argv[2])
from tests.support.device_calls import Problem
lib = ctypes.CDLL(sys.argv[1])
lib.tensorop_gemm_variant.restype = lib.tensorop_gemm_chosen.restype = ctypes.c_char_p
handle, at, most = ctypes.c_void_p(), ctypes.c_void_p(1 << 40), ctypes.c_size_t(1 << 60)
assert lib.tensorop_gemm_create(ctypes.byref(handle), 0) == 0
each = [(f16, a, b) for f16 in (0, 1) for a in (0, 1) for b in (0, 1)]
problems = [Problem(f16, 101, 111 + a, 111 + b, 1, 0, 512, 512, 512, 512, 512, 512, 1) for f16, a, b in each]
asked = lambda: [lib.tensorop_gemm_chosen_variant(handle, ctypes.byref(p), at, at, at, most) for p in problems]
usual = asked()
count = lib.tensorop_gemm_variants()
for i in range(count):
    assert lib.tensorop_gemm_force(handle, i) == 0
    assert sorted(asked()) == [-1] * 7 + [i], (i, asked())
    served = problems[asked().index(i)]
    assert lib.tensorop_gemm_chosen(handle, ctypes.byref(served), at, at, at, most) == lib.tensorop_gemm_variant(i)
other = problems[asked().index(-1)]
assert lib.tensorop_gemm_ex(handle, None, ctypes.byref(other), at, at, at, None, ctypes.c_size_t(0)) == 12
assert lib.tensorop_gemm_force(handle, count) == lib.tensorop_gemm_force(handle, -2) == 1
assert lib.tensorop_gemm_force(handle, -1) == 0 and asked() == usual
assert lib.tensorop_gemm_variant(count) is lib.tensorop_gemm_variant(-1) is None
print(count, *usual)
"""


def _alone(folder: Path, **said: str) -> tuple[list[int], str]:
    there = {**os.environ, "LD_LIBRARY_PATH": str(folder), **said}
    words = [sys.executable, "-c", ALONE, str(folder / "lib.so"), str(ROOT)]
    done = subprocess.run(words, env=there, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()], done.stderr


def test_each_variant_of_a_product_can_be_forced(built: tuple[Path, Any]) -> None:
    (count, *_), _ = _alone(built[0])
    assert count == 2 * sum(len(places) for _, places in built[1].values())


def test_the_environment_forces_a_variant_where_it_serves(calls: Calls) -> None:
    cubes = [
        {**CASE, "asked": 1, "seed": 0, "m": 512, "n": 512, "k": 512, "ta": a, "tb": b} for a, b in GEMM.on_device.keys
    ]
    usual = [of["chosen"] for of in calls(cubes)["cases"]]
    changed = set()
    for number in (1, 3, 5):
        found = [of["chosen"] for of in calls(cubes, TENSOROP_VARIANT=str(number))["cases"]]
        different = [place for place, of in enumerate(found) if of != usual[place]]
        assert len(different) <= 1, number  # of one layout; the others go by choice
        changed |= set(different)
    assert changed
    told = calls(cubes, TENSOROP_VARIANT="9999")
    assert [of["chosen"] for of in told["cases"]] == usual
    assert told["stderr"].count("TENSOROP_VARIANT=9999 is ignored: this library has variants 0 to ") == 1


def test_the_library_chooses_as_the_model_does_in_python(calls: Calls, built: Any) -> None:
    wanted = [
        {**CASE, "asked": 1, "seed": 0, "m": m, "n": n, "k": k, "ta": a, "tb": b}
        for (m, n, k), (a, b) in itertools.product(TUNED + OTHERS, GEMM.on_device.keys)
    ]
    told = calls(wanted)["cases"]
    for case, result in zip(wanted, told, strict=True):
        layout, places = built[1][case["ta"], case["tb"]]
        costs = layout.costs(case["m"], case["n"], case["k"])[places]
        best = {layout.candidate(places[at]).label for at in np.flatnonzero(costs == costs.min())}
        assert result["chosen"] in best, case


@pytest.mark.parametrize(
    ("said", "driver", "message"),
    [
        ({}, False, "libcuda.so.1 cannot be loaded: install NVIDIA's driver"),
        ({"FAKE_NO_DEVICE": "1"}, True, "the driver finds no such device"),
        ({"FAKE_CAPABILITY": "80"}, True, "the kernels are for another GPU architecture"),
    ],
)
def test_a_machine_without_the_device_is_told_why(
    calls: Calls, said: dict[str, str], driver: bool, message: str
) -> None:
    told = calls(driver=driver, **said)
    assert told["status"] != 0
    assert message in told["message"]


@pytest.mark.parametrize(
    ("wrong", "status"),
    [({"m": -1}, 1), ({"pad": -1}, 1), ({"f16": 7}, 3), ({"stream": 128}, 9), ({"m": 1 << 33, "asked": 0}, 4)],
)
def test_what_is_wrong_with_a_call_is_a_status_and_nothing_is_launched(
    calls: Calls, wrong: dict[str, int], status: int
) -> None:
    told = calls([{"bad": 1, **CASE, "m": 16, "n": 16, "k": 16, "seed": 0, **wrong}])
    assert told["cases"] == [{"status": status, "launches": 0}]


def test_the_library_needs_the_c_library_alone(built: Any) -> None:
    library = built[0] / "lib.so"
    found = facts(library)
    assert set(found.needed) <= {"libc.so.6", "libdl.so.2", "libpthread.so.0"}
    assert shared_objects.soname(library) == "libtensorop_gemm_cuda.so.0"
    forcing = ("variants", "variant", "force", "chosen_variant")
    assert found.exports == {
        f"tensorop_gemm_{name}"
        for name in ("create", "destroy", "workspace", "ex", "chosen", "message", "cuda_card", *forcing)
    }
    assert shared_objects.glibc(library) <= (2, 31)


def test_the_portable_platform_has_a_library_without_the_copy_engine() -> None:
    platform = platforms.load("cuda-wmma")
    content, _ = made(platform)
    files = library.sources(GEMM, platform, content.variants, content.images, {"schema": 1})
    assert b"TensorMap" not in files["library.c"].replace(b"cuTensorMapEncodeTiled", b"")
    assert library.build(files, GEMM, platform)[0].startswith(b"\x7fELF")


def test_without_nvcc_the_next_step_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tensorop.errors import MissingTool
    from tensorop.provision import nvcc

    monkeypatch.setattr(nvcc.shutil, "which", lambda name: "/usr/bin/g++" if name == "g++" else None)
    monkeypatch.setattr(nvcc, "_USUAL", tmp_path / "none")
    monkeypatch.setattr(nvcc, "_of_extra", lambda: None)
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path))
    with pytest.raises(MissingTool, match=r"is not in the cache.*offline") as caught:
        nvcc.nvcc(offline=True)
    assert "python -m tensorop.provision nvcc" in str(caught.value)
    monkeypatch.setattr(nvcc.shutil, "which", lambda name: None)
    with pytest.raises(MissingTool, match="nvcc needs g"):
        nvcc.nvcc()


@pytest.mark.parametrize("kernels", [extended(4), 1])
def test_a_stopped_job_keeps_the_kernels_that_are_built(
    kernels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four layouts, each of which has its first kernel before any has its second. Kernels are made up."""
    stop, turn = StopRequest(), threading.Semaphore(0)

    def built(text: str, *_: object) -> Built:
        if "struct Args" in text:  # no kernel beside those of families
            turn.acquire()
            if stop.asked:
                raise children.Cancelled
        return Built(text.encode()[:200], 0)

    monkeypatch.setattr(building, "build", built)
    monkeypatch.setattr(nvcc, "nvcc", lambda **_: Nvcc(Path("nvcc"), "13.0", "13.0"))
    job = Job("gemm", "cuda-sm90", ("bf16",), ((512, 512, 512),), "", trials=12, jobs=1, out=tmp_path / "gemm")
    running, seen = pipeline.run(job, stop), []
    with pytest.raises(Stopped) if kernels < 4 else contextlib.nullcontext():
        for event in running:
            seen.append(event)
            if isinstance(event, Phase) and event.name == "kernels":
                turn.release()
            if isinstance(event, Building):
                assert str(event).startswith(f"kernel {event.number} of {event.count}, about ")
                if event.number == kernels:
                    stop.ask()
                turn.release(job.trials or 1 if stop.asked else 1)
    assert (tmp_path / "gemm" / "lib").is_dir() == (kernels == 4)
    if kernels == 4:
        assert isinstance(seen[-1], Done)
        assert seen[-1].early
        manifest = json.loads((tmp_path / "gemm/share/tensorop/manifest.json").read_text())
        (part,) = by_operator(manifest).values()
        assert len(part["dtypes"]["bf16"]["variants"]) == 4
        _goes_on(job, monkeypatch)


def _goes_on(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stopped job builds the other kernels. One of them fails, and is not tried again after that."""
    texts: list[str] = []

    def built(text: str, *_: object) -> Built | Outcome:
        texts.append(text)
        return Outcome(Kind.OBJECT, "build", "spills") if len(texts) == 6 else Built(text.encode()[:200], 0)

    monkeypatch.setattr(building, "build", built)
    *_, done = pipeline.run(job)
    assert isinstance(done, Done)
    assert not done.early
    ended = events(job.out, "finished")
    kinds = [record["outcome"]["kind"] for record in ended]
    assert kinds.count("object-refused") == 1
    assert kinds.count("ok") >= 12
    assert len({record["key"] for record in ended}) == len(ended)
    failed, before = texts[5], len(texts)
    seen = list(pipeline.run(job))
    rounds = [event.detail for event in seen if isinstance(event, Phase) and event.name == "kernels"]
    assert [text.partition(",")[0] for text in rounds] == ["0 to build", "0 to build"]
    assert failed not in texts[before:]
    assert events(job.out, "finished") == ended
