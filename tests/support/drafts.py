"""Shipped drafts built at a point and put before the judge."""

from __future__ import annotations

from collections.abc import Mapping

from tensorop import instantiate
from tensorop.author import offline
from tensorop.model.kernel import Artifact
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.verdict import Seed, Verdict
from tensorop.specs import platforms
from tensorop.verify import grid
from tensorop.verify.subject import Subject
from tests.support.operators import builder, gemm, runner_of

operator = gemm()
drafts = {draft.name: draft for draft in offline.drafts(operator.folder, operator.name)}

OUTER = {"ku": 2, "ahead": 0, "late": 0, "lead": 0, "fetch": 0, "c_ahead": 0}
PIPELINED = {"ku": 4, "ahead": 1, "late": 2, "lead": 4, "fetch": 6, "c_ahead": 1}
DOT = {"ku": 1, "ahead": 0, "late": 0, "lead": 0, "fetch": 4}
DOT_AHEAD = {**DOT, "ahead": 1, "late": 4}
SMALL_BLOCKS = {"mc": 32, "kc": 128, "nc": 256}


def verdicts(platform_name: str, draft: str, dtype: str, chosen: Mapping[str, int]) -> list[Verdict]:
    """What the judge says of a draft at a point on the quick grid, at every VLEN its winners must pass."""
    platform = platforms.load(platform_name)
    point = instantiate.defaults(operator, platform, dtype, Point.of({**SMALL_BLOCKS, **chosen}))
    built = builder(platform)(instantiate.candidate(operator, platform, drafts[draft], point, dtype), ())
    assert isinstance(built, Artifact), built.log
    vlens = platform.verify_vlens or platform.vlens
    tile = {"mr": 16, "nr": int(point["nr"]), "ku": int(point["ku"])}
    subject = Subject(runner_of(platform), built.path, workspace=_room)
    return list(
        grid.verify(operator, subject, grid.quick(operator, dtype, dict.fromkeys(vlens, tile)), vlens, Seed.draw())
    )


def _room(problem: Problem, vlen: int) -> int:
    dims = problem.dims
    return (int(dims["m"]) + 256 + int(dims["n"]) + 256) * (int(dims["k"]) + 256)
