"""Variants written once more for a single VLEN: constants where the text for any VLEN asks for its length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tensorop import instantiate
from tensorop import search as searching
from tensorop.model.kernel import Variant
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Stage
from tensorop.model.winner import Winners
from tensorop.problems import features as features_of
from tensorop.search import FORM_SHARE, Ground
from tensorop.tuner import dispatch, loop
from tensorop.tuner.budget import Budget
from tensorop.tuner.loop import Arm


def search(ground: Ground, dtype: str, given: Winners, problems: tuple[Problem, ...]) -> Iterator[loop.Event]:
    """Tries the variants in a form for each measured VLEN, those that serve most of the problems there first."""
    wanted = _in_order(ground, given, problems) if len(given.trees) > 1 else []
    arms = {}
    for kernel in {v.kernel.id: v.kernel for v in wanted}.values():
        space = instantiate.blocking_space(ground.operator, ground.target.platform, kernel.at(0))
        arms[kernel.id] = Arm(kernel, space, [v.blocking for v in wanted if v.kernel.id == kernel.id])
    share = ground.share(FORM_SHARE)
    budget = Budget(share.seconds, max(1, min(len(wanted), share.trials or len(wanted))))
    return searching.conduct(ground, dtype, Stage.FORM, [*arms.values()], problems, budget, only_first=True)


def trial(ground: Ground, dtype: str, variant: Variant, vlen: int) -> Finished | None:
    """The trial of a variant's form for a VLEN; None where there was none or it failed."""
    wanted = variant.at(vlen).id
    found = [f for f in searching.passed(ground, dtype, Stage.FORM) if f.trial.variant.id == wanted]
    return found[-1] if found else None


def _in_order(ground: Ground, given: Winners, problems: Sequence[Problem]) -> list[Variant]:
    features = [features_of(ground.operator, problem) for problem in problems]
    served = {tree.vlen: Counter(dispatch.decide(tree.root, f) for f in features) for tree in given.trees}
    used = sorted({number for counts in served.values() for number in counts})
    pairs = [(number, vlen) for vlen in served for number in used]
    pairs.sort(key=lambda pair: -served[pair[1]][pair[0]])
    return [given.variants[number].at(vlen) for number, vlen in pairs]
