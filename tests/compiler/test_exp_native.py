"""`exp` of the sets of this machine: every f32, dense samples of f64, and other flags of the compiler."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorop.commands import check_primitives
from tensorop.model.architecture import host_arch
from tensorop.model.kernel import Artifact
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.render import instantiate
from tensorop.specs import native, platforms, primitives
from tensorop.toolchain import compile, gate
from tests.support import templates
from tests.support.classes import each_once
from tests.support.exponentials import worst_f32, worst_f64

pytestmark = pytest.mark.skipif(host_arch() != "x86_64", reason="the sets are those of x86-64")
STREAM = {"mr_vectors": 64, "nr": 1, "ku": 2, "wide": 2, "fetch": 4, "pack_a": 0, "pack_b": 0}
FLAGS = [(), ("-ffp-contract=off",), ("-ffp-contract=fast",), ("-O1", "-fno-math-errno")]


def _here(name: str) -> Platform | None:
    platform = check_primitives.home(name)
    return None if native.missing_flags(platform) else platform


SETS = {name: platform for name in ("scalar", "avx2", "avx512") if (platform := _here(name)) is not None}
WIDEST = [*SETS][-1]


def stated(name: str) -> float:
    ulp = primitives.load(name).primitives["exp"].ulp
    assert ulp is not None
    return ulp


@pytest.mark.extended
@pytest.mark.parametrize("name", dict.fromkeys(("scalar", WIDEST)))
def test_every_f32(name: str) -> None:
    worst, where = worst_f32(SETS[name], {}, 1)
    assert 0.5 < worst <= stated(name), where


@pytest.mark.parametrize(
    ("name", "flags"), each_once([*SETS], FLAGS), ids=lambda v: v if isinstance(v, str) else " ".join(v)
)
def test_samples_with_other_flags(name: str, flags: tuple[str, ...]) -> None:
    worst, where = worst_f32(SETS[name], {}, 4099, *flags)
    assert 0.5 < worst <= stated(name), where
    worst, where = worst_f64(SETS[name], {}, 8000, *flags)
    assert 0.5 < worst <= stated(name), where


@pytest.mark.parametrize(("name", "dtype"), each_once(["generic", "avx2", "avx512", "neon", "rvv"], ["f32", "f64"]))
def test_a_kernel_that_calls_it_passes_the_gates(name: str, dtype: str) -> None:
    platform, template = platforms.load(name), templates.templates["stream"]
    put = '{{ put("c + %d * ldc + i + %d * lanes" % (j, w), "c%d_%d" % (j, w), predicate) }};'
    assert put in template.text
    made = '"c%d_%d" % (j, w)'
    changed = put.replace(made, f"exp({made}, predicate)")
    point = {**templates.SMALL_BLOCKS, **STREAM, **({"lmul": 2} if platform.settings else {})}
    full = instantiate.defaults(templates.operator, platform, dtype, Point.of(point))
    source = templates.candidate(platform, replace(template, text=template.text.replace(put, changed)), full, dtype)
    built = compile.compile_source(source, compile.candidate_flags(platform))
    assert isinstance(built, Artifact), built
    assert gate.check_part(built.path, source, source) is None
    assert "tensorop_exp" in source.files[0][1]
    assert "tensorop_exp" not in templates.candidate(platform, template, full, dtype).files[0][1]
