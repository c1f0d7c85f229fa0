"""attention for GPUs: its kernels executed on this machine's processor, its library, and the controls of its kit."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tensorop.commands import opened
from tensorop.cuda import attached, kernels, kit
from tensorop.cuda import compile as building
from tensorop.cuda.choose import Candidate
from tensorop.cuda.compile import Built
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.executed import Execution
from tensorop.cuda.family import Family
from tensorop.kits import device, export, here
from tensorop.kits.rows import DeviceMachine
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
from tensorop.provision import nvcc
from tensorop.provision.zig import zig_cc, zig_environment
from tensorop.render import render
from tensorop.specs import operators
from tensorop.target import KitRequest
from tests.support.attention_products import ATTENTION, DECODE, MMA, SM80, SM90, WGMMA, layout, made
from tests.support.classes import some
from tests.support.commands import ROOT
from tests.support.device_products import driver

PAGE = ROOT / "docs" / "how-to" / "use-attention.md"
SMALL: dict[str, int | str] = {
    "head": 64, "tile_n": 32, "warps": 4, "warp_m": 16, "stages": 2, "queries": "registers", "rows": "words",
    "lists": 1,
}  # fmt: skip
POINTS = [
    SMALL,
    {**SMALL, "queries": "shared", "rows": "elements"},
    {**SMALL, "warp_m": 32, "tile_n": 64, "queries": "shared", "lists": 0},
    {**SMALL, "head": 32, "tile_n": 64, "stages": 3},
    {**SMALL, "head": 256, "queries": "shared", "lists": 0},
    {**SMALL, "head": 256, "tile_n": 16, "queries": "shared", "rows": "elements"},
    {**SMALL, "head": 192},  # heads of V of 128
    {**SMALL, "head": 192, "tile_n": 16, "queries": "shared", "rows": "elements"},
]
PACKED: dict[str, int | str] = {
    "head": 64, "tile_n": 16, "warps": 1, "stages": 2, "queries": "registers", "least": 4,
    "lists": 1,
}  # fmt: skip
PACKED_POINTS = [
    PACKED,
    {**PACKED, "tile_n": 32, "warps": 2, "stages": 3, "queries": "shared", "lists": 0},
    {**PACKED, "head": 256, "queries": "shared"},
    {**PACKED, "warps": 4, "stages": 4},
    {**PACKED, "head": 192},
]


def verdict(
    point: dict[str, int | str],
    masked: int,
    dtype: str,
    spoil: tuple[str, str] = ("", ""),
    operator: Operator = ATTENTION,
) -> Outcome:
    """The verdict on a configuration. spoil: a text of the template, and what replaces it"""
    template = MMA if "warp_m" in point else DECODE
    assert spoil[0] in template.text
    template = dataclasses.replace(template, text=template.text.replace(*spoil) if spoil[0] else template.text)
    of = started(template, masked)
    return Execution(operator, SM80, Seed.draw()).verdict(Candidate(of, place_of(Point.of(point), of)), dtype)


@pytest.mark.covers("template attention/mma", "primitives cuda-mma")
@pytest.mark.parametrize(
    ("point", "masked", "dtype"),
    some(
        [
            (0, 1, "bf16"),
            (1, 0, "f16"),
            (2, 1, "f16"),
            (3, 0, "bf16"),
            (1, 1, "bf16"),
            (4, 0, "f16"),
            (5, 1, "bf16"),
            (6, 1, "bf16"),
            (7, 0, "f16"),
        ],
        lambda case: case[0] in (0, 1, 6),
    ),
)
def test_a_kernel_is_right(point: int, masked: int, dtype: str) -> None:
    found = verdict(POINTS[point], masked, dtype)
    assert found.ok, found


@pytest.mark.covers("template attention/decode")
@pytest.mark.parametrize(
    ("point", "masked", "dtype"),
    some(
        [(0, 1, "bf16"), (1, 0, "f16"), (2, 1, "f16"), (3, 0, "bf16"), (1, 1, "bf16"), (4, 1, "f16")],
        lambda case: case[0] < 2,
    ),
)
def test_a_kernel_of_packed_rows_is_right(point: int, masked: int, dtype: str) -> None:
    """With the combination of one to three parts of the keys."""
    found = verdict(PACKED_POINTS[point], masked, dtype)
    assert found.ok, found


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (("rows_times(total{{ i }}, factor{{ i }});", ""), Kind.WRONG),
        (("sum_by_rows(sum{{ i }}_{{ c }}, factor{{ i }});", ""), Kind.WRONG),
        (("copies_wait({{ stages - 2 }});", ""), Kind.WRONG),
        (("step < whole_from || ", ""), Kind.WRONG),
        (("low, high, t)", "low, high, t + 1)"), Kind.WRONG),
        (("rows_most(most{{ i }});", ""), Kind.WRONG),
        (("pages_{{ from }}", "pages_k"), Kind.CRASH),
        (("if (paged{{", "if (paged && turned{{"), Kind.CRASH),
        (("{{ row0 }} + r + j * {{ apart }}, {{ rows }}", "r + j * {{ apart }}, {{ rows }}"), Kind.WRONG),
    ],
    ids=[
        "sum-not-rescaled", "output-not-rescaled", "no-wait", "no-left-mask", "padding-counts", "not-the-largest",
        "pages-of-the-other-operand", "pages-not-read", "always-the-first-keys-of-a-cache",
    ],
)  # fmt: skip
def test_a_kernel_with_a_fault_is_refused(spoil: tuple[str, str], kind: Kind) -> None:
    assert verdict(SMALL, 1, "bf16", spoil).kind is kind


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (("        copies_wait({{ stages - 2 }});\n        __sync", "        __sync"), None),
        (("rows_times(total, factor);", ""), Kind.WRONG),
        (("repeats, first", "1, first"), Kind.WRONG),
        (("rows_value(shift", "rows_value(total"), Kind.WRONG),
        (("low, high, t)", "low, high, t + 1)"), Kind.WRONG),
        (("pages_{{ from }}", "pages_k"), Kind.CRASH),
        (("row = key0 + r{{", "row = r{{"), Kind.WRONG),
        (("'key0 + %d' % tile_n, 't'", "'key0', 't'"), Kind.WRONG),
    ],
    ids=[
        "no-wait", "sum-not-rescaled", "heads-are-queries", "no-largest-score", "padding-counts",
        "pages-of-the-other-operand", "always-the-first-keys-of-a-cache", "pages-of-the-step-before",
    ],
)  # fmt: skip
def test_a_kernel_of_packed_rows_with_a_fault_is_refused(spoil: tuple[str, str], kind: Kind | None) -> None:
    """None: rows that have not arrived are numbers of any size, and a page's number may be among them."""
    assert verdict(PACKED, 1, "bf16", spoil).kind in ((kind,) if kind else (Kind.WRONG, Kind.CRASH))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("combined.h.j2", "sum += by *", "sum +="),
        ("combined.h.j2", "from + j * p.slices > last ? 0.f : ", ""),
        ("combined.h.j2", "+ all.most)", ")"),
        ("combined.h.j2", "by_b * b.sum", "b.sum"),
        ("combined.h.j2", "(q0 + query) * p.o_row", "query * p.o_row"),
        ("packed_tile.h.j2", "int64_t(all.steps) * part / parts)", "int64_t(all.steps) * part / parts) + 1"),
        ("packed_tile.h.j2", "at % repeats * q_head", "at / repeats * q_head"),
    ],
    ids=["parts-not-rescaled", "part-forgotten", "wrong-log-sum-exp", "slices-not-rescaled", "another-sequence",
         "step-between-parts-lost", "wrong-head"],
)  # fmt: skip
def test_a_fault_around_packed_rows_is_refused(file: str, old: str, new: str, tmp_path: Path) -> None:
    shutil.copytree(ATTENTION.folder, tmp_path / "templates/attention")
    path = tmp_path / "templates/attention/device" / file
    assert path.read_text().count(old) == 1
    path.write_text(path.read_text().replace(old, new))
    assert verdict(PACKED, 1, "bf16", operator=operators.load("attention", (tmp_path,))).kind is not Kind.OK


