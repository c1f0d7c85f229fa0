"""conv2d: its judge refuses faulty kernels, and its baselines compute what it asks for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tensorop.backends import reach
from tensorop.commands import libraries
from tensorop.errors import UsageError
from tensorop.model.architecture import host_arch
from tensorop.model.verdict import Seed
from tensorop.render import adapting
from tensorop.runners.session import Guest
from tensorop.specs import native, operators, platforms
from tensorop.toolchain import tool
from tensorop.verify import grid
from tensorop.verify.controls import ControlRun, controls
from tensorop.verify.subject import Subject
from tests.support.classes import each_once
from tests.support.convolutions import PIPELINED, verdict
from tests.support.kernels import platform
from tests.support.operators import runner_of

operator = operators.load("conv2d")
here = platform(host_arch())


@pytest.mark.covers("control conv2d/*", "dtype conv2d/{dtype}")
@pytest.mark.parametrize("dtype", operator.dtypes)
def test_the_judge_knows_what_is_wrong(dtype: str) -> None:
    results = ControlRun(operator, here, runner_of(here), Seed.draw()).run([dtype])
    assert [result.name for result in results] == [control.name for control in controls(operator)]
    wrong = [f"{r.name}: {r.outcome.kind}: {r.outcome.message}" for r in results if not r.as_expected]
    assert not wrong


OWN_BASELINES = [("im2col+openblas", "f32"), ("im2col+openblas", "f64"), ("direct", "f32"), ("direct", "f64")]
PREPACKED = "prepacked+onednn@2023.2.0"
ONEDNN = ("onednn", PREPACKED)
OWN_BASELINES += [(name, "f32") for name in ONEDNN if host_arch() == "x86_64"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "dtype"), OWN_BASELINES)
def test_a_baseline_computes_what_is_asked(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == PREPACKED:  # knows its weights by a few of them, so a change of another is not seen
        monkeypatch.setattr(grid, "MOST", 0)  # so no weight changes between calls
    target = reach(platforms.load("native"))
    tested = libraries.bring(name, target, [dtype], 1, own=operator.baselines)
    environment = tested.environment(target.runner, 0, dtype)
    guest = Guest(libraries=(tested.library(target.runner, dtype),), environment=environment)
    program = adapting.program(target.platform, operator).path
    cases = list(operator.reference.quick_grid(dtype, operator.reference.CONTROL_TILE, np.random.default_rng(0)))
    if name in ONEDNN:  # whose ReLU makes 0 of a NaN; what is compared has none
        cases = [case for case in cases if case.distribution != "special" or not dict(case.problem.options)["relu"]]
    verdict = grid.check(operator.reference, Subject(target.runner, program, guest), cases, 0, Seed.draw())
    assert verdict.ok, verdict.outcome


def test_a_name_may_mean_a_certain_build() -> None:
    own = {"im2col": "cblas", "direct": "none", "onednn": "onednn@2023.2.0"}
    assert libraries.below("onednn", own) == "onednn@2023.2.0"
    assert libraries.below("onednn", {}) == "onednn"
    assert libraries.below("im2col+openblas@0.3.29", own) == "openblas@0.3.29"
    assert libraries.below("direct", own) == "direct"
    libraries.check_names(["im2col+openblas", "direct"], "riscv64", own)
    with pytest.raises(UsageError, match="--against onednn: no such baseline for riscv64"):
        libraries.check_names(["im2col+openblas", "onednn"], "riscv64", own)
    with pytest.raises(UsageError, match="direct, im2col\\+openblas, libxsmm, mkl, onednn, onednn@"):
        libraries.check_known("winograd", "x86_64", own)


@pytest.mark.skipif(host_arch() != "x86_64", reason="the plain platform is one of x86-64")
@pytest.mark.parametrize(("packs", "dtype"), each_once([(1, 1), (1, 0), (0, 0)], ["f32", "f64"]), ids=str)
def test_a_variant_is_right(packs: tuple[int, int], dtype: str) -> None:
    chosen = {**PIPELINED, "mr_vectors": 2, "nr": 4, "pack_a": packs[0], "pack_b": packs[1]}
    found = verdict("generic", "outer", dtype, chosen)
    assert found.ok, found.outcome


@pytest.mark.skipif(bool(native.missing_flags(platforms.load("avx512"))), reason="this processor lacks AVX-512")
@pytest.mark.parametrize(("packs", "dtype"), each_once([(1, 1), (0, 0)], ["f32", "f64"]), ids=str)
def test_a_variant_of_long_vectors_is_right(packs: tuple[int, int], dtype: str) -> None:
    """Vectors of windows come from planes, and an image's last pixels are dot products where weights are in place."""
    chosen = {**PIPELINED, "fetch": 0, "c_ahead": 0, "mr_vectors": 2, "nr": 6, "pack_a": packs[0], "pack_b": packs[1]}
    found = verdict("avx512", "outer", dtype, chosen)
    assert found.ok, found.outcome


FIELDS = ("n", "c", "h", "w", "k", "r", "s", "u", "v", "top", "left", "d", "e", "g", "high", "wide", "nhwc")


def test_the_library_sees_the_features_that_the_models_do(tmp_path: Path) -> None:
    features = (operator.folder / "product" / "features.c.j2").read_text()
    begin, end = features.index("    const uint64_t area"), features.index(";\n", features.index("return choose(")) + 2
    cases = [
        case.problem for case in operator.reference.quick_grid("f32", {"mr": 8, "nr": 4}, np.random.default_rng(0))
    ]
    rows = []
    for problem in cases:
        sizes = problem.sizes
        high = (sizes["h"] + sizes["p"] + sizes["b"] - sizes["d"] * (sizes["r"] - 1) - 1) // sizes["u"] + 1
        wide = (sizes["w"] + sizes["l"] + sizes["q"] - sizes["e"] * (sizes["s"] - 1) - 1) // sizes["v"] + 1
        told = [sizes[name] for name in "nchwkrsuvpldeg"]
        rows.append([*told, high, wide, int(problem.options["layout"] == "nhwc")])
    count = len(operator.seen)
    (tmp_path / "seen.c").write_text(
        "#include <stdint.h>\n#include <stdio.h>\n"
        f"struct sizes {{ {''.join(f'size_t {name}; ' for name in FIELDS)}}};\n"
        f"static int shown(const uint64_t *seen) {{ for (int i = 0; i < {count}; ++i)"
        ' printf("%llu ", (unsigned long long)seen[i]); return puts(""); }\n'
        "#define choose(...) shown((uint64_t[]){ __VA_ARGS__ })\n"
        f"static int of(const struct sizes z) {{\n{features[begin:end]}}}\n"
        f"static const struct sizes all[] = {{ {', '.join('{' + ', '.join(map(str, row)) + '}' for row in rows)} }};\n"
        "int main(void) { for (unsigned i = 0; i < sizeof all / sizeof *all; ++i) of(all[i]); return 0; }\n"
    )
    subprocess.run([*tool.cc("-O1", "seen.c", "-o", "seen")], cwd=tmp_path, check=True)
    told_by_c = subprocess.run([tmp_path / "seen"], capture_output=True, text=True, check=True).stdout.splitlines()
    mine = [list(operator.reference.features(problem).values()) for problem in cases]
    assert [list(map(int, line.split())) for line in told_by_c] == mine
    assert {row[operator.seen.index("depthwise")] for row in mine} == {0, 1}
