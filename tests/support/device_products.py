"""Products for a device whose kernels are made up, and the driver that computes what each would."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorop import paths
from tensorop.author import offline
from tensorop.cuda import backend as cuda
from tensorop.cuda import compile as building
from tensorop.cuda import job_kernels, kernels, kit
from tensorop.cuda.choose import Layout
from tensorop.cuda.compile import Built
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.library import LibraryVariant
from tensorop.cuda.product import Content
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Value
from tensorop.provision import nvcc
from tensorop.provision.nvcc import Nvcc
from tensorop.provision.zig import zig_cc, zig_environment
from tensorop.specs import operators
from tests.support.commands import ROOT

GEMM = operators.load("gemm")
CALL = GEMM.on_device
TEMPLATES = offline.templates(GEMM.folder, "gemm", suffix=cuda.SUFFIX)
SUPPORT = ROOT / "tests" / "support"
TUNED = [(4096, 4096, 4096), (512, 512, 512), (16, 4096, 4096), (128, 4096, 4096), (1001, 1001, 1001), (127, 129, 131)]
BATCH, DEEP = (32, 32, 32, 4096), ((104, 1040, 5840), (1664, 136, 12368))
ABSENT = dict.fromkeys(("swap", "by_engine", "overlapped", "by_sums", "by_wave"), 0)
ABSENT |= dict.fromkeys(("cluster_m", "cluster_n", "cluster", "matrices"), 1)


def image(template: KernelTemplate, numbers: Mapping[str, Value], dtype: str) -> bytes:
    """A kernel as the fake driver reads it."""
    numbers = {**ABSENT, **numbers}
    names = ["a_along_m", "b_along_k", "swap", "tile_m", "tile_n", "cluster_m", "cluster_n", "cluster", "by_engine"]
    kind = dtype.startswith("f16") + 2 * (kernels.c_size(dtype) == 4) + 4 * (dtype == "f32")
    said = [template.reads["operands"], *(str(numbers[name]) for name in names), str(kind)]
    said += [str(numbers[name]) for name in ("matrices", "overlapped")]
    said.append(str(int(numbers["by_sums"]) + 2 * int(numbers["by_wave"])))
    return " ".join(said).encode() + b"\0"


def second(text: str) -> bytes:
    """A kernel beside those of families, from its text; a kit's own for another text."""
    names = [
        name for name, part in (("copy", "Copy"), ("sums", "Sums"), ("add", "Combine")) if f"struct {part} {{" in text
    ]
    kind = next((i for i, of_c in enumerate(("bf16", "f16", "f32")) if f"namespace of_{of_c} {{" in text), 0)
    return f"{names[0]}{' 0' * 9} {kind} 0 0 0".encode() + b"\0" if names else b"kit\0"


def without_nvcc(patch: pytest.MonkeyPatch) -> list[str]:
    """Jobs get made-up kernels in place of those that nvcc makes. Returns the texts of those built, as they come."""
    known, built, text_of = {}, [], kernels.text

    def text(operator: Operator, platform: Platform, template: KernelTemplate, dtype: str, numbers: Any) -> Any:
        found = text_of(operator, platform, template, dtype, numbers)
        known[found] = image(template, numbers, dtype)
        return found

    def build(text: str, *_: object) -> Built:
        if text in known:
            built.append(text)
        return Built(known[text] if text in known else second(text), 0)

    patch.setattr(kernels, "text", text)
    patch.setattr(building, "build", build)
    patch.setattr(nvcc, "nvcc", lambda **_: Nvcc(Path("nvcc"), "13.0", "13.0"))
    return built


def made(
    platform: Platform, most: int = 8, dtypes: tuple[str, ...] = ("bf16", "f16"), epilogue: bool = False, wave: int = 0
) -> tuple[Content, dict[tuple[int, int], tuple[Layout, list[int]]]]:
    """What a library of made-up kernels is made of, and the places each layout's variants have. wave: one divides it"""
    templates = [template for template in TEMPLATES if kernels.set_of(platform, template, dtypes[0])]
    chosen, variants, images = {}, [], []
    for key in CALL.keys:
        layout = Layout.of(CALL, templates, device_numbers(platform, dtypes[0], epilogue), key)
        chosen[key] = layout, layout.chosen([*TUNED, BATCH, *DEEP], most)
        chosen[key][1].extend({*smallest_of_wave(layout)} - {*chosen[key][1]} if wave else ())
        for place, dtype in itertools.product(chosen[key][1], dtypes):
            one = layout.candidate(place)
            variants.append(LibraryVariant(one, dtype, len(images)))
            images.append(image(one.template, one.numbers, dtype))
    images += [second(text) for text in kernels.second(GEMM, dtypes).values()]
    records = [job_kernels.variant_record(v.candidate, Built(images[v.image], 0), v.image) for v in variants]
    facts = {"measured": False, "said": cuda.NOT_MEASURED, "epilogue": epilogue}
    return Content(GEMM, platform, variants, records, images, {0: "a kernel"}, facts), chosen


def smallest_of_wave(layout: Layout) -> list[int]:
    """The place of a kernel that divides its last wave of tiles, and whose tiles are the smallest."""
    sizes = [
        np.where(part.column("by_wave") > 0, part.column("tile_m") * part.column("tile_n"), np.inf)
        if "by_wave" in part.family.grid
        else np.full(part.numbers.size, np.inf)
        for part in layout.parts
    ]
    return [int(np.argmin(np.concatenate(sizes)))]


def driver(folder: Path, operator: Operator = GEMM, more: str = "") -> None:
    """Builds libcuda.so.1 there, with the kernels of an operator's kits. more: CUDA of a kernel `tensorop_kernel`"""
    text = kit.kernels(kit.sources(operator, ("bf16", "f16"))) + more
    (folder / "kernels.cu").write_text(text)
    whole = {"kit_reference", "kit_matvec", "kit_hold", "kit_poke"}  # and a library's: their grids matter
    names = re.findall(r"void (kit_\w+|tensorop_\w+)\(", text)
    strided = {name: name.startswith("kit") and name not in whole for name in names}
    each = [f"EACH({name}, {str(of).lower()})\n" for name, of in strided.items()]
    (folder / "each.inc").write_text("".join(each))
    (folder / "driver.h").write_text((paths.native_dir() / "device" / "driver.h.j2").read_text())
    (folder / "kit_on_cpu.cpp").write_text('#include "kit_on_cpu.h"\n')
    parts = [str(folder / "kit_on_cpu.cpp"), str(SUPPORT / "fake_cuda.c")]
    includes = [f"-I{folder}", f"-I{SUPPORT}"]
    command = [*zig_cc(), "-O2", "-fno-exceptions", "-shared", "-fPIC", *includes, *parts, "-lm"]
    subprocess.run([*command, "-o", str(folder / "libcuda.so.1")], check=True, env={**os.environ, **zig_environment()})
