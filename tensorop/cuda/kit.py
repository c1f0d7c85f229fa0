"""Makes the program and the plan of a GPU product's tuning kit, and corrections from its results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

from tensorop import paths
from tensorop.cuda import compile as device
from tensorop.cuda import library
from tensorop.cuda.corrected import Corrections
from tensorop.cuda.kernels import c_size, kind
from tensorop.cuda.product import Content
from tensorop.device_target import TimedProblem
from tensorop.errors import JobError, UsageError
from tensorop.model.device import DeviceInterface, Key
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Outcome
from tensorop.provision import nvcc
from tensorop.render import render
from tensorop.specs import files as reading
from tensorop.target import KitRequest
from tensorop.toolchain import cache, tool
from tensorop.toolchain.cache import BuildLog

COMMON = 7  # controls of every kit: the plain kernel and faults around it (native/device/kit/faults.h.j2)
# Multiply-adds up to which each element is compared, bytes of all operand sets, us of a CUDA graph, ms of warm-up,
# rounds, the limit of a step in seconds, and calls without a pause that must give the same result.
SETTINGS = "8589934592 180000000 2000 300 9 300 2000"
LARGEST = 3e11  # multiply-adds of a random problem
_GLIBC = "2.28"


def sources(operator: Operator, dtypes: Sequence[str]) -> dict[str, str]:
    """The C of a kit by file name, without its library, and `kernels.cu`; an operator's file takes the place of ours.

    dtypes: of the library
    """
    native, own = paths.native_dir(), operator.folder / "device" / "kit"
    found = [*(native / "device" / "kit").glob("*.[ch]*"), *(native / "kit").glob("kit_rows.[ch]"), *own.iterdir()]
    files = {
        path.name: path.read_text(encoding="utf-8") for path in found if path.suffix in (".c", ".h", ".cu", ".cuh")
    }
    context = {**library.terms(operator), "dtypes": list(dtypes), "c_size": c_size(dtypes[0])}
    context["faults"] = list(operator.on_device.faults)
    env = render.environment(native / "device" / "kit")
    return files | {name: render.c_text(env, f"{name}.j2", context) for name in ("library.h", "faults.h")}


def kernels(files: Mapping[str, str], name: str = "kernels.cu") -> str:
    """The CUDA of a kit's kernels as one text."""

    def included(match: re.Match[str]) -> str:
        return kernels(files, match[1])

    return re.sub(r'^#include "([\w.]+)"$', included, files[name], flags=re.MULTILINE)


def program(of: Content, root: Path) -> bytes:
    """The kit's program, around the archive of the product in `root`. Raises JobError if it cannot be built."""
    operator, platform = of.operator, of.platform
    files = sources(operator, list(dict.fromkeys(variant.dtype for variant in of.variants)))
    built = device.build(kernels(files), str((platform.device or {})["code"]), nvcc.nvcc())
    if isinstance(built, Outcome):
        raise JobError(f"the kit's kernels cannot be built: {built.message}\n{built.log}", hint="tensorop doctor")
    header, archived = f"tensorop/{operator.name}_cuda.h", f"lib{library.name_of(operator)}.a"
    archive = reading.read(root / "lib" / archived, reading.LIBRARY)
    files = {name: text for name, text in files.items() if name.endswith((".c", ".h"))}
    files[header] = reading.text(root / "include" / header, reading.TEXT)
    target = re.sub(r"-gnu\..*", f"-gnu.{_GLIBC}", platform.compiler.shared_target)
    key = cache.key_of(files, built.image, archive, target, tool.compiler_version())

    def fill(folder: Path) -> BuildLog | Outcome:
        (folder / "tensorop").mkdir()
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        (folder / "kernels.bin").write_bytes(built.image)
        (folder / "library.a").write_bytes(archive)
        units = [name for name in files if name.endswith(".c")]
        argv = ("-target", target, "-std=gnu11", "-O2", "-g0", "-I.", *units, "library.a", "-ldl", "-lpthread", "-lm")
        linked = tool.run(tool.cc(*argv, "-o", "kit"), folder, timeout_s=300, doing="building the kit")
        for name in ("tensorop/" + Path(header).name, "library.a", "kernels.bin"):
            (folder / name).unlink()
        (folder / "tensorop").rmdir()
        return linked

    return tool.required(cache.entry("kits", key, "kit", fill), "the kit").path.read_bytes()


