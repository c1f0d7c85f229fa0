"""`exp` of the sets of this machine: every f32, dense samples of f64, and other flags of the compiler."""

from __future__ import annotations

import pytest

from tensorop.commands import check_primitives
from tensorop.model.architecture import host_arch
from tensorop.model.platform import Platform
from tensorop.specs import native, primitives
from tests.support.exponentials import worst_f32, worst_f64

pytestmark = pytest.mark.skipif(host_arch() != "x86_64", reason="the sets are those of x86-64")
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


@pytest.mark.parametrize("name", dict.fromkeys(("scalar", WIDEST)))
def test_every_f32(name: str) -> None:
    worst, where = worst_f32(SETS[name], {}, 1)
    assert 0.5 < worst <= stated(name), where


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("name", SETS)
def test_samples_with_other_flags(name: str, flags: tuple[str, ...]) -> None:
    worst, where = worst_f32(SETS[name], {}, 4099, *flags)
    assert 0.5 < worst <= stated(name), where
    worst, where = worst_f64(SETS[name], {}, 8000, *flags)
    assert 0.5 < worst <= stated(name), where
