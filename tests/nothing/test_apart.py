"""A candidate's kernel is compiled apart from its driver, and once for every blocking that a call can bring."""

from __future__ import annotations

import pytest

from tensorop.author import offline
from tensorop.model.kernel import KernelText, Source
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.specs import operators, platforms


def made(operator: Operator, platform: Platform, name: str, **chosen: int) -> Source:
    """The candidate of a template at the last of its points, with these tunables in place of the point's or default."""
    templates = {one.name: one for one in offline.templates(operator.folder, operator.name, operator.added)}
    point = [*instantiate.micro_space(platform, templates[name], "f32").points()][-1]
    full = instantiate.defaults(operator, platform, "f32", Point.of({**point, **chosen}))
    variant = instantiate.variant(operator, templates[name], "f32", full)
    text = Texts().kernel(operator, platform, variant)
    assert isinstance(text, KernelText), text
    built = instantiate.as_built(operator, platform, variant)
    return instantiate.candidate(operator, platform, built, text)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["gemm", "conv2d", "attention"])
def test_kernels_of_a_dtype_share_a_driver(name: str) -> None:
    operator, platform = operators.load(name), platforms.load("cortex-a53")
    templates = [one.name for one in offline.templates(operator.folder, operator.name, operator.added)]
    found = [made(operator, platform, template) for template in templates]
    found.append(made(operator, platform, "outer", mr_vectors=1, nr=4))
    assert len({one.driver for one in found}) == 1
    assert len({one.files for one in found}) == len(found)
    driver = found[0].driver
    assert driver is not None
    assert "tensorop_candidate_0" in driver.files[0][1]
    assert "tensorop_candidate_" not in found[0].files[0][1]


def test_vectors_of_another_length_have_a_driver_of_their_own() -> None:
    operator, platform = operators.load("gemm"), platforms.load("rvv")
    short, long = (made(operator, platform, "outer", mr_vectors=1, nr=4, lmul=lmul) for lmul in (1, 4))
    assert short.driver != long.driver


def test_the_smallest_products_have_no_driver_apart() -> None:
    operator, platform = operators.load("gemm"), platforms.load("cortex-a53")
    template = offline.direct(operator.folder, operator.name)
    assert template is not None
    point = next(iter(instantiate.micro_space(platform, template, "f32").points()))
    variant = instantiate.variant(operator, template, "f32", instantiate.defaults(operator, platform, "f32", point))
    text = Texts().kernel(operator, platform, variant)
    assert isinstance(text, KernelText)
    source = instantiate.candidate(operator, platform, variant, text)
    assert source.parts == (source,)
    assert "tensorop_candidate_0" in source.files[0][1]


@pytest.mark.parametrize("name", ["gemm", "conv2d"])
def test_what_a_call_brings_needs_no_other_build(name: str) -> None:
    operator, platform = operators.load(name), platforms.load("cortex-a53")
    blocks = {"mc": 64, "kc": 128, "nc": 256, "pack_a": 0, "a_stationary": 0}
    assert set(operator.runtime) == set(blocks)
    assert made(operator, platform, "outer", pack_b=1, **blocks) == made(operator, platform, "outer", pack_b=1)
    assert made(operator, platform, "outer", pack_b=0) != made(operator, platform, "outer", pack_b=1)


def test_a_template_that_names_such_a_tunable_is_built_for_each_value() -> None:
    """`lanes` reads panels of A at constant distances."""
    operator, platform = operators.load("gemm"), platforms.load("cortex-a53")
    panels, in_place = (made(operator, platform, "lanes", pack_a=packs) for packs in (1, 0))
    assert panels != in_place
    assert panels.driver == in_place.driver
    assert made(operator, platform, "lanes", kc=128) == panels
