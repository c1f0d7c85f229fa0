"""Where searches begin: every winner that ships for a platform is a whole legal variant there; of those that another
inherits some may not be."""

from __future__ import annotations

import pytest

from tensorop import paths
from tensorop.author import offline
from tensorop.model.kernel import Kernel
from tensorop.model.point import Point
from tensorop.model.winner import StartPoint
from tensorop.render import instantiate
from tensorop.space import Space, seeds
from tensorop.specs import platforms
from tensorop.warm import reading, start
from tests.support.operators import gemm

operator = gemm()
templates = {template.name: template for template in offline.templates(operator.folder, operator.name)}
SHIPPED = [
    reading.read_winners(path) for path in sorted((paths.builtin_dir("platforms") / reading.FOLDER).glob("*.jsonl"))
]
CASES = [
    (source.platform, dtype, known)
    for source in SHIPPED
    for (name, dtype), of in source.known.items()
    for known in of
    if name == operator.name and source.platform != "generic"  # whose winners are hints for all
]


@pytest.mark.parametrize(("name", "dtype", "known"), CASES)
def test_a_shipped_winner_is_one_whole_legal_variant(name: str, dtype: str, known: StartPoint) -> None:
    every = {one.name: one for one in (*templates.values(), offline.direct(operator.folder, operator.name)) if one}
    made = start.variant_of(operator, platforms.load(name), dtype, every, known)
    assert made is not None
    assert {**made.point} == dict(known.point)


def test_a_winner_that_is_not_legal_here_is_left_out() -> None:
    platform = platforms.load("spacemit-k1")
    outer = templates["outer"]
    space = instantiate.micro_space(platform, outer, "f32")
    too_large = StartPoint("outer", Point.of(lmul=8, mr_vectors=8, nr=15))
    of_others = StartPoint("dot", Point.of(mr_vectors=8))
    legal = StartPoint("outer", Point.of(lmul=4, mr_vectors=1, nr=6))
    assert seeds.named((too_large, of_others), outer, space) == []
    assert seeds.named((too_large, legal), outer, space) == seeds.named((legal,), outer, space) != []


def test_what_a_winner_leaves_open_agrees_with_anything() -> None:
    known = StartPoint("outer", Point.of(mr_vectors=2, mc=64))
    assert seeds.agrees(known, Kernel(templates["outer"], "f32", Point.of(mr_vectors=2, nr=8)))
    assert not seeds.agrees(known, Kernel(templates["outer"], "f32", Point.of(mr_vectors=3, nr=8)))
    assert not seeds.agrees(known, Kernel(templates["dot"], "f32", Point.of(mr_vectors=2, nr=8)))


def test_the_first_of_each_choice_of_two_valued_tunables() -> None:
    space = Space.of({"pack": (0, 1), "mc": (32, 64, 128)})
    ranked = [Point.of(pack=1, mc=64), Point.of(pack=1, mc=32), Point.of(pack=0, mc=128), Point.of(pack=0, mc=64)]
    assert seeds.of_each_choice(ranked, space) == [ranked[0], ranked[2]]
