"""Kernels for a device, as far as no compiler is needed: their texts, what the gate refuses, what the model chooses.

A difference in tests/golden that is meant is accepted with --update-golden.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorop import pipeline
from tensorop.author import offline
from tensorop.cuda import backend as cuda
from tensorop.cuda import corrected, kernels
from tensorop.cuda.choose import Candidate, Layout
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.family import Family
from tensorop.cuda.library import LibraryVariant
from tensorop.device_target import TimedProblem
from tensorop.errors import SpecError, UsageError
from tensorop.model.device import device_problem
from tensorop.model.expression import evaluate
from tensorop.model.job import Job
from tensorop.model.trial import Outcome
from tensorop.specs import operators, platforms, primitives, pymodule
from tests.support.classes import extended

GOLDEN = Path(__file__).parents[1] / "golden" / "gemm"
GEMM = operators.load("gemm")
CALL = GEMM.on_device
SM90 = platforms.load("cuda-sm90")
TEMPLATES = {template.name: template for template in offline.templates(GEMM.folder, "gemm", suffix=cuda.SUFFIX)}
DEVICE = device_numbers(SM90)
SHAPES = [(4096, 4096, 4096), (1000, 1000, 1000), (16, 4096, 4096), (127, 129, 131)]
STARTS = [
    ("wgmma", "bf16"), ("wmma", "f16"), ("small", "bf16"), ("mma", "bf16"), ("fma", "f32"), ("fma_wide", "f32"),
    ("tf32", "f32_3xtf32"), ("tf32_wgmma", "f32_3xtf32"),
]  # fmt: skip
# families, with one of their types
OF_FLOATS = {"fma": "f32", "fma_wide": "f32", "tf32": "f32_3xtf32", "tf32_wgmma": "f32_3xtf32"}


@cache
def family(name: str, a_along_m: int = 0, b_along_k: int = 1, c_size: int = 2) -> Family:
    given = device_numbers(SM90, OF_FLOATS[name]) if name in OF_FLOATS else {**DEVICE, "c_size": c_size}
    return Family(CALL, TEMPLATES[name], {**given, "a_along_m": a_along_m, "b_along_k": b_along_k})


@cache
def layout_of(b_along_k: int = 1) -> Layout:
    return Layout.of(CALL, [one for one in TEMPLATES.values() if one.name not in OF_FLOATS], DEVICE, (0, b_along_k))


def number_of(of: Family, point: dict[str, int | str]) -> int:
    """Where a configuration is in the grid."""
    same = np.logical_and.reduce([of.grid[name] == value for name, value in point.items()])
    assert same.any(), f"{point} is not legal"
    return int(np.argmax(same))


def require_golden(path: Path, text: str | Outcome, request: pytest.FixtureRequest) -> None:
    assert isinstance(text, str), text
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "dtype"), STARTS)
def test_the_source_is_the_golden_one(name: str, dtype: str, request: pytest.FixtureRequest) -> None:
    of = family(name)
    numbers = of.numbers(number_of(of, dict(TEMPLATES[name].seed_configurations[0])))
    text = kernels.text(GEMM, SM90, TEMPLATES[name], dtype, numbers)
    require_golden(GOLDEN / f"cuda-sm90-{name}-{dtype}.cu", text, request)


@pytest.mark.parametrize(("of", "name"), [("cuda-sm80", "decode"), ("cuda-sm90", "wgmma")])
def test_the_source_for_attention_is_the_golden_one(of: str, name: str, request: pytest.FixtureRequest) -> None:
    attention, platform = operators.load("attention"), platforms.load(of)
    templates = offline.templates(attention.folder, "attention", suffix=cuda.SUFFIX)
    template = next(one for one in templates if one.name == name)
    each = Family(attention.on_device, template, {**device_numbers(platform), "masked": 1})
    numbers = each.numbers(number_of(each, dict(template.seed_configurations[0])))
    text = kernels.text(attention, platform, template, "bf16", numbers)
    require_golden(GOLDEN.parent / f"attention/{of}-{name}-bf16.cu", text, request)


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_wmma_reads_tiles_as_what_lies_in_shared_memory(dtype: str) -> None:
    """From an address of any kind the compiler asks for each word what it is, which halves the speed."""
    of = family("wmma", 1, 0)
    text = kernels.text(GEMM, SM90, TEMPLATES["wmma"], dtype, of.numbers(0))
    assert isinstance(text, str), text
    assert f"wmma.load.a.sync.aligned.col.m16n16k16.shared.{dtype} " in text
    assert f"wmma.load.b.sync.aligned.row.m16n16k16.shared.{dtype} " in text
    assert "load_matrix_sync" not in text


def test_every_start_is_legal_in_the_usual_layout() -> None:
    for name, template in TEMPLATES.items():
        for start in template.seed_configurations:
            number_of(family(name), dict(start))


def test_shipped_families_render_everywhere() -> None:
    """In all layouts, with either size of C; types of one size differ by their names. The gate takes half a second of
    a text."""
    rng = np.random.default_rng(0)
    for name, (a, b), c in itertools.product(TEMPLATES, CALL.keys, ("", kernels.FLOAT_C)):
        dtype = OF_FLOATS.get(name, ("bf16", "f16")[a ^ b] + c)
        of = family(name, a, b, kernels.c_size(dtype))
        number = int(rng.integers(of.size))
        text = kernels.text(GEMM, SM90, TEMPLATES[name], dtype, of.numbers(number))
        assert isinstance(text, str), (name, str(of.point(number)), text)


def test_copies_of_floats_are_at_most_256_of_k_ahead() -> None:
    """And tiles as wide: the gate refuses more, and a refused text of ours ends the job."""
    grid = family("fma").grid
    assert ((grid["stages"] - 2) * grid["tile_k"]).max() < 256
    assert grid["tile_n"].max() <= 256
    assert (grid["turned"] * grid["tile_k"]).max() < 64  # ptxas spills the addresses of more pieces


@pytest.mark.parametrize(
    "point",
    [*map(extended, ({"turns": 1}, {"store": "pitch"}, {"store": "sums"})), {"split_k": 2}, {"store": "wave"}],
    ids=str,
)
def test_what_a_tunable_adds_to_a_family_passes_the_gate(point: dict[str, int | str]) -> None:
    """Few draws meet these: groups that take turns, rows that are no words, parts of k, a last wave."""
    of = family("wgmma")
    text = kernels.text(GEMM, SM90, TEMPLATES["wgmma"], "bf16", of.numbers(number_of(of, point)))
    assert isinstance(text, str), text


def test_a_float_c_is_stored_from_registers_and_counts_twice_in_memory() -> None:
    assert set(family("wgmma", c_size=4).grid["store"]) == {"registers", "sums"}
    assert all(any("c_size" in part.names for part in family(name).model.values()) for name in TEMPLATES)
    call = {"m": 16384, "n": 16384, "k": 16, "batch": 1}  # C is most of what memory has to take
    wide, narrow = family("wmma", c_size=4), family("wmma")
    start = dict(TEMPLATES["wmma"].seed_configurations[1])
    assert wide.predicted(call)[number_of(wide, start)] > 1.5 * narrow.predicted(call)[number_of(narrow, start)]


def test_a_family_asks_for_primitives() -> None:
    wmma = platforms.load("cuda-wmma")
    assert kernels.missing(SM90, TEMPLATES["wgmma"]) == ()
    assert "wgmma" in kernels.missing(wmma, TEMPLATES["wgmma"])
    assert kernels.missing(wmma, TEMPLATES["wmma"]) == ()
    assert kernels.missing(platforms.load("avx2"), TEMPLATES["wmma"])


def test_fragments_have_each_element_once() -> None:
    """What a group's registers hold together is a whole matrix."""
    held = primitives.load("cuda-wgmma").collectives
    row, col = held["wgmma"].holds["d"]
    places = {
        (evaluate(row, {"thread": t, "register": r}), evaluate(col, {"thread": t, "register": r}))
        for t in range(128)
        for r in range(32)
    }
    assert places == set(itertools.product(range(64), range(64)))


