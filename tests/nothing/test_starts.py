"""Where searches begin: every winner that ships for a platform is a whole legal variant there; of those that another
inherits some may not be."""

from __future__ import annotations

import pytest

from tensorop import paths
from tensorop.author import offline
from tensorop.model.kernel import Kernel
from tensorop.model.point import Point
from tensorop.model.winner import Known
from tensorop.render import instantiate, prior
from tensorop.search import warm
from tensorop.space import starts
from tensorop.specs import platforms
from tests.support.operators import gemm

operator = gemm()
drafts = {draft.name: draft for draft in offline.drafts(operator.folder, operator.name)}
SHIPPED = [warm.winners(path) for path in sorted((paths.builtin_dir("platforms") / warm.FOLDER).glob("*.jsonl"))]
CASES = [
    (source.platform, dtype, known)
    for source in SHIPPED
    for (name, dtype), of in source.known.items()
    for known in of
    if name == operator.name and source.platform != "generic"  # whose winners are hints for all
]


@pytest.mark.parametrize(("name", "dtype", "known"), CASES)
def test_a_shipped_winner_is_one_whole_legal_variant(name: str, dtype: str, known: Known) -> None:
    platform, draft = platforms.load(name), drafts[known.draft]
    (kernel,) = starts.named([known], draft, instantiate.micro_space(platform, draft, dtype))
    blocking = instantiate.blocking_space(operator, platform, Kernel(draft, dtype, kernel))
    (blocks,) = starts.blockings([known], draft, kernel, blocking)
    assert {**kernel, **blocks} == dict(known.point)


def test_a_winner_that_is_not_legal_here_is_left_out() -> None:
    platform = platforms.load("spacemit-k1")
    outer = drafts["outer"]
    space = instantiate.micro_space(platform, outer, "f32")
    too_large = Known("outer", Point.of(lmul=8, mv=8, nr=15))
    of_others = Known("dot", Point.of(mv=8))
    legal = Known("outer", Point.of(lmul=4, mv=1, nr=6))
    assert starts.named((too_large, of_others), outer, space) == []
    assert starts.named((too_large, legal), outer, space) == starts.named((legal,), outer, space) != []


def test_what_a_winner_leaves_open_agrees_with_anything() -> None:
    known = Known("outer", Point.of(mv=2, mc=64))
    assert starts.agrees(known, "outer", Point.of(mv=2, nr=8))
    assert not starts.agrees(known, "outer", Point.of(mv=3, nr=8))
    assert not starts.agrees(known, "dot", Point.of(mv=2, nr=8))


def test_few_blockings_show_both_ends_of_packing() -> None:
    outer, platform = drafts["outer"], platforms.load("avx512")
    kernel = Kernel(outer, "f64", Point.of(mv=2, nr=12, ku=4, ahead=0, late=0, lead=0, fetch=0, c_ahead=0))
    space = instantiate.blocking_space(operator, platform, kernel)
    usual = prior.blocking(operator, platform, kernel)
    packed, plain = starts.around(usual, space), starts.around(usual, space, nothing_first=True)
    ends = [(point["pack_a"], point["pack_b"]) for point in packed[:2]]
    assert ends == [(1, 1), (0, 0)]
    assert plain[:2] == packed[1::-1]
    assert plain[2:] == packed[2:]
    assert set(packed) <= set(space.points())
