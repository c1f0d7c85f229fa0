"""Operators on gemm's loops: what their hooks say holds in kernels and products."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tensorop as package
from tensorop.author import offline
from tensorop.model.architecture import host_arch
from tensorop.model.kernel import KernelText
from tensorop.model.verdict import Seed
from tensorop.model.winner import Leaf, Split, Tree, Winners
from tensorop.package import product as making
from tensorop.package import publish
from tensorop.package.sources import OperatorPart
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.specs import platforms
from tensorop.verify.controls import ControlRun, controls
from tests.support import hooked
from tests.support.kernels import platform
from tests.support.operators import runner_of
from tests.support.variants import verdict

pytestmark = pytest.mark.skipif(host_arch() != "x86_64", reason="the plain platform is one of x86-64")
here = platform(host_arch())
IN_PLACE = {"pack_a": 0, "pack_b": 1, "a_stationary": 0}
STATIONARY = {"pack_a": 1, "pack_b": 1, "a_stationary": 1}


@pytest.mark.covers("example hooks")
@pytest.mark.parametrize("name", hooked.NAMES)
def test_the_judge_knows_what_is_wrong(name: str) -> None:
    operator = hooked.load(name)
    results = ControlRun(operator, here, runner_of(here), Seed.draw()).run(["f32"])
    assert [result.name for result in results] == [control.name for control in controls(operator)]
    wrong = [f"{r.name}: {r.outcome.kind}: {r.outcome.message}" for r in results if not r.as_expected]
    assert not wrong


@pytest.mark.one_in(3)
@pytest.mark.parametrize("packs", [IN_PLACE, STATIONARY], ids=["A in place", "a panel of A stays"])
@pytest.mark.parametrize("name", hooked.NAMES)
def test_blocks_tiles_and_their_edges_are_right(name: str, packs: dict[str, int]) -> None:
    found = verdict(hooked.load(name), "generic", "outer", "f32", {**hooked.BLOCKS, **packs})
    assert found.ok, found.outcome


@pytest.mark.parametrize("packs", [{**STATIONARY, "a_stationary": 0}, STATIONARY], ids=["a panel of B stays", "of A"])
def test_all_hooks_together(packs: dict[str, int], tmp_path: Path) -> None:
    found = verdict(hooked.with_every_hook(tmp_path), "generic", "outer", "f64", {**hooked.BLOCKS, **packs})
    assert found.ok, found.outcome


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("*first = j;", "*first = j + 1;"),  # one diagonal too few
        ("*end = of_a < of_b ? of_a : of_b;", "*end = of_a;\n    if (j > 100) *end -= 1;"),  # a step too few, far down
        ("p + u > i + x ? 0", "p + u > i + x + 1 ? 0"),  # a diagonal of the other triangle
        ("c[x + q * ldc] += 1;", "c[x + q * ldc] += x + 1 < rows;"),
    ],
)
def test_a_wrong_hook_is_found(old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert old in hooked.DRIVER
    monkeypatch.setattr(hooked, "DRIVER", hooked.DRIVER.replace(old, new))
    found = verdict(hooked.with_every_hook(tmp_path), "generic", "outer", "f64", hooked.PACKED)
    assert not found.ok


@pytest.mark.filterwarnings("ignore:.*is not verified")
def test_a_product_has_them(tmp_path: Path) -> None:
    """The generated functions around gemm's kernels and the hooks, from Python, with threads."""
    operator, generic, texts = hooked.load("dense"), platforms.load("generic"), Texts()
    (template,) = (one for one in offline.templates(operator.folder, "dense", operator.added) if one.name == "outer")
    variants = tuple(
        instantiate.variant(operator, template, "f32", instantiate.defaults(operator, generic, "f32", point))
        for point in ({**hooked.BLOCKS, **IN_PLACE}, {**hooked.BLOCKS, **STATIONARY})
    )
    for variant in variants:
        assert isinstance(texts.kernel(operator, generic, variant), KernelText)
    winners = Winners("f32", variants, (Tree(Split("m", 50, Leaf(0), Leaf(1))),))
    made = making.product(generic, [OperatorPart(operator, [winners], {}, texts=texts)])
    library = package.load(publish.publish(publish.stage(made, tmp_path / "out"), tmp_path / "out"), hooked.EXAMPLES)
    rng = np.random.default_rng(0)
    for m in (1, 49, 51, 400):
        x, w = (rng.standard_normal((rows, 130)).astype(np.float32) for rows in (m, 90))
        bias = rng.standard_normal(90).astype(np.float32)
        for threads in (1, 3):
            library.threads = threads
            y = library.dense(x, w, bias, relu=1)
            assert np.allclose(y, np.maximum(x @ w.T + bias, 0), atol=1e-4)
    with pytest.raises(ValueError, match="relu must be 0 or 1"):
        library.dense(x, w, bias, relu=2)
