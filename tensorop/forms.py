"""Variants written once more for a single VLEN: constants where the text for any VLEN asks for its length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tensorop import instantiate
from tensorop import search as searching
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Stage
from tensorop.model.winner import Variant, Winners
from tensorop.problems import features as features_of
from tensorop.search import FORM_SHARE, Ground
from tensorop.space import Space
from tensorop.target import Target
from tensorop.trial import Candidate
from tensorop.tuner import dispatch, loop
from tensorop.tuner.budget import Budget
from tensorop.tuner.seeded import Nothing


def search(ground: Ground, dtype: str, given: Winners, problems: tuple[Problem, ...]) -> Iterator[loop.Event]:
    """Tries the variants in a form for each measured VLEN, those that serve most of the problems there first."""
    wanted = _in_order(ground, given, problems) if len(given.trees) > 1 else []
    arms: dict[str, Candidate] = {}
    targets: dict[str, Target] = {}
    spaces: dict[str, Space] = {}
    points: dict[str, list[Point]] = {}
    for variant, vlen in wanted:
        arm, blocking, micro = _named(ground, variant, vlen)
        points.setdefault(arm, []).append(blocking)
        if arm not in arms:
            platform = ground.target.platform
            arms[arm] = Candidate(variant.draft, micro)
            targets[arm] = replace(ground.target, platform=platform.at(vlen))
            spaces[arm] = instantiate.blocking_space(ground.operator, platform, variant.draft, micro, dtype)
    share = ground.share(FORM_SHARE)
    return searching.conduct(
        ground,
        dtype,
        Stage.FORM,
        arms,
        spaces,
        problems,
        Budget(share.seconds, max(1, min(len(wanted), share.trials or len(wanted)))),
        points.__getitem__,
        then=lambda space, seed: Nothing(),
        targets=targets,
    )


def trial(ground: Ground, dtype: str, variant: Variant, vlen: int) -> Finished | None:
    """The trial of a variant's form for a VLEN; None where there was none or it failed."""
    arm, blocking, _ = _named(ground, variant, vlen)
    ended = ground.journal.history.ended((Stage.FORM, dtype, 0))
    found = [f for f in ended if f.outcome.ok and f.trial.draft == arm and f.trial.point == blocking]
    return found[-1] if found else None


def _in_order(ground: Ground, given: Winners, problems: Sequence[Problem]) -> list[tuple[Variant, int]]:
    features = [features_of(ground.operator, problem) for problem in problems]
    served = {tree.vlen: Counter(dispatch.decide(tree.root, f) for f in features) for tree in given.trees}
    used = sorted({number for counts in served.values() for number in counts})
    pairs = [(number, vlen) for vlen in served for number in used]
    pairs.sort(key=lambda pair: -served[pair[1]][pair[0]])
    return [(given.variants[number], vlen) for number, vlen in pairs]


def _named(ground: Ground, variant: Variant, vlen: int) -> tuple[str, Point, Point]:
    """The arm of a variant's form in the journal, its point there, and the micro-kernel's point."""
    values = ground.operator.blocking.values
    blocking = Point.of({name: value for name, value in variant.point.items() if name in values})
    micro = Point.of({name: value for name, value in variant.point.items() if name not in values})
    return f"{variant.draft.name} {micro} vlen={vlen}", blocking, micro