def verified(call: DeviceInterface) -> str:
    """The calls on which each variant is verified, in every layout and form."""
    return " ".join("x".join(map(str, call.numbers(sizes).values())) for sizes in call.verify)


def steps(of: Content, request: KitRequest) -> Iterator[str]:
    """The lines of a kit's plan.

    Without --dtype only the first type is timed: a configuration has nearly the same speed in the others.
    """
    held = list(dict.fromkeys(variant.dtype for variant in of.variants))
    types = {kind(dtype): dtype for dtype in held} | {dtype: dtype for dtype in held}
    if strange := [name for name in request.dtypes if name not in types]:
        raise UsageError(
            f"--dtype {', '.join(strange)}: the library supports {', '.join(held)}",
            hint="use one of the supported types",
        )
    call = of.operator.on_device
    if strange := [name for name in request.layouts if name not in call.texts]:
        raise UsageError(f"--layouts {', '.join(strange)} does not exist", hint=f"choose from {', '.join(call.texts)}")
    yield f"settings {SETTINGS}"
    for number in range(-1, COMMON + len(call.faults)):  # -1 is the oracle itself
        yield f"control {number}"
    for number in range(-1, len(of.variants)):
        yield f"verify {number} {verified(call)}"
    more = *(call.probes if request.probes else ()), *_random(of.operator, request.probes, request.before)
    problems = dict.fromkeys(tuple(call.numbers(shape).values()) for shape in (*request.shapes, *more))
    for name in request.layouts or call.texts:
        for sizes in problems:
            for dtype in request.dtypes or held[:1]:  # one after the other, in the same state of the machine
                yield f"time {types[dtype]} {' '.join(map(str, (*call.texts[name], *sizes)))}"


def _random(operator: Operator, count: int, before: int) -> Iterator[tuple[int, ...]]:
    """Random sizes up to 16384, from 16 but for the first; two of three problems have sizes that are multiples of 8.

    Sizes that the operator has `drawn` are from there.
    """
    rng, call, shapes = np.random.default_rng((20261123, before)), operator.on_device, operator.shapes
    sizes = [name for name in call.call if name not in (*call.counts, *call.usual)]
    for number in range(count):
        while True:
            found = [int(2**power) for power in rng.uniform((0, *(4 for _ in sizes[1:])), 14)]
            if number % 3:
                found = [-(-size // 8) * 8 for size in found]
            shape = shapes.drawn_from(found, rng)
            if prod(shape[: len(sizes)]) <= LARGEST and not shapes.wrong(shape):
                break
        yield shape


def corrections(of: Content, rows: Sequence[TimedProblem], where: str) -> Corrections:
    """Corrections from a kit's rows; the last row of a problem counts. A type without rows uses another type's."""
    alike: dict[tuple[str, Key], dict[str, int]] = {}
    for number, variant in enumerate(of.variants):
        alike.setdefault((variant.candidate.label, variant.candidate.key), {})[variant.dtype] = number
    twins = {number: group for group in alike.values() for number in group.values()}
    measured = {row.problem.dtype for row in rows}
    found: dict[Problem, dict[int, float]] = {}
    for row in rows:
        us = found.setdefault(replace(row.problem, dtype=""), {})
        for number, median in row.us.items():
            for dtype, twin in twins[number].items():
                if dtype == row.problem.dtype or dtype not in measured:
                    us[twin] = median
    problems = [TimedProblem(problem, us) for problem, us in found.items() if us]
    return Corrections(of.operator.on_device, of.variants, problems, where)