def test_each_primitive_has_a_test_for_a_gpu() -> None:
    place = Path(__file__).parents[2] / "benchmarks" / "cuda" / "primitives.py"
    told = pymodule.load(place, "_primitives_on_a_gpu")
    texts = dict(told.TEXTS.findall(place.with_suffix(".cuh").read_text()))
    for one in (*SM90.primitives, *platforms.load("cuda-sm80").primitives[:1]):
        tests = told.TESTS[one.name]
        assert {name for test in tests.values() for name in told.controls(test)} == set(one.collectives)
        for label, test in tests.items():
            text = told.text_of(texts, one.name, label)
            text += texts[f"wgmma_{label}_first"] if test.after_first else ""
            assert all(name in text for name in told.controls(test)), label
            variant = told.VARIANTS_OF[one.name][-1]
            given = test.given(variant)
            left = test.left(variant, given, np.full(test.size, told.POISON, np.uint8))
            assert left is not None
    assert tuple(SM90.primitives[0].collectives["wgmma"].holds["d"]) == told.HOLDS


def test_every_alignment_is_served_and_more_variants_are_no_slower() -> None:
    layout = layout_of()
    few, more = layout.chosen(SHAPES, 2), layout.chosen(SHAPES, 6)
    first = layout.candidate(few[0])
    assert (first.numbers["align_ab"], first.numbers["align_c"]) == (2, 2)
    assert more[: len(few)] == few
    costs = np.array([layout.costs(*shape) for shape in SHAPES])
    assert (costs[:, more].min(axis=1) <= costs[:, few].min(axis=1)).all()
    without = layout.chosen(SHAPES, 6, layout.alike(more[1]))
    assert more[1] not in without