def platform_of(template: KernelTemplate) -> Platform:
    return SM90 if template is WGMMA else SM80


def started(template: KernelTemplate, masked: int) -> Family:
    return Family(ATTENTION.on_device, template, {**device_numbers(platform_of(template)), "masked": masked})


def place_of(start: Point, of: Family) -> int:
    same = np.logical_and.reduce([of.grid[name] == value for name, value in dict(start).items()])
    assert same.any(), start
    return int(np.argmax(same))


STARTS = [(template, start) for template in (MMA, DECODE, WGMMA) for start in template.seed_configurations]


def test_every_start_is_legal_and_another_kernel() -> None:
    families = {one.name: started(one, 0) for one in (MMA, DECODE, WGMMA)}
    for template, start in STARTS:
        place_of(start, families[template.name])
    assert len({(one.name, families[one.name].early(start)) for one, start in STARTS}) == len(STARTS)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("number", range(len(STARTS)))
def test_a_start_passes_the_gate(number: int) -> None:
    template, start = STARTS[number]
    of = started(template, number % 2)
    dtype, numbers = ("bf16", "f16")[number % 2], of.numbers(place_of(start, of))
    text = kernels.text(ATTENTION, platform_of(template), template, dtype, numbers)
    assert isinstance(text, str), (start, text)


