"""What others found as legal points of one platform and dtype."""

from __future__ import annotations

from collections.abc import Sequence

from tensorop.errors import TensoropError
from tensorop.model.kernel import Kernel, KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.winner import StartPoint
from tensorop.render import instantiate
from tensorop.space import Space, seeds


def is_whole(known: StartPoint, operator: Operator) -> bool:
    """Whether it says how the operator is blocked, or needs not say it."""
    return any(name in known.point for name in operator.blocking.values)


class Fit:
    """Variants that others found as legal ones of one platform and dtype."""

    def __init__(self, operator: Operator, platform: Platform, templates: Sequence[KernelTemplate], dtype: str) -> None:
        self._operator, self._platform, self._dtype = operator, platform, dtype
        self._templates = {d.name: d for d in templates if not instantiate.missing_primitives(platform, d, dtype)}
        self._spaces: dict[str, Space | None] = {}

    def of(self, known: StartPoint, scaled: bool, whole: bool) -> StartPoint | None:
        """The variant itself where its configuration is legal; where it is not and may be scaled the nearest legal one,
        with its blocking where that is asked for as a whole."""
        template, space = self._templates.get(known.template), self._space(known.template)
        if template is None or space is None:
            return None
        names = {*dict(space.dimensions), *self._operator.blocking.values}
        legal = seeds.named([known], template, space) if names.issuperset(known.point) else []
        if not scaled:
            return known if legal else None
        point = legal[0] if legal else space.nearest(known.point)
        if not whole or not is_whole(known, self._operator):
            return StartPoint(template.name, point)
        try:
            kernel = Kernel(template, self._dtype, point)
            blocks = instantiate.blocking_space(self._operator, self._platform, kernel).nearest(known.point)
        except TensoropError:  # a tile that no blocking fits
            return None
        return StartPoint(template.name, Point.of({**point, **blocks}))

    def _space(self, template: str) -> Space | None:
        if template in self._templates and template not in self._spaces:
            try:
                self._spaces[template] = instantiate.micro_space(self._platform, self._templates[template], self._dtype)
            except TensoropError:  # no point of it is legal here
                self._spaces[template] = None
        return self._spaces.get(template)
