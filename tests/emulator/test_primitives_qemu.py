"""Primitive sets of other architectures under QEMU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorop.commands import check_primitives
from tensorop.paths import builtin_dir
from tensorop.specs import primitives
from tests.support.classes import some
from tests.support.primitives import executed, undetected

SETS = [(name, dtype) for name in ("neon", "neon-dotprod", "rvv") for dtype in primitives.load(name).types]


@pytest.mark.covers("primitives {name}")
@pytest.mark.parametrize(
    ("name", "dtype"),
    some(SETS, lambda case: case in (("neon", "f64"), ("neon-dotprod", "i8"), ("rvv", "f32"))),
)
def test_every_primitive_means_what_it_says(name: str, dtype: str) -> None:
    """At every setting and every VLEN; lanes past vl hold ones where the ISA leaves them open."""
    results = list(check_primitives.check(name, dtypes=[dtype]))
    assert len(results) == {"rvv": 3 * 4}.get(name, 1)
    assert [str(r) for r in results if not r.ok] == []


@pytest.mark.extended
def test_primitives_for_a_fixed_vlen_hold_on_longer_vectors() -> None:
    results = list(check_primitives.check("rvv", platform="spacemit-k1", dtypes=["f32"]))
    assert len(results) == 3 * 3
    assert [str(r) for r in results if not r.ok] == []


@pytest.mark.extended
def test_scalar_primitives_hold_elsewhere() -> None:
    for platform in ("rvv", "neon"):
        results = list(check_primitives.check("scalar", platform=platform, vlens=[128]))
        assert {dtype for r in results for dtype in ("f32", "f64") if dtype in r.where} == {"f32", "f64"}
        assert [str(r) for r in results if not r.ok] == []


AT: dict[str, list[tuple[dict[str, int], int]]] = {
    "neon": [({}, 128)],
    "neon-dotprod": [({}, 128)],
    "rvv": [({"lmul": 1}, 128), ({"lmul": 2}, 256), ({"lmul": 4}, 512)],
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("name", "chosen", "vlen", "dtype"),
    some([(name, *at, dtype) for name, dtype in SETS for at in AT[name]], lambda case: case[2] != 256),
)
def test_every_broken_meaning_is_noticed(name: str, chosen: dict[str, int], vlen: int, dtype: str) -> None:
    run = executed(check_primitives.home(name), dtype, chosen, vlen)
    assert run.end is None
    assert undetected(run) == []


@pytest.mark.parametrize(
    ("primitive", "kept", "agnostic"),
    [
        ("fma_vv_tail", "macc_vv_${t}m${lmul}_tu(", "macc_vv_${t}m${lmul}("),
        ("select", "vmv_v_v_${t}m${lmul}_tu($w, ", "vmv_v_v_${t}m${lmul}("),
    ],
)
def test_lanes_the_isa_leaves_open_are_hostile(tmp_path: Path, primitive: str, kept: str, agnostic: str) -> None:
    """A primitive that counts on an agnostic tail staying as it was is right on some cores only, and refused."""
    text = (builtin_dir("primitives") / "rvv.yaml").read_text().replace("name: rvv", "name: mine", 1)
    for kind in ("primitives", "platforms"):
        (tmp_path / kind).mkdir()
    (tmp_path / "primitives/mine.yaml").write_text(text.replace(kept, agnostic))
    (tmp_path / "platforms/mine.yaml").write_text(
        "schema: 1\nname: mine\nparent: rvv\ndescription: test\nprimitives: [mine]\n"
    )
    results = list(check_primitives.check("mine", plugins=(tmp_path,), dtypes=["f32"], vlens=[128]))
    assert {r.primitive for r in results if not r.ok} == {None, primitive}