def test_where_no_kernel_helps_there_is_room_for_what_the_model_may_be_wrong_about() -> None:
    """The fastest kernel of a shape is often the model's second or fifth: what is added is another kernel each."""
    layout = layout_of()
    found = layout.chosen(SHAPES, 64)
    assert len(set(found)) == len(found) >= 64 == len({int(layout.kernels[place]) for place in found})
    kernels_of = [frozenset(layout.alike(place)) for place in found]
    added = kernels_of[-20:]
    assert len(set(added)) == 20
    cycles = layout.costs(*SHAPES[0])
    left = np.setdiff1d(np.arange(cycles.size), np.array(sorted(set().union(*kernels_of))))
    assert sum(cycles[place] <= cycles[left].min() for place in found[-20:]) >= 20 // len(SHAPES)


def test_kernels_that_were_fastest_somewhere_are_carried_where_there_is_room() -> None:
    layout = layout_of()
    seeds = layout.seeds()
    assert len(seeds) >= len(TEMPLATES["wgmma"].seed_configurations)
    found = {*layout.chosen(SHAPES, 46)}
    assert all(found & {*layout.alike(place)} for place in seeds)
    assert seeds[1] not in layout.chosen(SHAPES, 42, layout.alike(seeds[1]))


def test_large_products_go_by_the_copy_engine() -> None:
    layout = layout_of()
    best = layout.candidate(int(np.argmin(layout.costs(4096, 4096, 4096))))
    assert (best.template.name, best.numbers["align_c"]) == ("wgmma", 16)
    assert layout.candidate(int(np.argmin(layout.costs(4095, 4095, 4095)))).numbers["align_c"] == 2


def test_many_small_products_go_by_blocks_that_share_a_multiprocessor() -> None:
    for along_k in (0, 1):
        layout = layout_of(along_k)
        best = layout.candidate(int(np.argmin(layout.costs(32, 32, 32, 4096))))
        assert best.template.name == "small"
        assert int(best.numbers["resident"]) * int(best.numbers["threads"]) >= 896
        best = layout.candidate(int(np.argmin(layout.costs(64, 64, 64, 4096))))
        assert int(best.numbers["resident"]) >= 2
        assert int(best.numbers["resident"]) * (int(best.numbers["shared"]) + 1024) <= DEVICE["shared_all"]


def test_columns_that_are_no_multiple_of_64_come_in_chunks_of_32() -> None:
    wide = {"tile_m": 128, "tile_n": 320, "cluster_m": 2, "cluster_n": 1, "groups_m": 1, "groups_n": 2}
    for along_k in (0, 1):
        of = family("wgmma", 0, along_k)
        assert of.numbers(number_of(of, dict(wide)))["chunk_b"] == (64 if along_k else 32)


def test_configurations_of_one_kernel_are_alike() -> None:
    layout = Layout.of(CALL, [TEMPLATES["wgmma"]], DEVICE, (0, 1))
    alike = [layout.candidate(place) for place in layout.alike(0)]
    assert {one.numbers["raster"] for one in alike} == {4, 8, 16}
    assert len({str(kernels.text(GEMM, SM90, one.template, "bf16", one.numbers)) for one in alike}) == 1
    parts = next(at for at in range(len(layout.kernels)) if layout.candidate(at).numbers["split_k"] == 3)
    shared = {one.numbers["split_k"]: one for one in map(layout.candidate, layout.alike(parts))}
    assert shared.keys() == {*range(2, 9)}
    assert len({str(kernels.text(GEMM, SM90, shared[at].template, "bf16", shared[at].numbers)) for at in (2, 8)}) == 1


def test_candidates_of_a_chosen_kernel_do_not_count_as_kernels() -> None:
    layout = layout_of()
    found = layout.chosen(SHAPES, 12)
    assert len({int(layout.kernels[place]) for place in found}) == 12 <= len(found) <= 24


