"""conv2d's variants built at a point and put before the judge."""

from __future__ import annotations

from collections.abc import Mapping

from tensorop.author import offline
from tensorop.model.kernel import Artifact, KernelText
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.verdict import Seed, Verdict
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.specs import operators, platforms
from tensorop.verify import grid
from tensorop.verify.subject import Subject
from tests.support.operators import builder, gemm, runner_of

operator = operators.load("conv2d")
templates = {template.name: template for template in offline.templates(gemm().folder, "gemm")}

PIPELINED = {"ku": 4, "ahead": 1, "late": 2, "lead": 4, "fetch": 6, "c_ahead": 1}
SMALL_BLOCKS = {"mc": 32, "kc": 64, "nc": 128}


def verdict(platform_name: str, template: str, dtype: str, chosen: Mapping[str, int]) -> Verdict:
    """What the judge says of a variant on the quick grid at the platform's first VLEN, with a trial's workspace."""
    platform = platforms.load(platform_name)
    point = instantiate.defaults(operator, platform, dtype, Point.of({**SMALL_BLOCKS, **chosen}))
    variant = instantiate.variant(operator, templates[template], dtype, point)
    text = Texts().kernel(operator, platform, variant)
    assert isinstance(text, KernelText), text.message
    built = builder(platform)(instantiate.candidate(operator, platform, variant, text), ())
    assert isinstance(built, Artifact), built.log
    vlen = platform.vlens[0]
    lanes = platform.lanes(dtype, point, vlen)
    tile = {"mr": int(point["mr_vectors"]) * lanes, "nr": int(point["nr"]), "ku": int(point.get("ku", 1))}

    def least(problem: Problem, vlen: int) -> int:
        return int(operator.reference.workspace(problem, point, lanes))

    subject = Subject(runner_of(platform), built.path, workspace=least)
    quick = grid.quick(operator, dtype, {vlen: tile})
    (found,) = grid.verify(operator, subject, quick, (vlen,), Seed.draw())
    assert found.cases
    return found