def test_a_kernel_is_chosen_only_for_heads_that_it_serves() -> None:
    of = layout(1)
    costs = of.costs(1, 4, 4, 1024, 1024, 80)
    heads = of.parts[0].family.grid["head"]
    assert (np.isfinite(costs[: heads.size]) == (heads >= 80)).all()
    assert not np.isfinite(costs[heads.size :]).any()  # too many queries for packed rows
    places = of.chosen([(1, 4, 4, 1024, 1024, 64), (1, 4, 4, 1024, 1024, 80)], 6)
    first = of.candidate(places[0]).numbers
    assert (first["head"], first["align_in"]) == (128, 2)  # it serves every call
    assert of.candidate(int(np.argmin(of.costs(1, 4, 4, 1024, 1024, 64)))).numbers["head"] == 64


@pytest.mark.parametrize("masked", [0, 1])
def test_few_queries_against_many_keys_have_blocks_for_many_multiprocessors(masked: int) -> None:
    of = layout(masked)

    def best(*sizes: int) -> tuple[Candidate, dict[str, int]]:
        one = of.candidate(int(np.argmin(of.costs(*sizes))))
        return one, one.family.terms(one.number, ATTENTION.on_device.numbers(sizes))

    for sizes in (
        (1, 32, 8, 1, 4096, 128),
        (8, 64, 8, 1, 32768, 128),
        (64, 32, 8, 4, 4096, 64),
        (1, 8, 8, 1, 8192, 256),
    ):
        one, terms = best(*sizes)
        assert one.template is DECODE
        assert 1 <= terms["splits"] <= 128
        assert terms["blocks"] == sizes[0] * sizes[2] * terms["splits"] >= 64  # there are 108 multiprocessors
    assert best(64, 32, 8, 1, 4096, 128)[0].numbers["tile_m"] == 16  # of those that wait for memory, the least work
    for sizes in ((1, 16, 16, 2048, 2048, 128), (16, 16, 16, 256, 256, 64)):
        assert best(*sizes)[0].template is MMA
    of = layout(masked, hopper=True)
    assert best(32, 64, 8, 8, 8192, 64)[0].numbers["tile_m"] == 64  # all rows that share keys: they are read once


def test_a_layout_has_the_masks_that_differ_least_from_the_usual_ones() -> None:
    call, reference = ATTENTION.on_device, ATTENTION.reference
    found = {key: call.flags(key, reference.flags, {"layout": "bshd"}) for key in call.keys}
    assert {(one["left"], one["right"]) for one in found.values()} == {(-1, -1), (-1, 0)}
    assert (found[1,]["left"], found[1,]["right"], found[1,]["layout"]) == (-1, 0, "bshd")


