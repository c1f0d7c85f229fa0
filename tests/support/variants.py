"""Variants built at a point and put before the judge."""

from __future__ import annotations

from collections.abc import Mapping

from tensorop.author import offline
from tensorop.model.kernel import Artifact, KernelText
from tensorop.model.operator import Operator
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.verdict import Seed, Verdict
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.specs import platforms
from tensorop.verify import grid
from tensorop.verify.subject import Subject
from tests.support.operators import builder, runner_of


def verdict(operator: Operator, platform_name: str, name: str, dtype: str, chosen: Mapping[str, int]) -> Verdict:
    """What the judge says of a variant on the quick grid at the platform's first VLEN, with a trial's workspace.

    name: of the template
    """
    platform = platforms.load(platform_name)
    templates = {one.name: one for one in offline.templates(operator.folder, operator.name, operator.added)}
    point = instantiate.defaults(operator, platform, dtype, Point.of(chosen))
    variant = instantiate.variant(operator, templates[name], dtype, point)
    text = Texts().kernel(operator, platform, variant)
    assert isinstance(text, KernelText), text.message
    built = builder(platform)(instantiate.candidate(operator, platform, variant, text), ())
    assert isinstance(built, Artifact), built.log
    vlen = platform.vlens[0]
    lanes = platform.lanes(dtype, point, vlen)
    tile = operator.reference.tile(point, lanes, templates[name].reads)

    def least(problem: Problem, vlen: int) -> int:
        return int(operator.reference.workspace(problem, point, lanes))

    subject = Subject(runner_of(platform), built.path, workspace=least, compute=platform.formats(dtype).compute)
    quick = grid.quick(operator, dtype, {vlen: tile})
    (found,) = grid.verify(operator, subject, quick, (vlen,), Seed.draw())
    assert found.cases
    return found
