"""Where searches begin: every start that a shipped platform's own file names is a legal variant there; of those that it
inherits some may not be."""

from __future__ import annotations

import pytest

from tensorop.author import offline
from tensorop.model.kernel import Draft, Kernel
from tensorop.model.platform import Platform, Start
from tensorop.model.point import Point
from tensorop.render import instantiate
from tensorop.space import Space, starts
from tensorop.specs import catalog, platforms, yamlfile
from tests.support.operators import gemm

operator = gemm()
drafts = {draft.name: draft for draft in offline.drafts(operator.folder, operator.name)}
CASES = [
    (platform.name, dtype, number)
    for platform in map(platforms.load, catalog.names("platforms"))
    if "starts" in yamlfile.read(catalog.find("platforms", platform.name))
    for dtype, known in platform.starts.get("gemm", {}).items()
    for number in range(len(known))
]


def spaces(platform: Platform, draft: Draft, dtype: str, start: Start) -> tuple[Space, list[Point]]:
    """The draft's space, and the start's kernel in it."""
    space = instantiate.micro_space(platform, draft, dtype)
    return space, starts.micro((start,), draft, space)[:1]


@pytest.mark.parametrize(("name", "dtype", "number"), CASES)
def test_a_start_is_one_whole_legal_variant(name: str, dtype: str, number: int) -> None:
    platform = platforms.load(name)
    start = platform.starts["gemm"][dtype][number]
    space, (kernel,) = spaces(platform, drafts[start.draft], dtype, start)
    blocking = instantiate.blocking_space(operator, platform, Kernel(drafts[start.draft], dtype, kernel))
    (blocks,) = starts.blockings((start,), drafts[start.draft], kernel, blocking)
    assert {**kernel, **blocks} == dict(start.point)
    assert kernel in space


def test_a_start_that_is_not_legal_here_is_left_out() -> None:
    platform = platforms.load("spacemit-k1")
    outer = drafts["outer"]
    space = instantiate.micro_space(platform, outer, "f32")
    too_large = Start("outer", Point.of(lmul=8, mv=8, nr=15))
    of_others = Start("dot", Point.of(mv=8))
    assert starts.micro((too_large, of_others), outer, space) == starts.micro((), outer, space)


def test_what_a_start_leaves_open_agrees_with_anything() -> None:
    start = Start("outer", Point.of(mv=2, mc=64))
    assert starts.agrees(start, "outer", Point.of(mv=2, nr=8))
    assert not starts.agrees(start, "outer", Point.of(mv=3, nr=8))
    assert not starts.agrees(start, "dot", Point.of(mv=2, nr=8))


def test_few_blockings_show_both_ends_of_packing() -> None:
    outer, platform = drafts["outer"], platforms.load("avx512")
    kernel = Kernel(outer, "f64", Point.of(mv=2, nr=12, ku=4, ahead=0, late=0, lead=0, fetch=0, c_ahead=0))
    space = instantiate.blocking_space(operator, platform, kernel)
    full = instantiate.defaults(operator, platform, "f64", kernel.configuration)
    usual = {name: full[name] for name in operator.blocking.values}
    packed, plain = starts.around(usual, space), starts.around(usual, space, nothing_first=True)
    ends = [(point["pack_a"], point["pack_b"]) for point in packed[:2]]
    assert ends == [(1, 1), (0, 0)]
    assert plain[:2] == packed[1::-1]
    assert plain[2:] == packed[2:]
    assert set(packed) <= set(space.points())
