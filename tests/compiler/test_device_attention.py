"""attention for GPUs: its kernels executed on this machine's processor, its library, and the controls of its kit."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tensorop.author import offline
from tensorop.commands import opened
from tensorop.cuda import backend as cuda
from tensorop.cuda import compile as building
from tensorop.cuda import job_kernels, kernels, product
from tensorop.cuda.choose import Candidate, Layout
from tensorop.cuda.compile import Built
from tensorop.cuda.executed import Execution
from tensorop.cuda.family import Family
from tensorop.cuda.library import LibraryVariant
from tensorop.cuda.product import Content
from tensorop.kits import device, export, here
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
from tensorop.package import publish
from tensorop.provision import nvcc
from tensorop.specs import operators, platforms
from tensorop.target import KitRequest
from tests.support.classes import some
from tests.support.commands import ROOT
from tests.support.device_products import driver

ATTENTION, SM80 = operators.load("attention"), platforms.load("cuda-sm80")
(MMA,) = offline.templates(ATTENTION.folder, "attention", suffix=cuda.SUFFIX)
SMALL: dict[str, int | str] = {
    "head": 64, "tile_n": 32, "warps": 4, "warp_m": 16, "stages": 2, "queries": "registers", "rows": "words",
}  # fmt: skip
POINTS = [
    SMALL,
    {**SMALL, "queries": "shared", "rows": "elements"},
    {**SMALL, "warp_m": 32, "tile_n": 64, "queries": "shared"},
    {**SMALL, "head": 32, "tile_n": 64, "stages": 3},
]


def verdict(point: dict[str, int | str], masked: int, dtype: str, spoil: tuple[str, str] = ("", "")) -> Outcome:
    """The verdict on a configuration. spoil: a text of the template, and what replaces it"""
    assert spoil[0] in MMA.text
    template = dataclasses.replace(MMA, text=MMA.text.replace(*spoil) if spoil[0] else MMA.text)
    of = Family(ATTENTION.on_device, template, {**cuda.device_numbers(SM80), "masked": masked})
    same = np.logical_and.reduce([of.grid[name] == value for name, value in point.items()])
    return Execution(ATTENTION, SM80, Seed.draw()).verdict(Candidate(of, int(np.flatnonzero(same)[0])), dtype)


@pytest.mark.covers("template attention/mma", "primitives cuda-mma")
@pytest.mark.parametrize(
    ("point", "masked", "dtype"),
    some([(0, 1, "bf16"), (1, 0, "f16"), (2, 1, "f16"), (3, 0, "bf16"), (1, 1, "bf16")], lambda case: case[0] < 2),
)
def test_a_kernel_is_right(point: int, masked: int, dtype: str) -> None:
    found = verdict(POINTS[point], masked, dtype)
    assert found.ok, found


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "spoil",
    [
        ("rows_times(total{{ i }}, factor{{ i }});", ""),
        ("sum_by_rows(sum{{ i }}_{{ c }}, factor{{ i }});", ""),
        ("copies_wait({{ stages - 2 }});", ""),
        ("step < whole_from || ", ""),
        ("low, high, t)", "low, high, t + 1)"),
        ("rows_most(most{{ i }});", ""),
    ],
    ids=["sum-not-rescaled", "output-not-rescaled", "no-wait", "no-left-mask", "padding-counts", "not-the-largest"],
)
def test_a_kernel_with_a_fault_is_refused(spoil: tuple[str, str]) -> None:
    assert verdict(SMALL, 1, "bf16", spoil).kind is Kind.WRONG


def test_every_start_is_legal_and_passes_the_gate() -> None:
    for number, start in enumerate(MMA.seed_configurations):
        of = Family(ATTENTION.on_device, MMA, {**cuda.device_numbers(SM80), "masked": number % 2})
        same = np.logical_and.reduce([of.grid[name] == value for name, value in dict(start).items()])
        assert same.any(), start
        text = kernels.text(ATTENTION, SM80, MMA, ("bf16", "f16")[number % 2], of.numbers(int(np.argmax(same))))
        assert isinstance(text, str), (start, text)


@cache
def layout(masked: int) -> Layout:
    return Layout.of(ATTENTION.on_device, [MMA], cuda.device_numbers(SM80), (masked,))


def test_a_kernel_is_chosen_only_for_heads_that_it_serves() -> None:
    of = layout(1)
    costs = of.costs(1, 4, 4, 1024, 1024, 80)
    heads = of.parts[0].family.grid["head"]
    assert (np.isfinite(costs) == (heads >= 80)).all()
    places = of.chosen([(1, 4, 4, 1024, 1024, 64), (1, 4, 4, 1024, 1024, 80)], 6)
    first = of.candidate(places[0]).numbers
    assert (first["head"], first["align_in"]) == (128, 2)  # it serves every call
    assert of.candidate(int(np.argmin(of.costs(1, 4, 4, 1024, 1024, 64)))).numbers["head"] == 64


def test_a_layout_has_the_masks_that_differ_least_from_the_usual_ones() -> None:
    call, reference = ATTENTION.on_device, ATTENTION.reference
    found = {key: call.flags(key, reference.flags, {"layout": "bshd"}) for key in call.keys}
    assert {(one["left"], one["right"]) for one in found.values()} == {(-1, -1), (-1, 0)}
    assert (found[1,]["left"], found[1,]["right"], found[1,]["layout"]) == (-1, 0, "bshd")


def made(folder: Path, dtype: str, image: bytes) -> Path:
    """A product with six variants, whose kernels are made up."""
    variants = []
    for masked in (0, 1):
        places = layout(masked).chosen([(1, 4, 4, 1024, 1024, 128), (1, 4, 4, 64, 64, 64)], 3)
        variants += [LibraryVariant(layout(masked).candidate(place), dtype, 0) for place in places]
    records = [job_kernels.variant_record(one.candidate, Built(b"x", 0), 0) for one in variants]
    facts = {"measured": False, "said": cuda.NOT_MEASURED}
    whole = product.product(Content(ATTENTION, SM80, variants, records, [image], {0: "a kernel"}, facts))
    publish.publish(publish.stage(whole, folder), folder)
    return folder


# What a library passes to its kernels, computed: each block takes its share of the rows of a head.
PLAIN = """
extern "C" __global__ void tensorop_kernel(Args p) {
    const int rows = (p.s + p.tiles - 1) / p.tiles, first_row = blockIdx.x % p.tiles * rows;
    const int head = blockIdx.x / p.tiles % p.heads, of_k = head / p.shared;
    const int64_t batch = blockIdx.x / p.tiles / p.heads;
    const uint16_t *const q = (const uint16_t *)p.q + batch * p.q_batch + head * p.q_head;
    const uint16_t *const k = (const uint16_t *)p.k + batch * p.k_batch + of_k * p.k_head;
    const uint16_t *const v = (const uint16_t *)p.v + batch * p.v_batch + of_k * p.v_head;
    uint16_t *const o = (uint16_t *)p.o + batch * p.o_batch + head * p.o_head;
    for (int i = first_row; i < first_row + rows && i < p.s && threadIdx.x == 0; ++i) {
        double total = 0, sums[128] = {0};
        for (int j = 0; j < p.t; ++j) {
            double score = 0;
            for (int c = 0; c < p.d; ++c)
                score += read(q, i * p.q_row + c, F16) * read(k, j * p.k_row + c, F16);
            const double w = j < int64_t(i) + p.low || j > int64_t(i) + p.high
                                 ? 0 : exp2((p.turned ? -1 : 1) * p.scale * score);
            total += w;
            for (int c = 0; c < p.d; ++c)
                sums[c] += w * read(v, j * p.v_row + c, F16);
        }
        for (int c = 0; c < p.d; ++c)
            write(o, i * p.o_row + c, total > 0 ? sums[c] / total : 0, F16);
        if (p.lse)
            p.lse[(batch * p.heads + head) * p.s + i] = total > 0 ? float(log(total)) : -HUGE_VALF;
    }
}
"""


def test_arrays_are_passed_on_as_they_lie(tmp_path: Path) -> None:
    root = made(tmp_path / "attention", "f16", b"kit\0")
    driver(tmp_path, ATTENTION, (ATTENTION.folder / "device/args.h.j2").read_text() + PLAIN)
    there = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "tests.support.attention_arrays", str(root)]
    done = subprocess.run(words, env=there, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "as expected\n"


@pytest.mark.covers("platform cuda-sm80")
def test_the_judge_of_a_kit_refuses_each_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = made(tmp_path / "attention", "bf16", b"pointers")
    driver(tmp_path, ATTENTION)
    monkeypatch.setattr(building, "build", lambda *_: Built(b"kit\0", 0))
    monkeypatch.setattr(nvcc, "nvcc", lambda: None)
    of = opened.open_product(root)
    export.export(device.read(of), tmp_path / "kit", KitRequest(kinds=("control",)))
    there = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(["./run-kit"], cwd=tmp_path / "kit", env=there, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "kit/result.jsonl").read_text().splitlines()]
    refused = {row["of"]["control"]: row.get("message") for row in lines if "step" in row}
    assert refused.pop("oracle") is refused.pop("plain") is None
    assert len(refused) == 5 + len(ATTENTION.on_device.faults)
    assert all(refused.values())
    sizes = {"b": 1, "h": 4, "g": 4, "s": 1024, "t": 1024, "d": 80}
    explained = here.explain(of, ATTENTION.reference.problem("bf16", sizes, {"right": 0}))
    assert explained.features == {**sizes, "masked": 1}
    assert "head=128" in next(one.template for one in explained.variants if one.number == explained.variant)
