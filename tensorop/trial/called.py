"""The calls of a kernel's paths: each path that its text can take is taken by one verified call (author/paths.py).

A path that vectors of several lengths take is called with one of these lengths.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tensorop.author.paths import Call, KernelPaths, Signature
from tensorop.model.case import Case
from tensorop.model.kernel import TRUSTED, Variant
from tensorop.model.kernel_alone import KernelAlone, TileCall
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.verdict import Seed
from tensorop.render import instantiate
from tensorop.render.texts import Texts

Cases = Mapping[int, Sequence[Case]]  # by VLEN (bits) at which they are verified

_PATHS = 9  # stream of the seed


@dataclass(frozen=True)
class PathCalls:
    """Makes the calls of kernels of one operator on one platform."""

    operator: Operator
    platform: Platform
    texts: Texts
    vlens: Sequence[int]  # bits
    seed: Seed

    def largest(self, variant: Variant, full_tile: bool = False) -> Cases:
        """The calls of a kernel's largest tile. full_tile: of its text with this tile alone."""
        return self._of(variant, full_tile, largest=True)[0] if variant.template.author != TRUSTED else {}

    def every(self, variant: Variant, in_library: bool = False) -> Sequence[Cases]:
        """The calls of all tiles of a kernel, then those of its edge kernel.

        in_library: in place of a tile, a finished library is called, so nothing is behind the operands
        """
        if variant.template.author == TRUSTED:
            return ()
        return self._of(variant, full_tile=False, largest=False, in_library=in_library)

    def _of(self, variant: Variant, full_tile: bool, largest: bool, in_library: bool = False) -> Sequence[Cases]:
        platform, kernel, dtype = self.platform, variant.kernel, variant.kernel.dtype
        known = self.texts.paths(self.operator, platform, variant, full_tile)
        points = [instantiate.as_built(self.operator, platform, variant).point]
        if (edge := instantiate.narrow(platform, kernel)) is not None:
            points.append(Point.of({**points[0], **edge.configuration}))
        found = []
        for paths, point in zip(known, points, strict=False):
            primitives = platform.at(kernel.vlen).primitives_of(dtype, point)
            reads, group = variant.template.reads, primitives.formats.group
            masked = primitives.masked or in_library
            alone = KernelAlone(dtype, point, paths.lanes[self.vlens[0]], reads, masked, group)
            found.append(self._cases(alone, paths, largest))
        return found

    def _cases(self, kernel: KernelAlone, paths: KernelPaths, largest: bool) -> Cases:
        known: dict[tuple[str, Signature], dict[int, tuple[Call, ...]]] = defaultdict(dict)
        for vlen in self.vlens:
            for function, path, calls in paths.at(vlen):
                known[function, path][vlen] = calls
        found: dict[int, list[Case]] = {vlen: [] for vlen in self.vlens}
        rng = self.seed.stream(_PATHS)
        for (function, _), ways in known.items():
            for vlen in sorted(ways, key=lambda vlen: len(found[vlen])):
                at = replace(kernel, lanes=paths.lanes[vlen])
                tried = (TileCall(function, call, largest) for call in ways[vlen])
                cases = (self.operator.reference.path_case(at, one, rng) for one in tried)
                if (case := next((one for one in cases if one is not None), None)) is not None:
                    found[vlen].append(case)
                    break
        return found
