"""Expected good configurations of a template from a platform's facts: searches without earlier results begin there.

A template's prior is a cost over its points. What blockings should cost is in `costs/expected.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tensorop.errors import SpecError
from tensorop.model.expression import parse
from tensorop.model.kernel import KernelTemplate
from tensorop.model.platform import Platform
from tensorop.model.point import Point, Value
from tensorop.render import instantiate
from tensorop.space import Space, seeds

MAX_READ = 50_000_000  # characters of a cost times points; their evaluation takes seconds


def facts(platform: Platform, dtype: str, chosen: Mapping[str, Value]) -> dict[str, Value]:
    """Names that a prior may use besides tunables: the facts of constraints, and three more.

    lanes: of the middle VLEN; in_order: 1 if the board model is in-order; l1_prefetch: 1 if the model has a prefetcher
    into level 1 that follows vector loads; broadcast: vector registers that a scalar factor of `fma` needs.
    """
    board = platform.board or {}
    into_l1 = board.get("memory", {}).get("l1_prefetch")
    return {
        **instantiate.facts(platform, dtype, chosen),
        "lanes": platform.lanes(dtype, chosen, platform.vlens[len(platform.vlens) // 2]),
        "in_order": int(board.get("pipeline") == "inorder"),
        "l1_prefetch": int(into_l1 is not None and not into_l1.get("scalar_only")),
        "broadcast": platform.leading(dtype).broadcast,
    }


def first(platform: Platform, template: KernelTemplate, dtype: str, space: Space) -> list[Point]:
    """The best points of a template's space by the prior's cost, one for each choice of the tunables in `prior.of`.

    They are in the order of their costs, except that the first point of each choice that only whole problems
    distinguish comes before all others. Without a prior there are none. Raises SpecError for a prior that cannot be
    read.
    """
    prior = template.prior
    if prior is None:
        return []
    if space.size * len(prior.cost) > MAX_READ:
        raise SpecError(f"template '{template.name}': key 'prior': {space.size} configurations are too many to compare")
    given = {**facts(platform, dtype, {}), **space.at(0)}
    if unknown := next((name for name in (*prior.of, *prior.apart) if name not in given), None):
        raise SpecError(f"template '{template.name}': key 'prior': no tunable or setting '{unknown}'")
    cost = parse(prior.cost, {name: type(value) for name, value in given.items()})
    known: dict[tuple[Value, ...], dict[str, Value]] = {}
    best: dict[tuple[Value, ...], tuple[int, int, Point]] = {}
    for number, point in enumerate(space.points()):
        chosen = tuple(point[name] for name in platform.settings if name in point)
        if chosen not in known:
            known[chosen] = facts(platform, dtype, point)
        names = {**known[chosen], **point}
        try:
            found = (int(cost.value(names)), number, point)
        except ZeroDivisionError:
            raise SpecError(f"template '{template.name}': key 'prior.cost' divides by zero at {point}") from None
        choice = tuple(names[name] for name in prior.of)
        best[choice] = min(best.get(choice, found), found, key=lambda one: one[:2])
    ranked = [point for _, _, point in sorted(best.values(), key=lambda one: one[:2])]
    leading = {seeds.unseen(template, point): point for point in reversed(ranked)}.values()
    return [*(point for point in ranked if point in leading), *(point for point in ranked if point not in leading)]
