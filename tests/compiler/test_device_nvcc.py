"""Kernels for a device through nvcc, and a whole job without a device."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import numpy as np
import pytest

from tensorop import pipeline
from tensorop.author import offline
from tensorop.commands import opened
from tensorop.cuda import backend as cuda
from tensorop.cuda import compile as device
from tensorop.cuda import kernels
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.family import Family
from tensorop.errors import MissingTool
from tensorop.events import Done, Phase
from tensorop.model.job import Job
from tensorop.model.trial import Kind, Outcome
from tensorop.provision import nvcc
from tensorop.specs import operators, platforms
from tensorop.toolchain.shared_library import facts
from tests.support.classes import extended
from tests.support.commands import ROOT, Watched, events, journal

GOLDEN = ROOT / "tests" / "golden" / "gemm"


def _lacks_nvcc() -> bool:
    try:
        nvcc.nvcc(offline=True)
    except MissingTool:
        return True
    return False


pytestmark = [
    pytest.mark.nvcc,
    pytest.mark.skipif(_lacks_nvcc(), reason="no nvcc or g++: python -m tensorop.provision nvcc"),
]


@pytest.mark.covers("template gemm/wgmma", "template attention/wgmma", "primitives cuda-wgmma")
@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("cuda-sm90-wgmma-bf16", "sm_90a"),
        ("../attention/cuda-sm90-wgmma-bf16", "sm_90a"),
        ("cuda-sm90-wmma-f16", "sm_90a"),
        ("cuda-sm90-small-bf16", "sm_90a"),
        ("cuda-sm90-mma-bf16", "sm_80 sm_90a"),
        ("cuda-sm90-tf32-f32_3xtf32", "sm_80 sm_90a"),
        ("cuda-sm90-tf32_wgmma-f32_3xtf32", "sm_90a"),
        ("cuda-sm90-wmma-f16", "sm_75 sm_80 compute_80"),
    ],
)
def test_the_golden_kernels_compile_without_a_spill(name: str, codes: str) -> None:
    built = device.build((GOLDEN / f"{name}.cu").read_text(), codes, nvcc.nvcc())
    assert not isinstance(built, Outcome), (built.message, built.log)
    assert 0 < built.registers <= 255
    assert b"tensorop_kernel" in built.image or built.image[:4] == b"P\xedU\xba"  # a fat binary, packed or not


def test_attention_with_long_heads_packed_rows_and_their_combination_compile_without_a_spill() -> None:
    operator, (ampere, hopper) = operators.load("attention"), map(platforms.load, ("cuda-sm80", "cuda-sm90"))
    templates = offline.templates(operator.folder, "attention", suffix=cuda.SUFFIX)
    texts: list[tuple[str, object]] = [
        ("sm_80 sm_90", (GOLDEN.parent / "attention/cuda-sm80-decode-bf16.cu").read_text()),
        ("sm_90", kernels.second(operator, ["bf16"])["COMBINE"]),
    ]
    for template in templates:  # with offsets and pages, which take registers
        codes, platform = ("sm_90a", hopper) if template.name == "wgmma" else ("sm_80", ampere)
        of = Family(operator.on_device, template, {**device_numbers(platform), "masked": 1})
        start = dict(next(one for one in template.seed_configurations if (one["head"], one["lists"]) == (256, 1)))
        longest = np.logical_and.reduce([of.grid[tunable] == value for tunable, value in start.items()])
        texts.append((codes, kernels.text(operator, platform, template, "bf16", of.numbers(int(np.argmax(longest))))))
    for codes, text in texts:
        assert isinstance(text, str), text
        built = device.build(text, codes, nvcc.nvcc())
        assert not isinstance(built, Outcome), (built.message, built.log)
        assert 0 < built.registers <= 255


def test_kernels_with_a_float_c_compile_without_a_spill() -> None:
    operator, platform = operators.load("gemm"), platforms.load("cuda-sm90")
    kinds = (("wgmma", "f16_f32", 1, "sm_90a"), ("wmma", "f16_f32", 0, "sm_75"), ("fma", "f32", 2, "sm_80 sm_90a"))
    crowded = (("fma", "f32", 4, "sm_90a"), ("fma_wide", "f32", 0, "sm_80 sm_90a"))
    for name, dtype, place, codes in (*kinds, *crowded):  # splits K; any; the most sums; 4 blocks; fma_wide
        templates = offline.templates(operator.folder, "gemm", suffix=cuda.SUFFIX)
        template = next(one for one in templates if one.name == name)
        of = Family(operator.on_device, template, {**device_numbers(platform, dtype), "a_along_m": 0, "b_along_k": 1})
        start = dict(template.seed_configurations[place])
        same = np.logical_and.reduce([of.grid[tunable] == value for tunable, value in start.items()])
        text = kernels.text(operator, platform, template, dtype, of.numbers(int(np.argmax(same))))
        assert isinstance(text, str), text
        assert "float *" in text
        built = device.build(text, codes, nvcc.nvcc())
        assert not isinstance(built, Outcome), (built.message, built.log)


def test_a_spill_is_a_failed_build() -> None:
    text = (GOLDEN / "cuda-sm90-wmma-f16.cu").read_text()
    crowded = text.replace("__launch_bounds__(256, 1)", "__launch_bounds__(256, 6)")
    assert crowded != text
    built = device.build(crowded, "sm_90a", nvcc.nvcc())
    assert isinstance(built, Outcome)
    assert built.kind is Kind.OBJECT
    assert "bytes" in built.message


def test_a_serialised_product_is_a_failed_build() -> None:
    """Sums that are read between products make the compiler wait for each."""
    text = (GOLDEN / "cuda-sm90-wgmma-bf16.cu").read_text()
    read = text.replace(
        "wgmma_commit();\n                //", "sum[0] += 1;\n                wgmma_commit();\n                //"
    )
    assert read != text
    built = device.build(read, "sm_90a", nvcc.nvcc())
    assert isinstance(built, Outcome)
    assert built.kind is Kind.OBJECT
    assert "C75" in built.message


def test_what_is_no_cuda_is_told_with_nvccs_words() -> None:
    built = device.build("not CUDA;\n", "sm_90a", nvcc.nvcc())
    assert isinstance(built, Outcome)
    assert built.kind is Kind.COMPILE
    assert "error" in built.message


@pytest.mark.parametrize("platform", ["cuda-wmma", extended("cuda-sm90")])
def test_a_killed_job_without_a_device_goes_on_and_ends_with_a_whole_product(platform: str, tmp_path: Path) -> None:
    words = ("gemm", "--platform", platform, "--dtype", "bf16,f16", "--shapes", "512x512x512,127x129x131")
    killed = Watched(*words, "--trials", "16", "--out", "out", cwd=tmp_path)
    killed.until(lambda: bool(events(tmp_path / "out", "finished")))
    killed.press(signal.SIGKILL)
    killed.finish()
    before = {record["key"] for record in events(tmp_path / "out", "finished")}
    assert not (tmp_path / "out" / "lib").exists()
    shapes = ((512, 512, 512), (127, 129, 131))
    job = Job("gemm", platform, ("bf16", "f16"), shapes, "", trials=16, out=tmp_path / "out")
    *_, done = pipeline.run(job)
    assert isinstance(done, Done)
    session = next(n for n, record in enumerate(journal(job.out)) if record["event"] == "resumed")
    started = [record["key"] for record in journal(job.out)[session:] if record["event"] == "started"]
    finished = [record["key"] for record in events(job.out, "finished")]
    assert len(finished) == len({*finished}) == len(before) + len(started)
    assert not before & {*started}
    assert done.library is not None
    assert "not measured" in done.notes[0]
    (card,) = opened.cards(done.out).values()
    assert card["facts"]["measured"] is False
    assert card["facts"]["ptxas"]
    assert set(card["dtypes"]) == {"bf16", "f16"}
    manifest = json.loads((done.out / "share/tensorop/manifest.json").read_text())
    assert "none passed" not in (done.out / "share/tensorop/report.html").read_text()
    files = {path.relative_to(done.out).as_posix() for path in done.out.rglob("*") if path.is_file()}
    assert {"include/tensorop/gemm_cuda.h", "lib/cmake/TensorOp/TensorOpConfig.cmake"} <= files
    assert set(manifest["files"]) <= files
    assert set(facts(done.library).needed) <= {"libc.so.6", "libdl.so.2", "libpthread.so.0"}
    again = list(pipeline.run(job))  # the same again builds no kernel, and gives the same bits
    assert isinstance(again[-1], Done)
    assert [record["key"] for record in events(job.out, "finished")] == finished
    assert any(isinstance(event, Phase) and event.detail.startswith("0 to build") for event in again)
    assert json.loads((done.out / "share/tensorop/manifest.json").read_text()) == manifest


def test_ctrl_c_among_the_kernels_leaves_a_library_of_those_built_or_none(tmp_path: Path) -> None:
    job = Watched("gemm", "--platform", "cuda-sm90", "--jobs", "2", "--out", "out", cwd=tmp_path)
    job.until("kernels: ")
    job.press()
    ended = job.finish()
    assert "Traceback" not in ended.stderr
    assert ended.status in (3, 130), ended.stderr
    built = ended.status == 3
    assert ("so there is no library" in ended.stderr) != built
    assert (tmp_path / "out" / "lib").exists() == built
