"""Shipped drafts built at a point and put before the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorop import instantiate
from tensorop.author import offline
from tensorop.model.case import Case
from tensorop.model.kernel import Artifact, Draft, KernelText, Source
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.verdict import Seed, Verdict
from tensorop.specs import platforms
from tensorop.texts import Texts
from tensorop.verify import grid
from tensorop.verify.subject import Subject
from tests.support.operators import builder, gemm, runner_of

operator = gemm()
direct = offline.direct(operator.folder, operator.name)
assert direct is not None
drafts = {draft.name: draft for draft in (*offline.drafts(operator.folder, operator.name), direct)}

OUTER = {"ku": 2, "ahead": 0, "late": 0, "lead": 0, "fetch": 0, "c_ahead": 0}
PIPELINED = {"ku": 4, "ahead": 1, "late": 2, "lead": 4, "fetch": 6, "c_ahead": 1}
DOT = {"ku": 1, "ahead": 0, "late": 0, "lead": 0, "fetch": 4, "straight": 0}
DOT_AHEAD = {**DOT, "ahead": 1, "late": 4}
SMALL_BLOCKS = {"mc": 32, "kc": 128, "nc": 256}


def candidate(platform: Platform, draft: Draft, point: Point, dtype: str) -> Source:
    """The C of a candidate, as a trial builds it."""
    text = Texts().kernel(operator, platform, draft, point, dtype)
    assert isinstance(text, KernelText), text.message
    return instantiate.candidate(operator, platform, draft, point, dtype, text)


def verdicts(platform_name: str, draft: str, dtype: str, chosen: Mapping[str, int]) -> list[Verdict]:
    """What the judge says of a draft at a point on the quick grid, at every VLEN its winners must pass."""
    platform = platforms.load(platform_name)
    point = instantiate.defaults(operator, platform, dtype, Point.of({**SMALL_BLOCKS, **chosen}))
    built = builder(platform)(candidate(platform, drafts[draft], point, dtype), ())
    assert isinstance(built, Artifact), built.log
    vlens = platform.verify_vlens or platform.vlens
    tile = {"mr": 16, "nr": int(point["nr"]), "ku": int(point.get("ku", 1))}
    subject = Subject(runner_of(platform), built.path, workspace=_room)
    quick = grid.quick(operator, dtype, dict.fromkeys(vlens, tile))

    def cases(vlen: int, seed: Seed) -> Sequence[Case]:
        small = operator.reference.smallest_grid(dtype, seed.stream(5, vlen), 112) if draft == "direct" else ()
        return [*quick(vlen, seed), *small]

    found = list(grid.verify(operator, subject, cases, vlens, Seed.draw()))
    # the grid ends at the first VLEN that is wrong
    assert [verdict.vlen for verdict in found] == list(vlens[: len(found)])
    assert found
    assert len(found) == len(vlens) or not found[-1].outcome.ok
    assert all(verdict.cases for verdict in found)
    return found


def _room(problem: Problem, vlen: int) -> int:
    dims = problem.dims
    return (int(dims["m"]) + 256 + int(dims["n"]) + 256) * (int(dims["k"]) + 256)
