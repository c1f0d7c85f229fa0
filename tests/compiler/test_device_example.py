"""The example of an operator for GPUs: its library and the controls of its kit, on this machine's processor."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tensorop.author import offline
from tensorop.commands import opened
from tensorop.cuda import backend as cuda
from tensorop.cuda import compile as building
from tensorop.cuda import job_kernels, kit, product
from tensorop.cuda.choose import Layout
from tensorop.cuda.compile import Built
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.library import LibraryVariant
from tensorop.cuda.product import Content
from tensorop.kits import device, export, here
from tensorop.package import publish
from tensorop.provision import nvcc
from tensorop.specs import operators, platforms
from tensorop.target import KitRequest
from tests.support.commands import ROOT
from tests.support.device_products import driver

EXAMPLE = ROOT / "examples" / "device-operator"


def test_its_judge_refuses_each_fault_and_explain_names_its_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, platform = operators.load("transpose", (EXAMPLE,)), platforms.load("cuda-sm90")
    templates = offline.templates(operator.folder, operator.name, suffix=cuda.SUFFIX)
    layout = Layout.of(operator.on_device, templates, device_numbers(platform), ())
    places = layout.chosen([(1000, 1000), (64, 64, 256)], 3)
    variants = [LibraryVariant(layout.candidate(place), "bf16", 0) for place in places]
    records = [job_kernels.variant_record(one.candidate, Built(b"x", 0), 0) for one in variants]
    facts = {"measured": False, "said": cuda.NOT_MEASURED}
    made = product.product(Content(operator, platform, variants, records, [b"pointers"], {0: "a kernel"}, facts))
    root = tmp_path / "transpose"
    publish.publish(publish.stage(made, root), root)
    driver(tmp_path, operator)
    monkeypatch.setattr(building, "build", lambda *_: Built(b"kit\0", 0))
    monkeypatch.setattr(kit, "SETTINGS", "8589934592 180000000 2000 300 9 300 24")  # calls of a soak
    monkeypatch.setattr(nvcc, "nvcc", lambda: None)
    of = opened.open_product(root, (EXAMPLE,))
    export.export(device.read(of), tmp_path / "kit", KitRequest(kinds=("control",)))
    there = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(["./run-kit"], cwd=tmp_path / "kit", env=there, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "kit/result.jsonl").read_text().splitlines()]
    refused = {row["of"]["control"]: row.get("message") for row in lines if "step" in row}
    assert refused.pop("oracle") is refused.pop("plain") is None
    assert len(refused) == 8
    assert all(refused.values())
    problem = operator.reference.problem("bf16", {"m": 1000, "n": 1000})
    explained = here.explain(of, problem)
    assert explained.features == {"m": 1000, "n": 1000, "batch": 1}
    assert explained.variant in range(len(variants))