@pytest.mark.parametrize(("operator", "dtypes", "says"), [("gemm", ("f64",), "f64"), ("conv2d", ("bf16",), "conv2d")])
def test_what_no_kernel_serves_is_refused_by_name(
    operator: str, dtypes: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    job = Job(operator, "cuda-sm90", dtypes=dtypes, shapes=((64,) * 3,), out=tmp_path / "out")
    with pytest.raises(UsageError, match=says):
        list(pipeline.run(job))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("platform", "given", "says"),
    [
        ("cuda-sm90", {"dtypes": ("bf16",), "math": "tf32"}, "for bf16 inputs, platform 'cuda-sm90' has no other way"),
        ("cuda-sm80", {"dtypes": ("f32",), "math": "fp8"}, "for f32 inputs, platform 'cuda-sm80' has tf32 and 3xtf32"),
        ("avx2", {"dtypes": ("f32",), "math": "tf32"}, "for f32 inputs, platform 'avx2' has no other way"),
        ("cuda-sm90", {"dtypes": ("f32", "f16")}, "a GPU library has types of one size, and these have 2"),
        ("cuda-wmma", {"dtypes": ("f32",)}, "has no kernels for f32; it has bf16, f16"),
    ],
)
def test_what_floats_cannot_be_on_a_gpu_is_refused(
    platform: str, given: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=says):
        list(pipeline.run(Job("gemm", platform, shapes=((64,) * 3,), out=tmp_path / "out", **given)))


def test_few_tiles_divide_k_where_that_is_faster() -> None:
    of = family("fma")
    number = number_of(of, dict(TEMPLATES["fma"].seed_configurations[1]))
    found = [
        of.terms(number, CALL.numbers(shape))["parts"] for shape in ((64, 64, 8192), (4096, 4096, 4096), (8, 8, 8))
    ]
    assert found[0] > 1
    assert found[1:] == [1, 1]


def test_the_usual_dtypes_are_those_with_kernels() -> None:
    assert Job.usual_dtypes(operators.load("gemm"), SM90) == ("bf16", "f16")
    assert Job.usual_dtypes(operators.load("gemm"), platforms.load("avx2")) == ("f32", "f64")


def test_a_model_that_names_nothing_known_is_refused() -> None:
    broken = dataclasses.replace(TEMPLATES["wmma"], model={"cycles": "m * nonsense"})
    with pytest.raises(SpecError, match=r"key 'model.cycles'.*unknown name 'nonsense'"):
        Family(CALL, broken, {**DEVICE, "a_along_m": 0, "b_along_k": 0}).predicted({"m": 1, "n": 1, "k": 1, "batch": 1})


def test_the_model_is_near_what_was_measured() -> None:
    """Its constants were fitted by hand to these rows: this says that they still are, not how well it predicts."""
    folder = Path(__file__).parents[2] / "benchmarks" / "cuda"
    kept = {"BY_ENGINE": "engine", "FROM_REGISTERS": "registers", "REALIGNED": "pitch"}
    names = ["tile_m", "tile_n", "stages", "groups_m", "groups_n", "cluster_m", "cluster_n", "split_k", "turns", "swap"]
    built = [line.split() for line in (folder / "kernels" / "sm90.list").read_text().splitlines() if line[:1] == ":"]
    points = {
        f"sm90{name}": {**dict(zip(names, map(int, values), strict=True)), "store": kept[store]}
        for name, _, *values, store, _ in built
    }
    errors = []
    for row in map(json.loads, (folder / "h200.jsonl").read_text().splitlines()):
        point = points.get(row["ours"].removesuffix("-e").removesuffix("-f"))
        if point is None or point["swap"] or row["dtype"] != "bf16" or row["layout"] not in ("NN", "TN"):
            continue  # beside copies
        if point["split_k"] > 1:
            continue  # a family's kernel adds up otherwise now
        batch, m, n, k = ([1] + [int(side) for side in row["shape"].split("x")])[-4:]
        of = family("wgmma", 0, int(row["layout"] == "TN"))
        cycles = of.predicted({"m": m, "n": n, "k": k, "batch": batch})[number_of(of, point)]
        errors.append(abs(math.log(cycles / (row["ours_us"] * (SM90.device or {})["clock_mhz"]))))
    assert len(errors) > 30
    assert np.mean(errors) < 0.15, np.mean(errors)


