"""Specialises variants for a single VLEN: lanes become constants in their C."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tensorop.dispatch import choice, evidence
from tensorop.dispatch.choice import CostRow
from tensorop.dispatch.tree import TreeRow, decide, grow
from tensorop.measure import statistics
from tensorop.model.budget import Budget
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.trial import Stage
from tensorop.model.winner import Winners
from tensorop.render import instantiate
from tensorop.search.arms import Arm
from tensorop.search.task import Pass, Plan, Task
from tensorop.space.problems import features
from tensorop.target import Target

LESS = 0.005  # least gain of a specialisation on the problems of its variant, since it adds a kernel


def wanted(target: Target) -> bool:
    """Whether there are several VLENs and kernels that ask for theirs at run time."""
    return len(target.vlens) > 1 and target.platform.fixed_vlen is None


def plan(task: Task) -> Plan | None:
    """Specialisations of the variants for each measured VLEN; those that serve most problems come first."""
    if not wanted(task.target):
        return None
    specialisations = _in_order(task, evidence.by_trials(task, task.shortlist))
    arms = []
    for kernel in {v.kernel.id: v.kernel for v in specialisations}.values():
        space = instantiate.blocking_space(task.operator, task.target.platform, kernel.at(0))
        arms.append(Arm(kernel, space, [v.blocking for v in specialisations if v.kernel.id == kernel.id]))
    share = task.share(PASS.share)
    budget = Budget(share.seconds, max(1, min(len(specialisations), share.trials or len(specialisations))))
    return Plan(arms, task.sketch, budget, only_first=True)


def _in_order(task: Task, given: Winners) -> list[Variant]:
    if len(given.trees) < 2:
        return []
    seen = [features(task.operator, problem) for problem in task.problems]
    served = {tree.vlen: Counter(decide(tree.root, f) for f in seen) for tree in given.trees}
    used = sorted({number for counts in served.values() for number in counts})
    pairs = [(number, vlen) for vlen in served for number in used]
    pairs.sort(key=lambda pair: -served[pair[1]][pair[0]])
    return [given.variants[number].at(vlen) for number, vlen in pairs]


def formed(task: Task, given: Winners, kernels: Mapping[str, Kernel]) -> Winners:
    """The same variants, with the specialisations that pay."""
    tried = task.tried(kernels)
    if any(variant.id not in tried for variant in given.variants):  # stopped before any blocking was tried
        return given
    plain = [tried[variant.id] for variant in given.variants]
    rows: dict[int, list[CostRow]] = {}
    kept: dict[int, list[int]] = {}
    for vlen in task.target.vlens:
        special = [evidence.specialised(task, finished, vlen) for finished in plain]
        whole = evidence.of_trials(task, [one or any_ for one, any_ in zip(special, plain, strict=True)], vlen)
        kept[vlen] = gaining(_rows(task, evidence.of_trials(task, plain, vlen)), _rows(task, whole))
        taken = [one if one and n in kept[vlen] else plain[n] for n, one in enumerate(special)]
        rows[vlen] = evidence.of_trials(task, taken, vlen)
    written = [
        replace(variant, specialisations=tuple(vlen for vlen in kept if number in kept[vlen]))
        for number, variant in enumerate(given.variants)
    ]
    return evidence.unjudged(task, tuple(written), rows)


def _rows(task: Task, measured: Sequence[CostRow]) -> list[TreeRow]:
    return [choice.row_of(task.operator, one) for one in measured]


def gaining(for_any: Sequence[TreeRow], specialised: Sequence[TreeRow]) -> list[int]:
    """Numbers of the variants whose specialisations make the problems that they serve cheaper.

    Both sequences of rows are of the same problems: costs of the variants, and of their specialisations (the variant's
    own where there is none).
    """
    tree = grow(specialised)
    sent: dict[int, list[float]] = {}
    for before, row in zip(for_any, specialised, strict=True):
        number = decide(tree, row.features)
        sent.setdefault(number, []).append(row.costs[number] / before.costs[number])
    return sorted(number for number, ratios in sent.items() if statistics.geomean(ratios) < 1 - LESS)


PASS = Pass(
    Stage.SINGLE_VLEN,
    0.15,
    "trying the best variants compiled for one vector length",
    own_budget=True,
    wanted=wanted,
    plan=plan,
)
