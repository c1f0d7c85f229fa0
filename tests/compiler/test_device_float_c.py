"""Products for a device whose C is float, and A and B have 16 bits or are float: calls, kit, and from Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tensorop
from tensorop.commands import opened
from tensorop.cuda import compile as building
from tensorop.cuda import kit, product
from tensorop.cuda.compile import Built
from tensorop.errors import UsageError
from tensorop.kits import device, export, result, retune
from tensorop.package import publish
from tensorop.provision import nvcc
from tensorop.specs import platforms
from tensorop.target import KitRequest
from tests.support.commands import ROOT
from tests.support.device_products import SUPPORT, driver, made

CASE = {"alpha": 1, "beta": 0, "batch": 1, "pad": 0, "shift": 0, "workspace": 1, "column": 0, "ta": 0, "tb": 0}
CASE |= {"m": 37, "n": 56, "k": 65, "seed": 0, "f16": 2}


KINDS = {"bf16_f32": 2, "f16_f32": 3, "f32": 4}  # numbers of the types


@pytest.fixture(scope="module", params=[("bf16_f32", "f16_f32"), ("f32",)], ids=",".join)
def dtypes(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return tuple(request.param)


@pytest.fixture(scope="module")
def root(dtypes: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A product and, above it, a driver."""
    root = tmp_path_factory.mktemp("device") / "gemm"
    content, _ = made(platforms.load("cuda-sm90"), most=2, dtypes=dtypes)
    publish.publish(publish.stage(product.product(content), root), root)
    driver(root.parent)
    return root


@pytest.fixture(scope="module")
def calls(root: Path) -> Callable[..., Any]:
    def call(*cases: dict[str, int]) -> Any:
        library = root / "lib" / "libtensorop_gemm_cuda.so"
        there = {**os.environ, "LD_LIBRARY_PATH": str(root.parent)}
        words = [sys.executable, str(SUPPORT / "device_calls.py"), str(library), json.dumps(cases)]
        done = subprocess.run(words, env=there, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["cases"]

    return call


def test_calls_are_right_whatever_their_layout_and_alignment(
    calls: Callable[..., Any], dtypes: tuple[str, ...]
) -> None:
    each = [
        {
            **CASE,
            "f16": KINDS[dtypes[n % len(dtypes)]],
            "column": n // 2 % 2,
            "ta": n // 4 % 2,
            "tb": n // 8 % 2,
            "pad": (0, 8, 3)[n % 3],
        }
        | {"shift": (0, 8, 1)[n // 3 % 3], "beta": n % 3, "batch": 1 + n % 2 * 2, "workspace": n // 5 % 2}
        for n in range(32)
    ]
    for case, told in zip(each, calls(*each), strict=True):
        assert told["status"] == 0, case
        assert told["right"], case
        assert told["kept"], case
        assert told["inputs"], case


def test_another_type_and_half_a_float_are_refused(calls: Callable[..., Any], dtypes: tuple[str, ...]) -> None:
    case = {**CASE, "bad": 1, "f16": KINDS[dtypes[0]]}
    for kind in {*range(6)} - {KINDS[dtype] for dtype in dtypes}:
        assert calls({**case, "f16": kind}) == [{"status": 3, "launches": 0}]
    assert calls({**case, "off": 2}) == [{"status": 2, "launches": 0}]


def test_the_header_says_which_types_there_are(root: Path, dtypes: tuple[str, ...]) -> None:
    header = (root / "include/tensorop/gemm_cuda.h").read_text()
    for dtype in ("bf16", "f16", *KINDS):
        assert (f"#define TENSOROP_GEMM_CUDA_HAS_{dtype.upper()} 1" in header) == (dtype in dtypes)
    assert ("A, B and C are float" if "f32" in dtypes else "type, C is float") in header


FROM_PYTHON = """
import sys, warnings
import numpy as np, pytest
of_floats = "f32" in sys.argv
sys.argv = ["", sys.argv[1]]
from tests.support import device_arrays as here
one = 1 if of_floats else here.bits(np.ones(1), 1)
new = (lambda n: np.zeros(n, np.float32)) if of_floats else here.memory
a, b = (here.ByDlpack(new(33 * 65).reshape(f)) for f in ((33, 65), (65, 33)))
a.view[...] = b.view[...] = one
c = here.ByDlpack(np.zeros((33, 33), np.float32))
assert here.gemm(a, b, c, alpha=0.5, stream=64) is c
assert (c.view == 32.5).all()
if of_floats:
    with pytest.raises(TypeError, match="a is float16, this library holds float32: convert it"):
        here.gemm(here.ByDlpack(here.memory(33 * 65).reshape(33, 65)), b, c, stream=64)
with pytest.raises(TypeError, match="c is float16, of float(16|32) it must be float32"):
    here.gemm(a, b, here.ByDlpack(here.memory(33 * 33).reshape(33, 33)), stream=64)
here.Owned.__module__ = "cupy.fake"
here.Owned.dtype = "float32" if of_floats else "float16"
sys.modules["cupy"] = cupy = here.library(stream=64)
cupy.empty = lambda shape, dtype: here.Owned(np.zeros(shape, dtype), code=2 if dtype == "float32" else 1)
a, b = (here.Owned(x.view) for x in (a, b))
made = here.gemm(a, b)
assert made.view.dtype == np.float32 and (made.view == 65).all()
"""


def test_from_python_the_result_is_float(root: Path, dtypes: tuple[str, ...]) -> None:
    there = {**os.environ, "LD_LIBRARY_PATH": str(root.parent), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", FROM_PYTHON, str(root), *dtypes], env=there, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    with pytest.warns(UserWarning, match="is not verified"):
        assert tensorop.load(root).dtypes == dtypes


@pytest.mark.extended
def test_its_kit_judges_floats(root: Path, dtypes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "SETTINGS", "32768 20000 1 0 3 60 24")
    monkeypatch.setattr(kit, "verified", lambda _: "17x9x20x2")
    monkeypatch.setattr(building, "build", lambda *_: Built(b"kit\0", 0))
    monkeypatch.setattr(nvcc, "nvcc", lambda: None)
    of = device.read(opened.open_product(root))
    other, own = ("f64", "f32") if "f32" in dtypes else ("f32", "f16")
    with pytest.raises(UsageError, match=f"--dtype {other}: the library supports {', '.join(dtypes)}"):
        export.export(of, root.parent / "none", KitRequest(((64, 48, 40),), dtypes=(other,)))
    export.export(of, root.parent / "kit", KitRequest(((64, 48, 40),), dtypes=(own,), layouts=("NN",)))
    there = {**os.environ, "LD_LIBRARY_PATH": str(root.parent), "TENSOROP_KIT_CUBLASLT": "/none"}
    done = subprocess.run(["./run-kit"], cwd=root.parent / "kit", env=there, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = [row for row in result.lines(root.parent / "kit" / "result.jsonl") if "step" in row]
    assert {row["outcome"] for row in told} == {"ok"}
    refused = [row.get("message") for row in told if row["kind"] == "control" and row["of"]["control"] != "oracle"]
    assert refused.pop(0) is None  # the plain kernel's
    assert len(refused) == 16
    assert all(refused)
    timed = [row for row in told if row["kind"] == "time"]
    assert {row["of"]["dtype"] for row in timed} == {dtypes[-1]}
    done_here = retune.retune(of, result.read(root.parent / "kit" / "result.jsonl", of))
    assert set(done_here.record["choice"]) == {dtypes[-1]}