def test_the_model_ranks_what_was_measured() -> None:
    """Of 282 configurations of 13 shapes, by rows that its terms were fitted to."""
    file = Path(__file__).parents[2] / "benchmarks" / "cuda" / "h200-configurations.jsonl"
    first, *rows = map(json.loads, file.read_text().splitlines())
    of = [family("wgmma", 0, 0), family("wgmma", 1, 1)]  # C' = B' A' where a kernel swaps
    each = []
    for label in first["configurations"]:
        point: dict[str, int | str] = {
            name: int(value) if value.isdigit() else value for name, value in (w.split("=") for w in label.split()[1:])
        }
        each.append((int(point["swap"]), number_of(of[int(point["swap"])], point)))
    whole = np.array(["split_k=1" in label for label in first["configurations"]])  # other kernels split K now
    one, sixteen = [], []
    for row in rows:
        m, n, k = (int(side) for side in row["shape"].split("x"))
        cycles = [family_.predicted({"m": m, "n": n, "k": k, "batch": 1}) for family_ in of]
        order = np.argsort([cycles[swap][at] for swap, at in each], kind="stable")
        took = np.array(row["screened_us"])[order[whole[order]]]
        one.append(took.min() / took[0])
        sixteen.append(took.min() / took[:16].min())
    assert np.exp(np.mean(np.log(one))) > 0.85
    assert np.exp(np.mean(np.log(sixteen))) > 0.96


@pytest.mark.parametrize(
    ("name", "file", "most"), [("wgmma", "h200-kernels.jsonl", 1.06), ("fma", "h200-f32.jsonl", 1.02)]
)
def test_the_model_ranks_the_kernels_that_came_after(name: str, file: str, most: float) -> None:
    """Of 122 problems of bf16 and 41 of f32, NN and TN, by rows that its terms were fitted to."""
    read = (Path(__file__).parents[2] / "benchmarks" / "cuda" / file).read_text()
    first, *rows = map(json.loads, read.splitlines())
    points = [
        {name: int(value) if value.isdigit() else value for name, value in (w.split("=") for w in label.split())}
        for label in first["configurations"]
    ]
    lost, places = [], dict[tuple[int, str], int]()
    for row in rows:
        along_k = int(row["layout"] == "TN")
        of = [family(name, 0, along_k), family(name, 1 - along_k, 1)]  # C' = B' A' where a kernel swaps
        cycles = [family_.predicted({name: row[name] for name in ("m", "n", "k", "batch")}) for family_ in of]
        costs = {}
        for number in row["us"]:
            point = points[int(number)]
            swap = int(point.get("swap", 0))
            if (along_k, number) not in places:
                places[along_k, number] = number_of(of[swap], point)
            costs[number] = cycles[swap][places[along_k, number]]
        lost.append(math.log(row["us"][min(costs, key=costs.__getitem__)] / min(row["us"].values())))
    assert np.exp(np.mean(lost)) < most


CORRECTIONS = corrected.Corrections(CALL, (), (), "")


def place(sizes: tuple[int, ...], a_along_m: int = 0) -> corrected.ProblemPlace:
    return CORRECTIONS.place(device_problem(CALL, "gemm", "", sizes, (a_along_m, 0)))


def test_which_rows_are_off_16_bytes_is_a_bit_an_operand_as_the_library_has_it() -> None:
    assert place((33, 50, 65)).unaligned == 7
    assert place((40, 33, 80)).unaligned == 2 + 4
    assert place((33, 64, 80), a_along_m=1).unaligned == 1


def test_what_was_measured_on_a_problem_outweighs_its_neighbours() -> None:
    """On one problem, the first kernel takes 1.25 times as long as the model says."""
    of = family("mma")
    fastest = np.argsort(of.predicted(CALL.numbers((1024, 1024, 1024))))[:2]
    two = [LibraryVariant(Candidate(of, int(number)), "bf16", 0) for number in fastest]
    known = corrected.Corrections(CALL, two, (), "")
    sizes = (1024, 1024, 1024), (1000, 1000, 1000), (16, 1024, 1024), (1, 1, 16384)
    problems = [device_problem(CALL, "gemm", "bf16", one, (0, 1)) for one in sizes]
    alone = [known.costs(one) for one in problems]
    row = TimedProblem(problems[0], {0: 1.25 * alone[0][0], 1: alone[0][1]})
    known = dataclasses.replace(known, rows=[row])
    own, near, small, far = (
        after[0] / after[1] / (before[0] / before[1])
        for before, after in zip(alone, map(known.costs, problems), strict=True)
    )
    assert own == pytest.approx(1.25, rel=1e-5)
    assert own > near > 1.15 > small > far > 1
    assert far < 1.05
    assert known.judged("bf16")["off"]["after"] == known.judged("bf16")["off"]["before"]  # without its only row