POWERS = """#define __forceinline__ inline
static float two_to(float x) { return exp2f(x); }
static float log_two(float x) { return log2f(x); }
"""
# What a library passes to its kernels, computed: each block takes its share of the rows of a head, and of the keys.
PLAIN = """
extern "C" __global__ void tensorop_kernel(Args p) {
    const int parts = p.splits ? p.splits : 1, repeats = p.splits ? p.shared : 1, heads = p.heads / repeats;
    const int part = blockIdx.x % parts, tile = blockIdx.x / parts % p.tiles;
    const int of_head = blockIdx.x / parts / p.tiles % heads;
    const int64_t batch = blockIdx.x / parts / p.tiles / heads, at = batch * heads + of_head;
    const int64_t q0 = p.starts_q ? p.starts_q[batch] : 0, k0 = p.starts_k ? p.starts_k[batch] : 0;
    const int s = p.starts_q ? p.starts_q[batch + 1] - q0 : p.s;
    const int t = p.starts_k ? p.starts_k[batch + 1] - k0 : p.lengths ? p.lengths[batch] : p.t;
    const int all = p.s * repeats, rows = (all + p.tiles - 1) / p.tiles;
    const int from = int64_t(t) * part / parts, to = int64_t(t) * (part + 1) / parts;
    for (int row = tile * rows; row < (tile + 1) * rows && row < s * repeats && threadIdx.x == 0; ++row) {
        const int i = row / repeats, head = of_head * repeats + row % repeats, of_k = head / p.shared;
        const uint16_t *const q = (const uint16_t *)p.q + batch * p.q_batch + (q0 + i) * p.q_row + head * p.q_head;
        const uint16_t *const k = (const uint16_t *)p.k + of_k * p.k_head;
        const uint16_t *const v = (const uint16_t *)p.v + of_k * p.v_head;
        double most = -HUGE_VAL, total = 0, sums[256] = {0};
        for (int64_t j = from; j < to; ++j) {
            const int64_t page = p.pages ? p.pages[batch * p.pages_row + (j >> p.page)] : batch;
            const int64_t key = p.pages ? j & ((1 << p.page) - 1) : k0 + j, own = i + (p.end ? t - s : 0);
            double score = 0;
            for (int c = 0; c < p.d; ++c)
                score += read(q, c, F16) * read(k, page * p.k_batch + key * p.k_row + c, F16);
            score *= (p.turned ? -1 : 1) * p.scale;
            if (j < own + p.low || j > own + p.high)
                continue;
            const double by = score > most ? exp2(most - score) : 1;
            most = score > most ? score : most, total *= by;
            const double w = exp2(score - most);
            total += w;
            for (int c = 0; c < p.dv; ++c)
                sums[c] = sums[c] * by + w * read(v, page * p.v_batch + key * p.v_row + c, F16);
        }
        if (p.splits) {
            const int64_t place = (at * all + row) * parts + part;
            for (int c = 0; c < p.dv; ++c)
                ((float *)p.o)[place * p.dv + c] = sums[c];
            p.lse[2 * place] = most, p.lse[2 * place + 1] = total;
            continue;
        }
        uint16_t *const o = (uint16_t *)p.o + batch * p.o_batch + q0 * p.o_row + head * p.o_head;
        for (int c = 0; c < p.dv; ++c)
            write(o, i * p.o_row + c, total > 0 ? sums[c] / total : 0, F16);
        if (p.lse)
            p.lse[batch * p.lse_batch + head * p.lse_head + q0 + i] =
                total > 0 ? float(log(total) + most * log(2.)) : -HUGE_VALF;
    }
}

struct Half {
    uint16_t bits;
    explicit Half(float x) { write(&bits, 0, x, F16); }
};
extern "C" __global__ void tensorop_combine(Combine p) {
    const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at < p.rows * p.d)
        combined<Half>(p, at / p.d, at % p.d, 0);
}
"""


def pretended(folder: Path, more: str = "") -> None:
    """A driver whose kernels compute what a library passes on."""
    own = render.environment(kernels.folders(ATTENTION))
    around = (render.text(own, f"device/{name}.h.j2", {}) for name in ("args", "combine", "combined"))
    driver(folder, ATTENTION, POWERS + "\n".join(around) + PLAIN + more)


