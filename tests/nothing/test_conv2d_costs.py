"""conv2d's cost terms, the core's alone: what its driver does to weights, x and channels shows in them."""

from __future__ import annotations

import numpy as np
import pytest

from tensorop.author import offline
from tensorop.costs.terms import named_terms
from tensorop.dispatch import choice
from tensorop.dispatch.shapes import Draw
from tensorop.model.point import Point
from tensorop.render import instantiate
from tensorop.specs import operators, platforms

CONV2D = operators.load("conv2d")
(OUTER,) = (t for t in offline.templates(operators.load("gemm").folder, "gemm") if t.name == "outer")
OWN = {"ku": 4, "ahead": 1, "late": 2, "lead": 4, "fetch": 6, "c_ahead": 0, "mr_vectors": 2, "nr": 6, "lmul": 2}
BLOCKS = {"mc": 96, "kc": 128, "nc": 256, "a_stationary": 0}


def terms(shape: str, layout: str = "nchw", **packs: int) -> dict[str, float]:
    point = Point.of({**OWN, **BLOCKS, "pack_a": 1, "pack_b": 1, **packs})
    variant = instantiate.variant(CONV2D, OUTER, "f32", point)
    subject = choice.Candidates(CONV2D, platforms.load("spacemit-k1"), "f32", (variant,))
    sizes = CONV2D.shapes.named(CONV2D.shapes.of(shape))
    columns = subject.columns([CONV2D.reference.problem("f32", sizes, {"layout": layout})])
    found = named_terms(CONV2D, subject.platform, variant, columns)
    assert np.isfinite([*found.values()]).all()
    return {name: float(value[0]) for name, value in found.items() if value[0]}


def test_weights_are_packed_or_read_where_they_are() -> None:
    packed, in_place = terms("n1c512h7w7k64r3s3p1"), terms("n1c512h7w7k64r3s3p1", pack_b=0)
    assert packed["transposed"] >= 64 * 512 * 9
    assert "reads_apart" not in packed
    assert "transposed" not in in_place
    assert in_place["reads_apart"] >= 64 * 512 * 9


def test_x_is_gathered_copied_or_read_where_it_is() -> None:
    assert {"copied", "runs"} <= terms("n1c64h56w56k64r3s3p1").keys()
    assert "copied" in terms("n1c64h56w56k64r1s1")
    assert not {"copied", "gathered"} & terms("n1c64h56w56k64r1s1", pack_a=0).keys()
    assert "gathered" in terms("n1c64h56w56k64r1s1u2")


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_a_depthwise_convolution_is_no_product(layout: str) -> None:
    found = terms("n1c64h14w14k64r3s3u2p1g64", layout)
    assert found.pop("call") == 1
    assert found.pop("other") > 0
    assert found.keys() <= {"runs", "blocks"}


def test_everything_that_may_be_drawn_has_costs() -> None:
    variant = instantiate.variant(CONV2D, OUTER, "f32", Point.of({**OWN, **BLOCKS, "pack_a": 1, "pack_b": 0}))
    drawn = choice.field(choice.Candidates(CONV2D, platforms.load("spacemit-k1"), "f32", (variant,)), Draw(300))
    assert np.isfinite(drawn.terms[0]).all()
    assert (drawn.terms[0].sum(axis=1) > 1).all()
