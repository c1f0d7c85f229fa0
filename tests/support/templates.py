"""Shipped templates built at a point and put before the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorop.author import offline
from tensorop.model.case import Case
from tensorop.model.kernel import Artifact, KernelTemplate, KernelText, Source
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.verdict import Seed, Verdict
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.specs import platforms
from tensorop.verify import grid
from tensorop.verify.subject import Subject
from tests.support.operators import builder, gemm, runner_of

operator = gemm()
direct = offline.direct(operator.folder, operator.name)
assert direct is not None
templates = {template.name: template for template in (*offline.templates(operator.folder, operator.name), direct)}

OUTER = {"ku": 2, "ahead": 0, "late": 0, "lead": 0, "fetch": 0, "c_ahead": 0}
PIPELINED = {"ku": 4, "ahead": 1, "late": 2, "lead": 4, "fetch": 6, "c_ahead": 1}
DOT = {"ku": 1, "ahead": 0, "late": 0, "lead": 0, "fetch": 4, "straight": 0}
DOT_AHEAD = {**DOT, "ahead": 1, "late": 4}
SMALL_BLOCKS = {"mc": 32, "kc": 128, "nc": 256}


# Few rows by many columns that B has side by side: several pieces, several blocks of k, all that beta can be.
FEW_ROWS = [
    Problem.of(
        "gemm", "f32", {"m": m, "n": n, "k": k}, {"layout": "col", "ta": ta, "tb": 1, "beta": beta, "ldc_pad": gap}
    )
    for m, n, k, ta, beta, gap in (
        (1, 300, 40, 0, "0", 2), (2, 1111, 9, 1, "1", 0), (3, 23, 500, 0, "0.5", 1), (3, 2100, 17, 1, "0", 0),
        (4, 9, 3, 0, "-1", 3), (5, 410, 33, 0, "0", 0), (6, 700, 300, 1, "1", 1), (12, 400, 40, 0, "2", 0),
    )
]  # fmt: skip

# A matrix by a vector, from either side, of all ways to lie: several tiles, several blocks of k and of the long side.
VECTORS = [
    Problem.of(
        "gemm", "f32", {"m": m, "n": n, "k": k},
        {"layout": "col", "ta": ta, "tb": tb, "beta": beta, "ldc_pad": gap, "lda_pad": gap, "ldb_pad": gap},
    )
    for m, n, k, beta, gap in (
        (1, 211, 300, "0", 0), (1, 29, 17, "1", 0), (1, 70, 90, "2", 1), (211, 1, 300, "-1", 0),
        (1, 702, 190, "0", 0), (703, 1, 200, "2", 0), # more than level 2 holds
    )
    for ta in (0, 1)
    for tb in (0, 1)
]  # fmt: skip


def candidate(platform: Platform, template: KernelTemplate, point: Point, dtype: str) -> Source:
    """The C of a candidate, as a trial builds it."""
    variant = instantiate.variant(operator, template, dtype, point)
    text = Texts().kernel(operator, platform, variant)
    assert isinstance(text, KernelText), text.message
    return instantiate.candidate(operator, platform, variant, text)


def verdicts(
    platform_name: str, template: str, dtype: str, chosen: Mapping[str, int], problems: Sequence[Problem] = ()
) -> list[Verdict]:
    """What the judge says of a template at a point on the quick grid, or on these problems, at every VLEN its winners
    must pass. The workspace of given problems is as small as a trial's."""
    platform = platforms.load(platform_name)
    point = instantiate.defaults(operator, platform, dtype, Point.of({**SMALL_BLOCKS, **chosen}))
    built = builder(platform)(candidate(platform, templates[template], point, dtype), ())
    assert isinstance(built, Artifact), built.log
    vlens = platform.verify_vlens or platform.vlens
    tile = {"mr": 16, "nr": int(point["nr"]), "ku": int(point.get("ku", 1))}

    def least(problem: Problem, vlen: int) -> int:
        lanes = platform.lanes(dtype, point, vlen)
        reads = {f"reads_{name}": how for name, how in templates[template].reads.items()}
        return int(operator.reference.workspace(problem, {**point, **reads}, lanes))

    subject = Subject(runner_of(platform), built.path, workspace=least if problems else _room)
    quick = grid.quick(operator, dtype, dict.fromkeys(vlens, tile))

    def cases(vlen: int, seed: Seed) -> Sequence[Case]:
        if problems:
            return [Case(problem) for problem in problems]
        small = operator.reference.smallest_grid(dtype, seed.stream(5, vlen), 112) if template == "direct" else ()
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