def test_arrays_are_passed_on_as_they_lie(tmp_path: Path) -> None:
    root = made(tmp_path / "attention", "f16", b"kit\0")
    pretended(tmp_path)
    there = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "tests.support.attention_arrays", str(root)]
    done = subprocess.run(words, env=there, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "as expected\n"
    source = "".join(re.findall(r"```c\n(.*?)```", PAGE.read_text(), re.DOTALL)[1:])
    command = [*zig_cc(), "-Wall", "-Werror", f"-I{root}/include", "-xc", "-c", "-", "-o", str(tmp_path / "page.o")]
    subprocess.run(command, input=source, text=True, check=True, env={**os.environ, **zig_environment()})


@pytest.mark.covers("platform cuda-sm80")
def test_the_judge_of_a_kit_refuses_each_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And none of a library whose kernels are right, in each form of a call."""
    root = made(tmp_path / "attention", "f16", b"kit\0")
    pretended(tmp_path)
    monkeypatch.setattr(building, "build", lambda *_: Built(b"kit\0", 0))
    monkeypatch.setattr(nvcc, "nvcc", lambda: None)
    monkeypatch.setattr(kit, "SETTINGS", "8589934592 180000000 2000 300 9 300 24")  # calls of a soak
    monkeypatch.setattr(kit, "verified", lambda _: "2x4x2x5x40x16x24 1x2x1x3x1x8x8 1x1x1x1x20000x8x8")
    of = opened.open_product(root)
    export.export(device.read(of), tmp_path / "kit", KitRequest(kinds=("control", "verify")))
    there = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(["./run-kit"], cwd=tmp_path / "kit", env=there, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "kit/result.jsonl").read_text().splitlines()]
    verified = [row for row in lines if row.get("kind") == "verify"]
    assert [row["outcome"] for row in verified] == ["ok"] * 11, verified
    assert verified[0]["cases"] == 3 * 2 * 10  # shapes, one of them with many parts; layouts; forms
    refused = {row["of"]["control"]: row.get("message") for row in lines if row.get("kind") == "control"}
    assert refused.pop("oracle") is refused.pop("plain") is None
    assert len(refused) == 6 + len(ATTENTION.on_device.faults)
    assert all(refused.values())
    sizes = {"b": 1, "h": 4, "g": 4, "s": 1024, "t": 1024, "d": 80, "dv": 80}
    explained = here.explain(of, ATTENTION.reference.problem("f16", sizes, {"right": 0}))
    assert explained.features == {**sizes, "masked": 1}
    assert "head=128" in next(one.template for one in explained.variants if one.number == explained.variant)


# A product by cuBLASLt: column-major matrices, by their types there.
PRODUCT = """
struct Product {
    int64_t rows, cols, depth, batch, ld[3], stride[3], turned[2], type[2];
    float alpha, beta;
    const uint16_t *a, *b;
    uint16_t *c;
};
static int format(int64_t type) { return type == 0 ? FLOAT : type == 14 ? BF16 : F16; }
extern "C" __global__ void tensorop_product(Product p) {
    for (int64_t at = 0; at < p.batch * p.rows * p.cols; ++at) {
        const int64_t one = at / p.rows / p.cols, i = at % p.rows, j = at / p.rows % p.cols;
        const uint16_t *const a = p.a + one * p.stride[0], *const b = p.b + one * p.stride[1];
        double sum = 0;
        for (int64_t k = 0; k < p.depth; ++k)
            sum += read(a, p.turned[0] ? i * p.ld[0] + k : k * p.ld[0] + i, format(p.type[0])) *
                   read(b, p.turned[1] ? k * p.ld[1] + j : j * p.ld[1] + k, format(p.type[0]));
        write(p.c, one * p.stride[2] + j * p.ld[2] + i, p.alpha * sum, format(p.type[1]));
    }
}
"""


def test_a_kit_compares_with_two_products_and_a_softmax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which are judged, and are said not to be the peer; where they are wrong or too large there is no ratio."""
    root = made(tmp_path / "attention", "f16", b"kit\0")
    pretended(tmp_path, PRODUCT)
    own, library = str(ROOT / "tests/support/fake_cublaslt.c"), str(tmp_path / "libcublasLt.so")
    build = [*zig_cc(), "-shared", "-fPIC", own, "-o", library, "-ldl"]
    subprocess.run(build, check=True, env={**os.environ, **zig_environment()})
    monkeypatch.setattr(building, "build", lambda *_: Built(b"kit\0", 0))
    monkeypatch.setattr(nvcc, "nvcc", lambda: None)
    monkeypatch.setattr(kit, "SETTINGS", "8589934592 2000 1 0 3 300 24")
    monkeypatch.setattr(attached, "attached", lambda _: "a GPU")
    for name, value in {"LD_LIBRARY_PATH": str(tmp_path), "TENSOROP_KIT_CUBLASLT": library}.items():
        monkeypatch.setenv(name, value)
    of, name = opened.open_product(root), "cublaslt_softmax"
    # Batches or heads of K in one product; heads of Q with one head of K in one or in several; more queries than keys.
    shapes = (1, 4, 2, 9, 40, 16, 16), (3, 4, 2, 1, 70, 24, 40), (2, 3, 1, 5, 33, 8, 8), (1, 2, 2, 40, 30, 16, 16)
    bench = here.bench(of, shapes, ("f16",), 1)
    assert not bench.absent
    limit = "not the peer: two cuBLASLt products and a softmax"
    assert bench.baselines[name].remarks == (limit,)
    assert device._best(DeviceMachine.model_validate(bench.machine)) == f"cuBLASLt's best ({limit})"
    assert [row.verdicts for row in bench.rows] == [{"ours": "ok", name: "ok", f"{name}-top1": "ok"}] * len(shapes)
    assert all({name, f"{name}-top1", "best"} == row.ratios.keys() for row in bench.rows)
    monkeypatch.setenv("FAKE_LT_WRONG", "1")
    monkeypatch.setenv("FAKE_LEFT", str(64 << 10))
    bench = here.bench(of, (shapes[1], shapes[3]), ("f16",), 0)
    assert "exceed the error bound" in bench.rows[0].verdicts[name]
    assert [row.ratios for row in bench.rows] == [{}, {}]
    why = "its scores need 35 KiB, more than the 16 KiB for them"
    assert bench.absent == {f"{name} at b1h2g2s40t30d16 f16": why}


def test_hopper_has_a_kernel_by_tensor_maps_for_calls_that_these_can_describe(tmp_path: Path) -> None:
    """And a library whose host side makes the maps."""
    of = layout(0, hopper=True)

    def best(*sizes: int) -> KernelTemplate:
        return of.candidate(int(np.argmin(of.costs(*sizes)))).template

    for sizes in (
        (4, 16, 16, 4096, 4096, 128),
        (16, 32, 32, 1024, 1024, 64),
        (4, 8, 8, 4096, 4096, 256),
        (4, 16, 16, 4096, 4096, 192, 128),
    ):
        assert best(*sizes) is WGMMA
    assert best(4, 16, 16, 1024, 1024, 68) is MMA  # rows of 136 bytes
    assert best(8, 32, 8, 1, 4096, 128) is DECODE
    assert of.candidate(of.chosen([(4, 16, 16, 4096, 4096, 128)], 4)[0]).template is MMA  # it serves every call
    root = made(tmp_path / "attention", "bf16", b"kit\0", hopper=True)
    manifest = json.loads((root / "share/tensorop/manifest.json").read_text())
    held = manifest["operators"]["attention"]["dtypes"]["bf16"]["variants"]
    assert {"wgmma", "mma", "decode"} == {one["template"] for one in held}
    assert b"cuTensorMapEncodeTiled" in next(root.rglob("*.so*")).read_bytes()
    pretended(tmp_path)
    there = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "tests.support.attention_chosen", str(root)]
    done = subprocess.run(words, env=there, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "dense: wgmma lists=0",
        "ragged: wgmma lists=1",
        "of keys alone: wgmma lists=1",
        "ragged, rows at no 16 bytes: mma lists=1",
        "lengths: wgmma lists=1",
        "pages: mma lists=1",
    ], done.stderr
